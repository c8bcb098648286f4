"""What an API server may answer (a stand-in plays it), and what a kubelet counts: sentences."""

from __future__ import annotations

import copy
import time
from pathlib import Path

import numpy as np
import pytest
from stand_in_cluster import CONTAINER, NAMESPACE, POD, TOKEN, StandIn, a_pod, pod_campaign

from workbench.descriptors.loading import load_campaign
from workbench.domain.attaching import Attached
from workbench.domain.errors import DescriptorError, LabError, LabGone
from workbench.labs.cluster import ClusterLab, cluster_api, kubelet
from workbench.labs.cluster.cluster_api import ClusterApi
from workbench.labs.cluster.cpu_amounts import CpuGiven, amount_of, cores_of
from workbench.labs.cluster.found_pod import FoundPod, find_pod
from workbench.labs.cluster.kubelet import KubeletLook, KubeletLooks
from workbench.labs.cluster.pod_journal import PodContainer, PodJournal
from workbench.labs.cluster.resizing import answer_of, wanted
from workbench.paths import Workspace, attached_folder

WEB = Attached("web", "pod", f"{NAMESPACE}/app=web", container=CONTAINER)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, r"does not accept the credentials of the kubeconfig \(401\)"),
        (403, r"does not allow that \(403\) when asked to patch pods/resize of shop/web-7d4b9"),
        (404, r"\(404\).*of 1\.33 or later: earlier ones cannot resize a pod in place"),
        (422, r"takes that for invalid \(422\).*: the stand-in was told to answer 422\. Choose"),
    ],
)
async def test_what_is_refused_is_a_sentence(stand_in: StandIn, status: int, said: str) -> None:
    async with ClusterApi.connected() as api:
        found = await find_pod(api, WEB)
        journal = PodJournal.new("s", "", "")
        stand_in.refuses = {"patch": [status]}
        with pytest.raises(LabError, match=said) as caught:
            await journal.change(api, found, CpuGiven("350m", "100m"))
        assert TOKEN not in str(caught.value)
        assert TOKEN not in journal.path.read_text()
        assert await journal.restore(api) == ()  # nothing had changed


