"""A pod of a stand-in for a cluster: measured with its CPU changed in place, and left as it was."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from driving import Workbench
from running_system import RunningSystem
from stand_in_cluster import Pods, StandIn, pod_campaign

from workbench.domain.errors import LabError, LabGone, LabStopped
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Usage
from workbench.labs.base import LabSettings
from workbench.labs.cluster import ClusterLab, resizing
from workbench.measuring.records import Drive
from workbench.paths import attached_folder

SMALL = Configuration({"web.vcpu": 0.35}, {})


def note(usage: Mapping[str, Usage]) -> None:
    """What is used meanwhile is of no interest here."""


async def standing(lab: ClusterLab) -> ClusterLab:
    await lab.open()
    await lab.deploy(lab._campaign.targets[0].target, SMALL)
    return lab


async def driven(lab: ClusterLab, seconds: float = 1.5) -> Drive:
    return await lab.drive(OperatingPoint("web", SMALL, 50), seconds, note)


def only_looked_and_resized(stand_in: StandIn) -> bool:
    """Nothing was created, removed, restarted or asked for beside a resize."""
    return {method for method, _ in stand_in.asked} <= {"GET", "PATCH"} and all(
        path.endswith("/resize") for method, path in stand_in.asked if method == "PATCH"
    )


async def test_its_cpu_is_changed_in_place_while_it_is_loaded_and_at_no_other_time(
    system: RunningSystem, fronted: StandIn, pods: Pods, tmp_path: Path
) -> None:
    before, settings, seen = copy.deepcopy(fronted.cpu), system.settings(), []
    lab = pods(pod_campaign(tmp_path, system.port, guard="p95<=2s"))
    facts = await lab.open()
    assert facts.lab == "kubernetes"
    assert "node-1 (1.9 cores" in facts.details["nodes"]
    assert (facts.cores, facts.memory_bytes, facts.kernel) == (2, 4 << 30, "stand-in")
    assert "governor" not in facts.details
    assert facts.details["source"].startswith("a process on this host: ")
    deployed = await lab.deploy(lab._campaign.targets[0].target, SMALL)
    assert any("every ten seconds or so" in warning for warning in deployed.warnings)
    assert fronted.cpu == before
    drive = await lab.drive(
        OperatingPoint("web", SMALL, 50), 2.0, lambda usage: seen.append(copy.deepcopy(fronted.cpu))
    )
    assert seen[0] == {"limits": {"cpu": "350m"}, "requests": {"cpu": "100m"}}
    assert fronted.cpu == before
    assert system.settings() == settings
    assert np.count_nonzero(drive.records.succeeded) > 20
    assert drive.allotted_cores["web"] == 0.35
    first, *_, last = drive.counters
    for name in ("source", "web"):
        assert last.components[name].cpu_s > first.components[name].cpu_s
    assert "no kubelet tells" in drive.absent["web", "throttled_s"]
    assert "another host" in drive.absent["web", "pressure_cpu_s"]
    assert only_looked_and_resized(fronted)
    await lab.close()
    assert not list(attached_folder().glob("*"))


async def test_a_lab_that_opens_leaves_what_another_of_its_process_is_measuring(
    system: RunningSystem, fronted: StandIn, pods: Pods, tmp_path: Path
) -> None:
    lab = await standing(pods(pod_campaign(tmp_path, system.port)))
    assert lab._standing is not None
    await lab._standing.entry.allocate(SMALL)
    lab._jobs.add("load", "workbench-load")
    noted = {file: file.read_text() for file in attached_folder().glob("*")}
    assert {file.suffix for file in noted} == {".jobs", ".pods"}
    other = ClusterLab(lab._campaign, LabSettings("another"))
    await other.open()
    await other.close()
    assert fronted.cpu["limits"]["cpu"] == "350m"
    assert {file: file.read_text() for file in attached_folder().glob("*")} == noted
    await lab.close()
    assert fronted.cpu["limits"]["cpu"] == "800m"
    assert not list(attached_folder().glob("*"))


@pytest.mark.parametrize(
    ("says", "said"),
    [
        (
            "Deferred",
            r"kubelet says Deferred \(Node didn't have enough cpu\); nothing was rest",
        ),
        ("Infeasible", r"says Infeasible \(Node.*Ask for less: its node can never give that"),
        ("in progress", r"asked for 0.35 cores \(limit 350m, request 100m\).*says in progress"),
    ],
)
async def test_a_resize_that_is_not_given_is_told_and_taken_back(
    system: RunningSystem,
    fronted: StandIn,
    pods: Pods,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    says: str,
    said: str,
) -> None:
    monkeypatch.setattr(resizing, "GIVEN_S", 0.5)
    before = copy.deepcopy(fronted.cpu)
    lab = await standing(pods(pod_campaign(tmp_path, system.port)))
    fronted.kubelet_says = says
    with pytest.raises(LabStopped, match=said):
        await driven(lab)
    assert fronted.cpu == before
    assert only_looked_and_resized(fronted)
    fronted.kubelet_says = "given"


def recreated(stand_in: StandIn) -> None:
    stand_in.recreate()


def restarted(stand_in: StandIn) -> None:
    stand_in.restart_container()


def deleted(stand_in: StandIn) -> None:
    stand_in.pod = None
    stand_in.bump()


def set_by_somebody(stand_in: StandIn) -> None:
    stand_in.somebody_sets("600m")


@pytest.mark.parametrize(
    ("happens", "said", "left"),
    [
        (recreated, r"the pod web-7d4b9 was made again \(its uid is another\), while", "800m"),
        (restarted, r"was restarted \(0 restarts before, 1 now: OOMKilled\), while", "800m"),
        (deleted, r"the pod web-7d4b9 was deleted, while it was measured", ""),
        (
            set_by_somebody,
            r"somebody set its CPU from limit 350m, request 100m to limit 600m",
            "600m",
        ),
    ],
)
async def test_a_pod_that_is_another_meanwhile_stops_the_load(
    system: RunningSystem, fronted: StandIn, pods: Pods, tmp_path: Path, happens, said, left
) -> None:
    lab = await standing(pods(pod_campaign(tmp_path, system.port)))
    done: list[bool] = []

    def once(usage: Mapping[str, Usage]) -> None:
        if not done:
            done.append(True)
            happens(fronted)

    with pytest.raises(LabStopped, match=said):
        await lab.drive(OperatingPoint("web", SMALL, 50), 30.0, once)
    assert (fronted.cpu["limits"]["cpu"] if fronted.pod else "") == left
    assert only_looked_and_resized(fronted)
    await lab.close()
    assert not list(attached_folder().glob("*"))


async def test_a_watch_that_is_lost_begins_anew_and_the_load_goes_on(
    system: RunningSystem, fronted: StandIn, pods: Pods, tmp_path: Path
) -> None:
    lab = await standing(pods(pod_campaign(tmp_path, system.port)))
    fronted.refuses = {"watch": [410, 500]}
    cut: list[int] = []

    def cutting(usage: Mapping[str, Usage]) -> None:
        cut.append(1)
        if len(cut) == 2:
            fronted.cut_watches()

    drive = await lab.drive(OperatingPoint("web", SMALL, 50), 4.0, cutting)
    assert drive.records.succeeded.any()
    pods_path = "/api/v1/namespaces/shop/pods"
    assert sum(path == pods_path for _, path in fronted.asked) >= 5  # found twice, watched often
    assert fronted.cpu["limits"]["cpu"] == "800m"


async def test_a_watch_that_breaks_after_a_while_is_no_server_that_is_away(
    system: RunningSystem,
    fronted: StandIn,
    pods: Pods,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who stands in front of a server may cut what is idle; the next look sees the pod."""
    monkeypatch.setattr("workbench.labs.cluster.pod_function.AWAY_S", 0.4)
    lab = await standing(pods(pod_campaign(tmp_path, system.port)))
    began = time.monotonic()

    def cutting(usage: Mapping[str, Usage]) -> None:
        if time.monotonic() - began > 1.5:
            fronted.cut_watches()

    drive = await lab.drive(OperatingPoint("web", SMALL, 50), 4.0, cutting)
    assert drive.records.succeeded.any()


