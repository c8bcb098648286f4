"""Small campaigns over the shipped templates, and figures straight from a drive's records."""

from __future__ import annotations

import math
import secrets
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import numpy as np

from workbench.descriptors.loading import load_vnf_templates
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.parameters import (
    Configuration,
    LoadModel,
    OperatingPoint,
    Parameter,
    PrimaryWorkload,
)
from workbench.domain.samples import Sample, Usage
from workbench.domain.topology import Series, Target, Vnf, VnfTemplate
from workbench.labs.base import LabSettings
from workbench.labs.docker import DockerLab
from workbench.labs.docker.strays import COMPONENT_LABEL, SESSION_LABEL
from workbench.measuring.records import Drive
from workbench.paths import Workspace

SIZE = 10_000.0
OpenLab = Callable[..., Awaitable[DockerLab]]
"""The fixture `open_lab`: a load model and targets in, an open lab out."""
SETTLING_S = 0.5
"""Left out at the beginning of a drive."""


def templates(workspace: Workspace) -> tuple[VnfTemplate, ...]:
    return load_vnf_templates(workspace=workspace)


def target(*names: str) -> Target:
    parts = tuple(Vnf(name, name) for name in names)
    return Target("-".join(names), parts[0] if len(parts) == 1 else Series(parts))


def campaign(
    known: tuple[VnfTemplate, ...],
    targets: tuple[Target, ...],
    load: LoadModel,
    most: float | None = None,
) -> Campaign:
    """`most` is the top of the range of `wl`."""
    top = most or (10_000 if load.kind == "open" else 64)
    wl = PrimaryWorkload("rate" if load.kind == "open" else "concurrent", 1, top)
    return Campaign(
        "test",
        tuple(TargetPlan(t, (), wl) for t in targets),
        known,
        (Parameter("filesize_bytes", (SIZE,), "B"),),
        load,
    )


@asynccontextmanager
async def on_one_deployment(
    known: tuple[VnfTemplate, ...], load: LoadModel, target: Target, configuration: Configuration
) -> AsyncIterator[DockerLab]:
    """An open lab with that target on it, for all tests of a module that only drive load."""
    lab = DockerLab(campaign(known, (target,), load), LabSettings(f"test-{secrets.token_hex(4)}"))
    try:
        await lab.open()
        await lab.deploy(target, configuration)
        yield lab
    finally:
        await lab.close()


def configuration(**vcpu: float) -> Configuration:
    resources = {f"{name}.vcpu": cores for name, cores in vcpu.items()}
    return Configuration(resources, {"filesize_bytes": SIZE})


def point(measured: Target, chosen: Configuration, wl: float) -> OperatingPoint:
    return OperatingPoint(measured.name, chosen, wl)


def ignore(usage: Mapping[str, Usage]) -> None:
    """For drives whose progress is of no interest."""


def throughput(drive: Drive) -> float:
    """Answers per second after the settling time."""
    begin = drive.begin_s + SETTLING_S
    ended = drive.records.end_s[drive.records.succeeded]
    held = (ended >= begin) & (ended < drive.stop_s)
    return float(np.count_nonzero(held) / (drive.stop_s - begin))


def quantile_ms(drive: Drive, share: float) -> float:
    """Response time that this share of the answers stayed within."""
    done = drive.records.succeeded
    return float(np.quantile((drive.records.end_s - drive.records.start_s)[done], share)) * 1e3


def docker(*arguments: str) -> str:
    done = subprocess.run(
        ["docker", *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.strip()


def container(session: str, component: str) -> str:
    """Id of a component's container."""
    labels = (f"{SESSION_LABEL}={session}", f"{COMPONENT_LABEL}={component}")
    filters = [part for label in labels for part in ("--filter", f"label={label}")]
    return docker("ps", "--quiet", "--no-trunc", *filters)


def prefer(session: str, *components: str) -> None:
    """Let these have the CPU before whatever else the host does: a test's neighbours stay away."""
    docker("update", "--cpu-shares", "262144", *(container(session, name) for name in components))


SPOILT_BY_HOST = frozenset({"host_saturated", "unsteady", "too_few"})
"""Why a sample is not valid on a host that others use; it says nothing against the lab. A drive of
a test is not driven on where the host was too slow for enough answers."""


async def until_valid(
    measured: Callable[[], Awaitable[Sample]], *, quiet: bool = False, least: int = 2
) -> tuple[Sample, float]:
    """The first valid sample of three, and by how much a bound on it is to be widened.

    That is the log of the largest by the least throughput of the tries, which are of one point. It
    is no A/A measurement: where the first try is valid nothing is measured twice, it is zero, and
    the bounds hold as they stand. Where the host spoils all, `least` of them, the last serves,
    unless the host should be quiet (`make accept`); one is enough for bounds that know another
    noise than that between tries.
    """
    samples: list[Sample] = []
    spoilt = False
    while len(samples) < 3 and not spoilt and not (samples and samples[-1].valid):
        samples.append(await measured())
        spoilt = not quiet and len(samples) >= least and all(map(spoilt_by_host, samples))
    assert samples[-1].valid or spoilt, [sample.findings for sample in samples]
    rates = [rate for sample in samples if (rate := _throughput(sample))]
    return samples[-1], math.log(max(rates) / min(rates)) if rates else 0.0


def spoilt_by_host(sample: Sample) -> bool:
    return any(finding.reason in SPOILT_BY_HOST for finding in sample.findings)


def _throughput(sample: Sample) -> float | None:
    return sample.kpi("throughput_rps") or sample.kpi("throughput_pps")


def noise_of(drive: Drive) -> float:
    """Spread of the answers per second over the seconds of one drive, as a share of their mean."""
    ended = drive.records.end_s[drive.records.succeeded]
    seconds = np.arange(drive.begin_s + SETTLING_S, drive.stop_s, 1.0)
    rates = np.histogram(ended, seconds)[0]
    assert rates.any(), "no answer in a whole drive is no noise"
    return float(np.std(rates) / np.mean(rates))


def left_of(session: str) -> tuple[list[str], list[str]]:
    """Containers, ended ones too, and networks of a session."""
    label = ("--filter", f"label={SESSION_LABEL}={session}", "--quiet")
    return docker("ps", "--all", *label).split(), docker("network", "ls", *label).split()


def served(session: str) -> int:
    """Requests that the sink's nginx has counted; asking is one of them."""
    source, sink = container(session, "source"), container(session, "sink")
    address = docker(
        "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", sink
    )
    status = docker("exec", source, "curl", "--silent", f"http://{address}:8080/status")
    return int(status.splitlines()[2].split()[2])
