"""Campaigns whose load Jobs send, and what is done with them in tests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from stand_in_cluster import StandIn
from stand_in_jobs import NODE, SERVICE

from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Usage
from workbench.labs.cluster import ClusterLab
from workbench.measuring.records import Drive
from workbench.paths import attached_folder

AS_IT_IS = Configuration({}, {})
CAMPAIGN = """\
kind: campaign
attach:
  web:
    pod: shop/app=web
    container: app
    url: http://{service}:{port}/
    max_load: 8
    guard: {guard}
    when_wrong: {when_wrong}
    resources: fixed
    job:
      image: registry.example/load:1
      namespace: load
      node_selector: {{kubernetes.io/hostname: {node}}}
      cpu: 50%
      memory: 64 MiB
targets:
  - vnf: web
primary_workload_parameter: {{name: concurrent, range: [1, 4]}}
load: {{kind: closed}}
sampling: {{max_samples: {samples}}}
windows: {{warmup: 0.3s, window: 1s, timeout: 1.5s, request_timeout: 2s}}
"""


def job_campaign(
    folder: Path,
    port: int,
    guard: str = "none",
    when_wrong: str = "end",
    samples: int = 2,
) -> Path:
    path = folder / "jobs.yaml"
    given = {"guard": guard, "when_wrong": when_wrong, "samples": samples}
    path.write_text(CAMPAIGN.format(service=SERVICE, node=NODE, port=port, **given))
    return path


def note(usage: Mapping[str, Usage]) -> None:
    """What is used meanwhile is of no interest here."""


async def standing(lab: ClusterLab) -> ClusterLab:
    await lab.open()
    await lab.deploy(lab._campaign.targets[0].target, AS_IT_IS)
    return lab


async def driven(lab: ClusterLab, seconds: float = 1.0) -> Drive:
    return await lab.drive(OperatingPoint("web", AS_IT_IS, 2), seconds, note)


async def nothing_is_left(stand_in: StandIn) -> bool:
    """No Job, no process, no journal."""
    for _ in range(100):
        if stand_in.jobs.sending():
            await asyncio.sleep(0.02)  # a process that was told to end takes a moment
    jobs = stand_in.jobs
    return not (jobs.jobs or jobs.sending() or list(attached_folder().glob("*")))