@pytest.mark.parametrize("when_wrong", ["end", "wait"])
async def test_a_server_that_dies_meanwhile(
    system: RunningSystem,
    fronted: StandIn,
    pods: Pods,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    when_wrong: str,
) -> None:
    """The load stops, what is left changed is told, and it is put back once it answers."""
    monkeypatch.setattr("workbench.labs.cluster.pod_function.AWAY_S", 0.5)
    lab = await standing(pods(pod_campaign(tmp_path, system.port, when_wrong=when_wrong)))
    lab._server.patience_s = 0.5
    loop = asyncio.get_running_loop()
    kind = LabGone if when_wrong == "wait" else LabStopped
    with pytest.raises(kind, match=r"left changed: limit 800m.*350m.*since. API server 127.0.0.1:"):
        await lab.drive(
            OperatingPoint("web", SMALL, 50),
            60.0,
            lambda usage: None if fronted._runner is None else fronted.stop(),
        )
    assert fronted.cpu["limits"]["cpu"] == "350m"
    if when_wrong == "wait":
        with pytest.raises(LabGone, match="left changed"):
            await lab.undeploy()
        await loop.run_in_executor(None, fronted.start)
        await lab.undeploy()
        assert fronted.cpu["limits"]["cpu"] == "800m"
        await lab.deploy(lab._campaign.targets[0].target, SMALL)
        assert (await driven(lab)).records.succeeded.any()
        return
    await lab.close()
    assert list(attached_folder().glob("*.pods"))
    fronted.start()
    (said,) = await ClusterLab.reap(frozenset())
    assert "its CPU is limit 800m, request 100m again" in said
    assert fronted.cpu["limits"]["cpu"] == "800m"
    assert not list(attached_folder().glob("*"))