async def test_one_that_cannot_be_put_back_leaves_no_other_one_limited(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (PodContainer(NAMESPACE, name, name, CONTAINER) for name in ("a", "b"))
    small = CpuGiven("350m", "100m")

    async def put_back(
        journal: PodJournal, api: ClusterApi, whose: PodContainer, before: CpuGiven
    ) -> str:
        if whose == first:
            raise LabError("its quota is used up")
        return f"{whose.place}: put back"

    monkeypatch.setattr(PodJournal, "_put_back", put_back)
    async with ClusterApi.connected() as api:
        journal = PodJournal.new("s", "", "")
        for whose in (first, second):
            journal.before[whose], journal.ours[whose] = CpuGiven("800m", "100m"), [small]
        with pytest.raises(LabError, match=r"left changed.*its quota is used up"):
            await journal.restore(api)
        assert list(journal.before) == [first]


async def test_what_may_pass_is_tried_again_within_bounds(stand_in: StandIn) -> None:
    async with ClusterApi.connected() as api:
        found = await find_pod(api, WEB)
        journal = PodJournal.new("s", "", "")
        stand_in.refuses = {"patch": [409, 429, 500, 503]}
        await journal.change(api, found, CpuGiven("350m", "100m"))
        assert stand_in.cpu["limits"] == {"cpu": "350m"}
        (said,) = await journal.restore(api)
        assert said.endswith("its CPU is limit 800m, request 100m again")
        api.patience_s = 0.3
        stand_in.refuses = {"get": [429] * 9}
        with pytest.raises(LabError, match=r"too much to do \(429\)"):
            await api.pod(NAMESPACE, POD)
        stand_in.refuses = {"get": [500] * 9}
        with pytest.raises(LabError, match="it failed with 500"):
            await api.pod(NAMESPACE, POD)


async def test_a_server_that_is_slow_or_away_is_not_waited_for_for_ever(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_api, "ANSWER_S", 0.2)
    async with ClusterApi.connected(patience_s=0.1) as api:
        stand_in.slow_s = 1.0
        with pytest.raises(LabGone, match=r"did not answer within 0\.2 s when asked to get pod"):
            await api.pod(NAMESPACE, POD)
        stand_in.stop()
        with pytest.raises(LabGone, match=r"127\.0\.0\.1:\d+: it cannot be reached"):
            await api.pod(NAMESPACE, POD)


async def test_a_kubeconfig_that_is_none_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config"
    monkeypatch.setenv("KUBECONFIG", str(path))
    for text in (None, "", "[1]", "a: {", "users: 7"):
        if text is not None:
            path.write_text(text)
        with pytest.raises(LabError, match=r"cannot be used.*`kubectl get pods` works with it"):
            async with ClusterApi.connected():
                pass


async def test_the_doctor_names_the_extra_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    (check,) = await ClusterLab.examine()
    assert (check.state, "no kubeconfig at /nowhere" in check.found) == ("warning", True)
    monkeypatch.setattr(cluster_api, "installed", lambda: False)
    (check,) = await ClusterLab.examine()
    assert "kubernetes_asyncio is not installed" in check.found
    assert "vnf-workbench[kubernetes]" in check.remedy
    with pytest.raises(LabError, match="kubernetes_asyncio is not installed"):
        async with ClusterApi.connected():
            pass


async def test_what_somebody_else_set_stays_and_another_pod_is_not_touched(
    stand_in: StandIn,
) -> None:
    async with ClusterApi.connected() as api:
        found = await find_pod(api, WEB)
        journal = PodJournal.new("s", "", "")
        await journal.change(api, found, CpuGiven("350m", "100m"))
        stand_in.somebody_sets("700m")
        (said,) = await journal.restore(api)
        assert "somebody set its CPU to limit 700m, request 100m meanwhile; that stays" in said
        found = await find_pod(api, WEB)
        await journal.change(api, found, CpuGiven("350m", "100m"))
        stand_in.recreate()
        (said,) = await journal.restore(api)
        assert "was made again, without the CPU of this session" in said
        assert stand_in.cpu["limits"] == {"cpu": "800m"}
        with pytest.raises(LabError, match=r"\(409\).*UID in precondition"):
            await journal.change(api, found, CpuGiven("350m", "100m"))


def test_a_torn_or_foreign_journal_says_nothing(tmp_path: Path) -> None:
    attached_folder().mkdir(parents=True)
    (attached_folder() / "1-a.pods").write_bytes(b"\xff\x00")
    (attached_folder() / "2-b.pods").write_text('{"owner": "vm/boot/1/1"}\n{"pod": 7}\n{torn')
    (journal,) = PodJournal.kept()
    assert journal.before == {}


# ------------------------------------------------------------------ what is counted


def found_pod() -> FoundPod:
    uid = a_pod()["metadata"]["uid"]
    given = CpuGiven("800m", "100m")
    return FoundPod(
        NAMESPACE, POD, uid, CONTAINER, "id", 0, "node-1", "127.0.0.1", "", False, given, True
    )


async def test_the_metrics_stand_in_where_the_summary_lacks_it(stand_in: StandIn) -> None:
    async with ClusterApi.connected() as api:
        found = await find_pod(api, WEB)
        stand_in.look_s = 60
        by_summary = await kubelet.look_at(api, found)
        stand_in.summary_lacks_it = True
        by_metrics = await kubelet.look_at(api, found)
        assert by_metrics.cpu_s == pytest.approx(by_summary.cpu_s)
        assert by_metrics.at_s == pytest.approx(by_summary.at_s, abs=0.002)


def test_what_lies_between_two_looks_is_even() -> None:
    looks = KubeletLooks(found_pod(), offset_s=1000.0)
    for at_s, cpu_s in ((1000.0, 5.0), (1010.0, 9.0), (1010.0, 99.0), (1020.0, 9.0)):
        looks.note(KubeletLook(at_s, cpu_s, 1.0, pressure_cpu_s=cpu_s / 10))
    assert [looks.at(s).cpu_s for s in (0.0, 2.5, 10.0, 15.0)] == [5.0, 6.0, 9.0, 9.0]
    assert looks.step_s == 10
    waited = looks.pressure_at(2.5)
    assert waited is not None
    assert np.isclose(waited, 0.6)
    looks.note(KubeletLook(1030.0, 9.0, 1.0))
    assert looks.pressure_at(2.5) is None, "a kubelet that stops telling has told nothing"


def test_a_summary_with_psi_as_kubelets_from_1_36_write_it() -> None:
    cpu = {"time": "2026-11-24T10:00:00.123456789Z", "usageCoreNanoSeconds": 2_500_000_000}
    cpu |= {"psi": {"some": {"total": 400_000_000}}}  # type: ignore[dict-item]
    pod = {"podRef": {"uid": found_pod().uid}, "containers": [{"name": CONTAINER, "cpu": cpu}]}
    look = kubelet.of_summary({"pods": [pod]}, found_pod())
    assert look is not None
    assert (look.cpu_s, look.pressure_cpu_s, look.at_s % 60) == (2.5, 0.4, pytest.approx(0.123456))


async def test_a_kubelet_that_stands_still_is_missed(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelet, "SETTLE_S", 0.3)
    stand_in.look_s = 60
    async with ClusterApi.connected() as api:
        looks = KubeletLooks(await find_pod(api, WEB))
        with pytest.raises(LabError, match=r"did not look at it again within 0\.3 s after"):
            await looks.settle(api, time.monotonic() + 5)


# ------------------------------------------------------------------ amounts and answers


@pytest.mark.parametrize(
    ("text", "cores"), [("500m", 0.5), ("0.5", 0.5), ("2", 2.0), ("1500000u", 1.5), ("", 0.0)]
)
def test_amounts_of_cpu(text: str, cores: float) -> None:
    assert cores_of(text) == cores
    assert amount_of(0.25) == "250m"
    for wrong in ("much", "1Gi", "-1", "1e400"):
        with pytest.raises(ValueError, match="no amount of CPU"):
            cores_of(wrong)


def test_quality_of_service_stays() -> None:
    burstable = found_pod()
    assert wanted(burstable, 0.35) == CpuGiven("350m", "100m")
    assert wanted(burstable, 0.05) == CpuGiven("50m", "50m")
    guaranteed = FoundPod(**{**vars(burstable), "guaranteed": True})
    assert wanted(guaranteed, 0.35) == CpuGiven("350m", "350m")


def test_an_answer_to_an_older_wish_is_none() -> None:
    pod = copy.deepcopy(a_pod("350m"))
    pod["metadata"]["generation"] = 3
    pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    pod["status"]["conditions"] = [{**pending, "observedGeneration": 2}]
    assert answer_of(pod, CONTAINER, CpuGiven("350m", "100m")).state == "given"
    pod["status"]["conditions"] = [{**pending, "observedGeneration": 3}]
    assert answer_of(pod, CONTAINER, CpuGiven("350m", "100m")).state == "Infeasible"


# ------------------------------------------------------------------ the campaign


def test_a_campaign_over_pods_is_read(tmp_path: Path) -> None:
    campaign = load_campaign(
        str(pod_campaign(tmp_path, 80)), workspace=Workspace(tmp_path)
    ).campaign
    (web,) = campaign.attached
    assert (campaign.lab, web.found_by, web.found_at) == ("kubernetes", "pod", "shop/app=web")
    assert (web.container, web.resources) == ("app", "resize")


@pytest.mark.parametrize(
    ("given", "written", "field", "said"),
    [
        ("pod: shop/app=web", "pod: app=web", "attach.web.pod", ""),
        ("container: app", "program: nginx", "attach.web.program", "a pod's is not seen"),
        ("container: app", "pid: 7", "attach.web.pid", "beside pod"),
        ("container: app", "resources: cgroup", "attach.web.resources", "on the pod's node"),
        ("pod: shop/app=web", "resources: resize", "attach.web.resources", "which pods know"),
        ("pod: shop/app=web", "context: here", "attach.web.context", "belongs to a pod"),
        ("name: vcpu, values: [35%]", "name: memory, values: [1 GiB]", "", "in place"),
        ("kind: campaign", "kind: campaign\nlab: attach", "lab", "leave it out"),
    ],
)
def test_mistakes_of_a_campaign_over_pods(
    tmp_path: Path, given: str, written: str, field: str, said: str
) -> None:
    campaign = pod_campaign(tmp_path, 80)
    text = campaign.read_text()
    assert given in text
    campaign.write_text(text.replace(given, written))
    with pytest.raises(DescriptorError) as caught:
        load_campaign(str(campaign), workspace=Workspace(tmp_path))
    assert any(m.field.startswith(field) and said in m.message for m in caught.value.mistakes), (
        caught.value.what
    )
