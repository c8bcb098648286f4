"""A pod of a real cluster. Runs only where KUBECONFIG names one and WORKBENCH_TEST_POD a pod."""

from __future__ import annotations

import os

import pytest

from workbench.domain.attaching import Attached
from workbench.labs.cluster import kubelet
from workbench.labs.cluster.cluster_api import ClusterApi
from workbench.labs.cluster.found_pod import find_pod
from workbench.labs.cluster.pod_journal import PodJournal
from workbench.labs.cluster.resizing import refusal, until_given, wanted

GIVEN = os.environ.get("KUBECONFIG"), os.environ.get("WORKBENCH_TEST_POD", "")


@pytest.mark.skipif(
    not all(GIVEN),
    reason="needs a real cluster: KUBECONFIG, and WORKBENCH_TEST_POD=NAMESPACE/SELECTOR of one pod "
    "with a CPU limit that may be halved; everything else here is tested on a stand-in",
)
async def test_a_pod_of_a_real_cluster_is_counted_resized_and_put_back() -> None:
    attached = Attached("web", "pod", GIVEN[1], container=os.environ.get("WORKBENCH_CONTAINER", ""))
    async with ClusterApi.connected() as api:
        found = await find_pod(api, attached)
        assert refusal(found) == ""
        assert (await kubelet.look_at(api, found)).cpu_s > 0
        journal = PodJournal.new("real-cluster-test", "", "")
        cpu = wanted(found, found.cpu.cores / 2)
        try:
            await journal.change(api, found, cpu)
            assert (await until_given(api, found, cpu)).state == "given"
        finally:
            said = await journal.restore(api)
        assert said[0].endswith("again")
        assert (await find_pod(api, attached)).cpu == found.cpu
        assert found.departure(await api.pod(found.namespace, found.pod)) == ""