async def test_a_guard_that_breaks_stops_the_load(
    system: RunningSystem, fronted: StandIn, pods: Pods, tmp_path: Path
) -> None:
    lab = await standing(pods(pod_campaign(tmp_path, system.port, guard="p95<=150ms")))
    with pytest.raises(LabStopped, match=r"guard p95<=150ms broke"):
        await lab.drive(
            OperatingPoint("web", SMALL, 50), 60.0, lambda usage: _put(system.delay, "0.4")
        )
    assert fronted.cpu["limits"]["cpu"] == "800m"


def _put(file: Path, text: str) -> None:
    file.write_text(text)


async def test_what_cannot_be_measured_is_said_before_any_load(
    system: RunningSystem, fronted: StandIn, pods: Pods, tmp_path: Path
) -> None:
    campaign = pod_campaign(tmp_path, system.port)
    fronted.refuses = {"proxy": [403]}
    with pytest.raises(LabError, match=r"\(403\).*nodes/proxy.*nothing that the pod uses can be"):
        await pods(campaign).open()
    fronted.clock_ahead_s = 40
    with pytest.raises(LabError, match=r"node node-1: its clock is \d+ s ahead of this host's"):
        await pods(campaign).open()
    fronted.clock_ahead_s = -400
    fronted._looked = (0.0, 0.0)
    with pytest.raises(LabError, match=r"saw last is \d+ s old: it stands still, or its clock"):
        await pods(campaign).open()
    fronted.clock_ahead_s = 0
    resources = fronted.pod["spec"]["containers"][0]
    resources["resizePolicy"][0]["restartPolicy"] = "RestartContainer"
    with pytest.raises(LabError, match="its resizePolicy restarts the container"):
        await pods(campaign).open()
    resources["resizePolicy"][0]["restartPolicy"] = "NotRequired"
    del resources["resources"]["limits"]
    with pytest.raises(LabError, match=r"no CPU limit; one that is set in place can never be"):
        await pods(campaign).open()
    resources["resources"]["limits"] = {"cpu": "800m"}
    campaign.write_text(campaign.read_text().replace("app=web", "app=other"))
    with pytest.raises(LabError, match=r"no pod that is meant by it runs. See `kubectl get pods"):
        await pods(campaign).open()
    assert not [path for method, path in fronted.asked if method == "PATCH"]


def test_a_run_gives_a_curve_and_leaves_the_pod_as_it_was(
    workbench: Workbench, system: RunningSystem, fronted: StandIn
) -> None:
    before = copy.deepcopy(fronted.cpu)
    workbench.variables["KUBECONFIG"] = str(fronted.kubeconfig())
    campaign = pod_campaign(workbench.root, system.port, samples=3)
    workbench.run("lint", str(campaign))
    # On a busy host none of them may be valid: that is the judge's say, and no matter here.
    done = workbench.run("run", str(campaign), "--headless", "--session", "pods", expect=None)
    assert "run done" in done.stdout + done.stderr
    samples = workbench.samples("pods")
    assert len({sample["wl"] for sample in samples}) >= 2
    assert all(sample["usage.web.cpu_cores"] > 0 for sample in samples)
    assert fronted.cpu == before
    assert only_looked_and_resized(fronted)
