"""Every VNF template and every generator carries a valid sample; what does not fit is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from docker_targets import (
    SIZE,
    OpenLab,
    configuration,
    container,
    docker,
    ignore,
    noise_of,
    point,
    served,
    target,
    until_valid,
)

from workbench.domain.campaign import WindowPlan
from workbench.domain.errors import LabError, TrafficError
from workbench.domain.parameters import Configuration, LoadModel
from workbench.domain.samples import Sample
from workbench.labs.components import preflight
from workbench.measuring.judging import Terms, judge
from workbench.measuring.records import Drive

pytestmark = pytest.mark.docker

OPEN = LoadModel("open", connections=64)
CLOSED = LoadModel("closed")
THINKING = LoadModel("closed", think_time_s=0.05)

VALID = [
    # generator, load, function, vCPU, wl, keeps connections open
    ("oha", OPEN, "nginx", 0.25, 400.0, True),
    ("steady", OPEN, "tinyproxy", 0.25, 200.0, False),
    ("h2load", CLOSED, "squid", 0.25, 4, True),
    ("wrk", CLOSED, "nginx", 0.125, 8, True),
    ("hey", CLOSED, "tinyproxy", 0.25, 4, False),
    ("locust", THINKING, "tinyproxy", 0.25, 10, False),
]
"""Each generator once, and each template but haproxy, which other files measure."""
FURTHER = [
    ("steady", OPEN, "haproxy", 0.25, 400.0, True),
    ("locust", THINKING, "haproxy", 0.25, 10, True),
]
"""In `make accept`: both generators that connect anew above keep connections open as well."""


def judged(drive: Drive, name: str, vcpu: float, wl: float, load: LoadModel, kpi: str) -> Sample:
    at = point(target(name), configuration(**{name: vcpu}), wl)
    terms = Terms(load=load, windows=WindowPlan(), sla=None, kpi=kpi)
    lab_s = drive.stop_s - drive.begin_s
    return judge([drive], at, terms, started_at=0.0, lab_s=lab_s).measurement.sample


@pytest.mark.unhurried
@pytest.mark.parametrize(
    ("generator", "load", "name", "vcpu", "wl", "keeps"),
    [*VALID, *(pytest.param(*v, marks=pytest.mark.long) for v in FURTHER)],
    ids=[f"{v[0]}-{v[2]}" for v in VALID + FURTHER],
)
async def test_a_valid_sample(
    open_lab: OpenLab,
    session: str,
    generator: str,
    load: LoadModel,
    name: str,
    vcpu: float,
    wl: float,
    keeps: bool,
    full_length: bool,
) -> None:
    kpi = "throughput_rps" if generator == "wrk" else "p95_ms"
    measured, chosen = target(name), configuration(**{name: vcpu})
    lab = await open_lab(load, measured, generator=generator, kpi=kpi)
    deployment = await lab.deploy(measured, chosen)
    assert deployment.generator.split()[0] == generator
    assert deployment.generator.split()[1][0].isdigit(), "its version is known"
    assert deployment.keep_alive == keeps
    drives: list[tuple[Drive, int]] = []

    async def driven() -> Sample:
        before = served(session)
        drive = await lab.drive(point(measured, chosen, wl), 4.5, ignore)
        drives.append((drive, served(session) - before - 1))
        return judged(drive, name, vcpu, wl, load, kpi)

    sample, widened = await until_valid(driven, quiet=full_length, least=1)
    drive, counted = drives[-1]
    noise = 0.0 if full_length else max(widened, noise_of(drive))
    # wrk drives for whole seconds, up to a half beyond its load here, in bursts of the quota;
    # the others' clients begin a request or two more than they report when their time is up. A
    # host that others use ends them later still.
    beyond = ((0.7 / 4.5 if generator == "wrk" else 0.01) + noise) * counted
    assert 0 <= counted - np.count_nonzero(drive.records.succeeded) <= 2 * wl + 2 + beyond
    # hey tells time in steps of 0.1 ms, in which a client or two may end and begin; on a host that
    # others use its clocks disagree more. An open loop has no more in flight than connections.
    in_flight = np.count_nonzero(~drive.records.finished)
    clients = wl + 2 if full_length else 2 * wl + 2
    assert in_flight <= (load.connections if load.kind == "open" else clients)
    assert sample.generator == deployment.generator
    if generator == "wrk":
        assert sample.kpi_definition == "none"
        assert not {"p50_ms", "p95_ms", "p99_ms", "mean_ms"} & set(sample.kpis)
    if load.think_time_s:
        cycle_s = load.think_time_s + sample.kpis["mean_ms"].value / 1e3
        assert sample.kpis["throughput_rps"].value * cycle_s == pytest.approx(wl, rel=0.15 + noise)


REFUSED = [
    ("h2load", CLOSED, "throughput_rps", "h2load does not connect again"),
    ("wrk", CLOSED, "throughput_rps", "wrk counts a close as a read error"),
    ("wrk", CLOSED, "p95_ms", "wrk measures throughput alone"),
    ("oha", THINKING, "p95_ms", "oha's clients do not think"),
    ("hey", OPEN, "p95_ms", "which is not an open loop"),
    ("steady", CLOSED, "p95_ms", "which is not a closed loop"),
    ("locust", CLOSED, "p95_ms", "would measure its own Python"),
    ("locust", THINKING, "p95_ms", "above 2000 Locust's own CPU"),
    ("iperf3", CLOSED, "p95_ms", "cannot measure requests"),
]


@pytest.mark.unhurried
async def test_unfit_generators_are_refused_on_a_real_path(open_lab: OpenLab) -> None:
    """tinyproxy closes every connection; the first is refused by the deployment itself."""
    tinyproxy, chosen = target("tinyproxy"), configuration(tinyproxy=0.25)
    generator, load, kpi, sentence = REFUSED[0]
    lab = await open_lab(load, tinyproxy, generator=generator, kpi=kpi, most=500)
    with pytest.raises(TrafficError, match=f"^{generator} cannot measure this: .*{sentence}"):
        await lab.deploy(tinyproxy, chosen)
    assert lab._deployed is not None
    assert lab._path is not None
    source = lab._deployed.component("source")
    for generator, load, kpi, sentence in REFUSED[1:]:
        asked = replace(lab._campaign, load=load, generator=generator, kpi=kpi)
        with pytest.raises(TrafficError, match=f"^{generator} cannot measure this: .*{sentence}"):
            await preflight.choose(source, lab._path, asked, 500, {})


def sized(memory: float = 0, bandwidth: float = 0) -> Configuration:
    resources: dict[str, float | str] = {"haproxy.vcpu": 0.5}
    if memory:
        resources["haproxy.memory_bytes"] = memory
    if bandwidth:
        resources["haproxy.bandwidth_mbps"] = bandwidth
    return Configuration(resources, {"filesize_bytes": SIZE})


def looked_at(session: str) -> tuple[str, str, str]:
    form = "{{.State.Pid}} {{.HostConfig.Memory}} {{.HostConfig.MemorySwap}}"
    pid, memory, swap = docker("inspect", "--format", form, container(session, "haproxy")).split()
    return pid, memory, swap


@pytest.mark.unhurried
async def test_memory_and_bandwidth_change_in_place(open_lab: OpenLab, session: str) -> None:
    haproxy, mib = target("haproxy"), float(1 << 20)
    lab = await open_lab(CLOSED, haproxy)
    small, large = sized(256 * mib, 40), sized(512 * mib, 80)
    await lab.deploy(haproxy, small)
    pid, memory, swap = looked_at(session)
    assert memory == swap == f"{256 * mib:.0f}"
    goodput = {}
    for chosen in (small, large, small):
        await lab.allocate(chosen)
        drive = await lab.drive(point(haproxy, chosen, 8), 2.5, ignore)
        late = drive.records.succeeded & (drive.records.end_s > drive.begin_s + 1.0)
        goodput[chosen.key] = drive.records.bytes[late].sum() * 8e-6 / 1.5
    assert looked_at(session) == (pid, memory, swap), "nothing was started again"
    assert 30 < goodput[small.key] <= 41
    assert 60 < goodput[large.key] <= 82
    with pytest.raises(LabError, match="cannot be given 1 MiB of memory: it holds") as caught:
        await lab.allocate(sized(mib, 40))
    assert caught.value.where == "container haproxy"
    assert "Raise the smallest `memory`" in caught.value.remedy


@pytest.mark.unhurried
async def test_a_restart_keeps_the_bandwidth(open_lab: OpenLab) -> None:
    haproxy = target("haproxy")
    lab = await open_lab(CLOSED, haproxy, oversubscribe=True)
    narrow = sized(bandwidth=20)
    await lab.deploy(haproxy, narrow)
    more = replace(narrow, resources={**narrow.resources, "haproxy.vcpu": 1.5})
    await lab.allocate(more)
    drive = await lab.drive(point(haproxy, more, 8), 2.0, ignore)
    assert drive.threads == {"haproxy": 2}, "it was started again for its threads"
    late = drive.records.succeeded & (drive.records.end_s > drive.begin_s + 1.0)
    assert drive.records.bytes[late].sum() * 8e-6 < 21
