"""A pod of a real cluster, and Jobs in it. Runs only where KUBECONFIG names one, WORKBENCH_TEST_POD
a pod, and WORKBENCH_TEST_JOB an image and a URL."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from workbench.descriptors.loading import load_campaign
from workbench.domain.attaching import Attached
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.labs.base import LabSettings
from workbench.labs.cluster import ClusterLab, kubelet
from workbench.labs.cluster.cluster_api import ClusterApi
from workbench.labs.cluster.found_pod import find_pod
from workbench.labs.cluster.pod_journal import PodJournal
from workbench.labs.cluster.resizing import refusal, until_given, wanted
from workbench.paths import Workspace

JOB = os.environ.get("WORKBENCH_TEST_JOB", "").split()
"""IMAGE NAMESPACE URL."""
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


CAMPAIGN = """\
kind: campaign
attach:
  web:
    pod: {pod}
    {container}
    url: {url}
    max_load: 2
    guard: p95<=10s
    resources: fixed
    job: {{image: "{image}", namespace: {namespace}, cpu: 10%, memory: 64 MiB}}
targets:
  - vnf: web
primary_workload_parameter: {{name: concurrent, range: [1, 2]}}
load: {{kind: closed}}
windows: {{warmup: 1s, window: 3s, request_timeout: 5s}}
"""


@pytest.mark.skipif(
    not all(GIVEN) or len(JOB) != 3,
    reason="needs a real cluster: KUBECONFIG, WORKBENCH_TEST_POD, and WORKBENCH_TEST_JOB='IMAGE "
    "NAMESPACE URL': an image with hey and curl, where Jobs may be made, and what they may ask",
)
async def test_a_job_of_a_real_cluster_sends_load_and_is_deleted(tmp_path: Path) -> None:
    image, namespace, url = JOB
    named = os.environ.get("WORKBENCH_CONTAINER", "")
    container = f"container: {named}" if named else ""
    path = tmp_path / "real.yaml"
    path.write_text(
        CAMPAIGN.format(
            pod=GIVEN[1], container=container, url=url, image=image, namespace=namespace
        )
    )
    campaign = load_campaign(str(path), workspace=Workspace(tmp_path)).campaign
    lab = ClusterLab(campaign, LabSettings("real-cluster-test"))
    try:
        await lab.open()
        configuration = Configuration({}, {})
        await lab.deploy(campaign.targets[0].target, configuration)
        drive = await lab.drive(OperatingPoint("web", configuration, 2), 5.0, lambda usage: None)
        assert np.count_nonzero(drive.records.succeeded) > 2
        assert not await lab._server.jobs(namespace, f"vnf-workbench/run={lab._jobs.run}")
    finally:
        await lab.close()
    assert not lab._jobs.path.exists()
