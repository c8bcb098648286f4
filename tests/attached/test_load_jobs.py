"""Load that a Job sends from within a cluster (a stand-in): real requests, and nothing is left."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from driving import Workbench
from killing import wait_for
from load_by_jobs import AS_IT_IS, driven, job_campaign, note, nothing_is_left, standing
from running_system import RunningSystem
from stand_in_cluster import Pods, StandIn
from stand_in_jobs import NODE, Json

from workbench.descriptors.loading import load_campaign
from workbench.domain.attaching import LoadJob
from workbench.domain.errors import (
    DescriptorError,
    LabGone,
    LabStopped,
    TrafficError,
)
from workbench.domain.parameters import OperatingPoint
from workbench.domain.samples import Usage
from workbench.labs.cluster import ClusterLab, job_journal, job_load, job_run
from workbench.paths import Workspace, attached_folder
from workbench.probes import host


async def test_a_job_sends_what_this_host_cannot_and_every_request_is_read(
    system: RunningSystem, clustered: StandIn, pods: Pods, tmp_path: Path
) -> None:
    live: list[Mapping[str, Usage]] = []
    lab = pods(job_campaign(tmp_path, system.port, guard="p95<=1s"))
    facts = await lab.open()
    assert facts.details["source"].startswith("Jobs in the cluster")
    deployed = await lab.deploy(lab._campaign.targets[0].target, AS_IT_IS)
    assert deployed.generator == "hey of registry.example/load:1 (sha256:222222222222)"
    assert any("`source_saturated`" in said for said in deployed.warnings)
    drive = await lab.drive(OperatingPoint("web", AS_IT_IS, 3), 1.5, live.append)
    assert live
    # Three clients, each answered after some 20 ms.
    answered = np.count_nonzero(drive.records.succeeded)
    assert 40 < answered <= 3 * 1.5 / 0.02
    took = (drive.records.end_s - drive.records.start_s)[drive.records.succeeded]
    assert 0.02 <= np.median(took) < 0.1
    # Within what is said: it began no later than is taken, and at most so much earlier.
    began_s = clustered.jobs.began_s["load"] - time.time() + time.monotonic()
    assert -0.05 < drive.begin_s - began_s < 1.2
    assert drive.counters[0].at_s == drive.begin_s
    assert drive.counters[-1].at_s == drive.stop_s
    assert drive.counters[-1].components["web"].cpu_s > drive.counters[0].components["web"].cpu_s
    assert "source" not in drive.counters[0].components
    assert "no part in them" in drive.absent["host", "pressure_cpu_s"]
    assert any("s earlier than is taken here" in said for said in drive.notes)
    assert await nothing_is_left(clustered)
    look, guard, load = clustered.jobs.seen
    assert_bounded(
        guard, load, lab._settings.session, look["metadata"]["labels"]["vnf-workbench/run"]
    )
    assert {method for method, _ in clustered.asked} == {"GET", "POST", "DELETE"}


def assert_bounded(guarding: Json, job: Json, session: str, run: str) -> None:
    """It ends whatever happens, is found again, and has no right in the cluster."""
    labels = job["metadata"]["labels"]
    assert (labels["vnf-workbench/session"], labels["vnf-workbench/run"]) == (session, run)
    spec = job["spec"]
    assert (spec["backoffLimit"], spec["ttlSecondsAfterFinished"]) == (0, 600)
    assert job_load.SOON_S < spec["activeDeadlineSeconds"] < job_load.SOON_S + 40
    pod = spec["template"]["spec"]
    assert (pod["restartPolicy"], pod["automountServiceAccountToken"]) == ("Never", False)
    assert pod["nodeSelector"] == {"kubernetes.io/hostname": NODE}
    (guard,) = guarding["spec"]["template"]["spec"]["containers"]
    (load,) = pod["containers"]
    given = {"cpu": "500m", "memory": str(64 << 20)}
    assert load["resources"] == {"requests": given, "limits": given}
    assert set(guard["resources"]["limits"]) == {"cpu", "memory"}
    assert (guard["command"][0], load["command"][0]) == ("curl", "hey")


async def test_whoever_cancels_while_a_job_is_created_leaves_none(
    system: RunningSystem, clustered: StandIn, pods: Pods, tmp_path: Path
) -> None:
    lab = pods(job_campaign(tmp_path, system.port))
    await lab.open()
    made = lab._server._batch.create_namespaced_job
    asked = asyncio.Event()

    async def late(*arguments: object, **options: object) -> object:
        """The server goes on though whoever asked has gone."""
        asked.set()

        async def stored() -> object:
            await asyncio.sleep(0.3)
            return await made(*arguments, **options)

        return await asyncio.shield(asyncio.create_task(stored()))

    lab._server._batch.create_namespaced_job = late
    deploying = asyncio.create_task(lab.deploy(lab._campaign.targets[0].target, AS_IT_IS))
    await asked.wait()
    deploying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deploying
    await asyncio.sleep(0.4)
    assert clustered.jobs.seen
    assert await nothing_is_left(clustered)


@pytest.mark.parametrize("comes", [True, False])
async def test_a_job_of_which_nobody_says_whether_it_was_created(
    system: RunningSystem,
    clustered: StandIn,
    pods: Pods,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    comes: bool,
) -> None:
    monkeypatch.setattr(job_run, "LATE_S", 1.0, raising=False)
    lab = pods(job_campaign(tmp_path, system.port))
    await lab.open()
    lab._server.patience_s = 0.1
    made = lab._server._batch.create_namespaced_job
    tasks: list[asyncio.Task[object]] = []

    async def unanswered(*arguments: object, **options: object) -> object:
        async def stored() -> object:
            await asyncio.sleep(0.3)
            return await made(*arguments, **options)

        tasks.append(asyncio.create_task(stored() if comes else asyncio.sleep(0)))
        raise OSError("the connection broke")

    lab._server._batch.create_namespaced_job = unanswered
    with pytest.raises(LabStopped, match="cannot be reached"):
        await lab.deploy(lab._campaign.targets[0].target, AS_IT_IS)
    await asyncio.gather(*tasks)
    assert not clustered.jobs.jobs
    assert bool(list(attached_folder().glob("*"))) != comes
    await lab.close()
    assert bool(list(attached_folder().glob("*"))) != comes


async def test_a_role_that_lacks_something_ends_the_run_though_it_would_wait(
    system: RunningSystem, clustered: StandIn, pods: Pods, tmp_path: Path
) -> None:
    campaign = job_campaign(tmp_path, system.port, guard="p95<=150ms", when_wrong="wait")
    lab = pods(campaign)
    await lab.open()
    clustered.refuses["post"] = [403]
    with pytest.raises(LabStopped, match=r"\(403\) when asked to create a Job"):
        await lab.deploy(lab._campaign.targets[0].target, AS_IT_IS)
    await lab.deploy(lab._campaign.targets[0].target, AS_IT_IS)
    clustered.refuses["log"] = [403]
    with pytest.raises(LabStopped, match=r"\(403\) when asked to follow the log"):
        await driven(lab)
    assert "load" not in clustered.jobs.began_s
    assert await nothing_is_left(clustered)


async def test_a_pod_that_nobody_collects_is_deleted_by_its_name(
    system: RunningSystem,
    clustered: StandIn,
    pods: Pods,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_load, "EVERY_S", 0.2)
    monkeypatch.setattr(job_run, "GONE_S", 0.4)
    lab = await standing(pods(job_campaign(tmp_path, system.port)))
    clustered.jobs.collects = False
    before_s = time.monotonic()
    driving = asyncio.create_task(
        lab.drive(OperatingPoint("web", AS_IT_IS, 2), 30.0, lambda usage: driving.cancel() and None)
    )
    with pytest.raises(asyncio.CancelledError):
        await driving
    assert time.monotonic() - before_s < 5
    assert await nothing_is_left(clustered)
    clustered.jobs.may_delete_pods = False
    deploying = asyncio.create_task(lab.drive(OperatingPoint("web", AS_IT_IS, 2), 30.0, note))
    for _ in range(1000):
        if not clustered.jobs.pods:
            await asyncio.sleep(0.01)
    deploying.cancel()  # before it was looked at
    with pytest.raises(asyncio.CancelledError):
        await deploying
    assert "its pod still runs after 0.4 s" in lab._news[-1]


async def test_an_answer_that_comes_late_says_nothing_of_clocks(
    system: RunningSystem,
    clustered: StandIn,
    pods: Pods,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_run, "AHEAD_S", 0.0)
    lab = pods(job_campaign(tmp_path, system.port))
    await lab.open()
    made = lab._server._batch.create_namespaced_job

    async def late(*arguments: object, **options: object) -> object:
        answer = await made(*arguments, **options)
        await asyncio.sleep(1.3)  # whole seconds are cut
        return answer

    lab._server._batch.create_namespaced_job = late
    await lab.deploy(lab._campaign.targets[0].target, AS_IT_IS)


@pytest.mark.parametrize(
    ("says", "when_wrong", "said"),
    [
        (
            "no image",
            "end",
            r"image registry\S+ cannot be had \(ImagePullBackOff\): Back-off",
        ),
        (
            "no room",
            "wait",
            r"within 2 s: no node takes it \(Unschedulable\): 0/3 nodes",
        ),
        (
            "no pod",
            "end",
            r"within 2 s: Error creating: pods .*quota: small\. Make room",
        ),
        (
            "no quota",
            "end",
            r"\(403\) when asked to create a Job in load: .* quota.*kubectl",
        ),
    ],
)
async def test_a_job_that_does_not_come_to_run_is_told_and_deleted(
    system: RunningSystem,
    clustered: StandIn,
    pods: Pods,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    says: str,
    when_wrong: str,
    said: str,
) -> None:
    monkeypatch.setattr(job_load, "BEGIN_S", 2.0)
    lab = pods(job_campaign(tmp_path, system.port, when_wrong=when_wrong))
    await lab.open()
    clustered.jobs.says = says
    target = lab._campaign.targets[0].target
    with pytest.raises(LabGone if when_wrong == "wait" else LabStopped, match=said):
        await lab.deploy(target, AS_IT_IS)
    assert await nothing_is_left(clustered)
    if when_wrong == "wait":
        clustered.jobs.says = "runs"
        await lab.undeploy()
        assert (await lab.deploy(target, AS_IT_IS)).generator.startswith("hey")


def evicted(stand_in: StandIn) -> None:
    stand_in._loop.call_soon_threadsafe(stand_in.jobs.evict)


def deleted(stand_in: StandIn) -> None:
    stand_in._loop.call_soon_threadsafe(stand_in.jobs.somebody_deletes)


def recreated(stand_in: StandIn) -> None:
    stand_in.recreate()


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (
            evicted,
            r"its pod was evicted: The node was low on resource: memory\. Choose other",
        ),
        (deleted, r"Job load/workbench-\w+: somebody deleted it\. Find out who"),
        (recreated, r"the pod web-7d4b9 was made again \(its uid is another\), while it was"),
    ],
)
async def test_what_becomes_of_a_job_or_a_function_meanwhile(
    system: RunningSystem,
    clustered: StandIn,
    pods: Pods,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[[StandIn], None],
    said: str,
) -> None:
    monkeypatch.setattr(job_load, "EVERY_S", 0.2)
    lab = await standing(pods(job_campaign(tmp_path, system.port)))
    done: list[bool] = []

    def once(usage: Mapping[str, Usage]) -> None:
        if not done:
            done.append(True)
            happens(clustered)

    with pytest.raises(LabStopped, match=said):
        await lab.drive(OperatingPoint("web", AS_IT_IS, 2), 60.0, once)
    assert await nothing_is_left(clustered)


async def test_a_log_that_is_not_whole_is_no_measurement(
    system: RunningSystem,
    clustered: StandIn,
    pods: Pods,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_load, "LONGER_S", 0.1)
    lab = await standing(pods(job_campaign(tmp_path, system.port)))
    clustered.jobs.keeps_bytes = 800
    with pytest.raises(TrafficError, match=r"its log is cut off \(\d+ characters came\).*10 MiB"):
        await driven(lab, 0.3)
    clustered.jobs.keeps_bytes = 1 << 30
    monkeypatch.setattr(job_run, "MOST_LOG", 800)
    with pytest.raises(TrafficError, match=r"longer than the 0 MiB that are read.*Lower the load"):
        await driven(lab, 0.3)
    assert await nothing_is_left(clustered)


async def test_a_server_that_dies_meanwhile_and_what_is_deleted_once_it_answers(
    system: RunningSystem,
    clustered: StandIn,
    pods: Pods,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_load, "EVERY_S", 0.2)
    monkeypatch.setattr(job_journal, "REAP_S", 0.3)
    monkeypatch.setattr("workbench.labs.cluster.cluster_lab.DEAD_S", 0.3)
    monkeypatch.setattr("workbench.labs.attached.lab.QUIET_S", 0.1)
    lab = await standing(pods(job_campaign(tmp_path, system.port)))
    lab._server.patience_s = 0.3
    with pytest.raises(LabStopped, match=r"may be left in it, and cannot be deleted\. API server"):
        await lab.drive(
            OperatingPoint("web", AS_IT_IS, 2),
            30.0,
            lambda usage: None if clustered._runner is None else clustered.stop(),
        )
    await lab.close()
    assert clustered.jobs.loads
    assert "cannot be reached" in (await ClusterLab.reap(frozenset()))[0]
    await asyncio.get_running_loop().run_in_executor(None, clustered.start)
    (said,) = await ClusterLab.reap(frozenset())
    assert said.startswith("Job load/workbench-")
    assert said.endswith("was deleted")
    assert await nothing_is_left(clustered)


@pytest.mark.parametrize(("ahead_s", "said"), [(30, "ahead of this"), (-30, "behind this")])
async def test_a_node_whose_clock_is_off_is_told_before_any_load(
    system: RunningSystem,
    clustered: StandIn,
    pods: Pods,
    tmp_path: Path,
    ahead_s: float,
    said: str,
) -> None:
    clustered.jobs.clock_ahead_s = ahead_s
    with pytest.raises(LabStopped, match=rf"node node-2: its clock is \d+ s {said} host's"):
        await standing(pods(job_campaign(tmp_path, system.port)))
    assert not clustered.jobs.began_s.get("load")
    assert await nothing_is_left(clustered)


async def test_an_answer_that_is_lost_makes_no_second_job(
    system: RunningSystem, clustered: StandIn, pods: Pods, tmp_path: Path
) -> None:
    lab = pods(job_campaign(tmp_path, system.port))
    await lab.open()
    made = lab._server._batch.create_namespaced_job
    calls: list[int] = []

    async def lost(*arguments: object, **options: object) -> object:
        calls.append(1)
        answer = await made(*arguments, **options)
        if len(calls) == 1:
            raise OSError("the connection broke")
        return answer

    lab._server._batch.create_namespaced_job = lost
    await lab.deploy(lab._campaign.targets[0].target, AS_IT_IS)
    assert len(calls) == 2
    assert len(clustered.jobs.seen) == 1
    assert await nothing_is_left(clustered)


@pytest.mark.slow
def test_a_job_of_an_engine_that_was_killed_is_deleted_and_its_run_goes_on(
    workbench: Workbench, system: RunningSystem, clustered: StandIn
) -> None:
    workbench.variables["KUBECONFIG"] = str(clustered.kubeconfig())
    campaign = job_campaign(workbench.root, system.port, guard="p95<=2s", samples=2)
    process = workbench.begin("run", str(campaign), "--headless", "--session", "jobs")
    wait_for(process, lambda: bool(clustered.jobs.loads) and clustered.jobs.sending())
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert clustered.jobs.sending()
    (left,) = clustered.jobs.loads
    assert f"Job load/{left} of session jobs was deleted" in workbench.run("reap").stdout
    assert not clustered.jobs.jobs
    # On a busy host none of them may be valid: that is the judge's say, and no matter here.
    done = workbench.run("resume", "jobs", "--headless", expect=None)
    assert "run done" in done.stdout + done.stderr
    samples = workbench.samples("jobs")
    assert len({sample["wl"] for sample in samples}) == 2
    assert all(sample["usage.web.cpu_cores"] > 0 for sample in samples)
    assert not clustered.jobs.jobs
    assert workbench.run("reap").stderr.strip() == "no strays"


# ------------------------------------------------------------------ the campaign


def test_a_campaign_by_jobs_is_read(tmp_path: Path) -> None:
    path = job_campaign(tmp_path, 80)
    (web,) = load_campaign(str(path), workspace=Workspace(tmp_path)).campaign.attached
    nodes = (("kubernetes.io/hostname", NODE),)
    assert web.job == LoadJob("registry.example/load:1", "load", nodes, 0.5, 64 << 20)


async def test_facts_say_whose_they_are(
    system: RunningSystem, clustered: StandIn, pods: Pods, tmp_path: Path
) -> None:
    campaign = job_campaign(tmp_path, system.port)
    lab = pods(campaign)
    facts = await lab.open()
    assert facts.cpu_model.startswith("not told by its kubelet")
    assert facts.details["source"].endswith("this host takes no part")
    lab._nodes["node-2"] = lab._nodes["node-1"]
    facts = lab._facts({})
    assert facts.cpu_model == host.read_cpu_model()
    assert facts.details["facts"].endswith("functions are on several nodes")
    # Another target's load is sent from here.
    attached, _, rest = campaign.read_text().partition("targets:\n")
    direct = attached.partition("  web:\n")[2].partition("    job:\n")[0]
    text = f"{attached}  direct:\n{direct}targets:\n  - vnf: direct\n{rest}"
    campaign.write_text(text)
    said = pods(campaign)._senders()
    assert re.fullmatch(r"a process on .* \(targets: direct\); Jobs in .* \(targets: web\)", said)


@pytest.mark.parametrize(
    ("given", "written", "field", "said"),
    [
        ("pod: shop/app=web", "cgroup: /web", "attach.web.job", "belongs to a pod"),
        ("namespace: load", "namespace: Load", "attach.web.job.namespace", ""),
        ("image: registry.example/load:1", "", "attach.web.job.image", ""),
        ("cpu: 50%", "cpu: 0", "attach.web.job.cpu", "at least 0.01"),
        ("{kind: closed}", "{kind: closed, generator: oha}", "load.generator", "Job's log"),
        ("concurrent, range: [1, 4]", "rate, range: [1, 4]", "attach.web.job", "closed loop"),
    ],
)
def test_mistakes_of_a_campaign_by_jobs(
    tmp_path: Path, given: str, written: str, field: str, said: str
) -> None:
    campaign = job_campaign(tmp_path, 80)
    text = campaign.read_text()
    assert given in text
    campaign.write_text(text.replace(given, written))
    with pytest.raises(DescriptorError) as caught:
        load_campaign(str(campaign), workspace=Workspace(tmp_path))
    assert any(m.field.startswith(field) and said in m.message for m in caught.value.mistakes), (
        caught.value.what
    )
