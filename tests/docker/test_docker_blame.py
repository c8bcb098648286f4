"""Faults provoked on the real lab: each is blamed by its name (docs/validity.md).

A shared host may add findings of its own, which stand before some of these; it takes none away.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from docker_targets import (
    SPOILT_BY_HOST,
    OpenLab,
    configuration,
    container,
    docker,
    ignore,
    noise_of,
    on_one_deployment,
    point,
    prefer,
    target,
    until_valid,
)

from workbench.domain.campaign import WindowPlan
from workbench.domain.lab import BypassCurve
from workbench.domain.parameters import LoadModel, OperatingPoint
from workbench.domain.samples import Sample
from workbench.domain.topology import VnfTemplate
from workbench.engine.runs.bypass import point_of
from workbench.labs.docker import DockerLab
from workbench.measuring.judging import Terms, judge
from workbench.measuring.records import Drive
from workbench.probes import host

pytestmark = pytest.mark.docker

CLOSED = LoadModel("closed")
OPEN = LoadModel("open", connections=64)
HAPROXY, TINYPROXY = target("haproxy"), target("tinyproxy")
WINDOWS = WindowPlan(timeout_s=6.0)
SHED = "http-request deny deny_status 503 if { fe_req_rate gt 100 }"
PERIODS_A_SECOND = 10
NETFILTER = host.NETFILTER


SHARED = pytest.mark.asyncio(loop_scope="module")
"""On a deployment that other tests drive as well."""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def closed(known: tuple[VnfTemplate, ...]) -> AsyncIterator[DockerLab]:
    async with on_one_deployment(known, CLOSED, HAPROXY, configuration(haproxy=0.25)) as lab:
        yield lab


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def opened(known: tuple[VnfTemplate, ...]) -> AsyncIterator[DockerLab]:
    async with on_one_deployment(known, OPEN, HAPROXY, configuration(haproxy=0.25)) as lab:
        yield lab


def judged(
    drive: Drive,
    at: OperatingPoint,
    load: LoadModel,
    bypass: BypassCurve | None = None,
    windows: WindowPlan = WINDOWS,
) -> Sample:
    terms = Terms(load=load, windows=windows, sla=None, kpi="p95_ms", bypass=bypass)
    lab_s = drive.stop_s - drive.begin_s
    return judge([drive], at, terms, started_at=0.0, lab_s=lab_s).measurement.sample


def rate_of(sample: Sample) -> float:
    """Answers per second."""
    rate = sample.kpi("throughput_rps")
    assert rate is not None
    return rate


def evidence(sample: Sample, reason: str) -> str:
    found = [finding.evidence for finding in sample.findings if finding.reason == reason]
    assert found, sample.findings
    return found[0]


async def test_a_client_of_one_thread_at_its_limit(
    open_lab: OpenLab, session: str, full_length: bool
) -> None:
    """The load goes past the function, and the sink answers ten times as fast as Locust asks."""
    load = LoadModel("closed", think_time_s=0.01)
    chosen = configuration(haproxy=0.25)
    lab = await open_lab(load, HAPROXY, generator="locust", most=20)
    await lab.deploy(HAPROXY, chosen)
    prefer(session, "source", "sink")
    at = point(HAPROXY, chosen, 200)  # ten times what a campaign may ask of it
    # Whoever takes a core of a shared host takes it from the client's thread, which then waits
    # where it would have run: the shortfall is seen, its cause is not.
    for _ in range(3):
        drive = await lab.drive_bypass(at, 4.5, ignore)
        assert drive is not None
        sample = judged(drive, at, load)
        assert not sample.valid
        if sample.reason == "source_saturated":
            break
    if not full_length and sample.reason == "little":
        return
    assert sample.reason == "source_saturated", sample.findings
    assert evidence(sample, "source_saturated").startswith("thread")


@pytest.mark.unhurried
@SHARED
async def test_a_noisy_neighbour(closed: DockerLab) -> None:
    chosen = configuration(haproxy=0.25)
    await closed.allocate(chosen)
    at = point(HAPROXY, chosen, 2)
    with neighbours(os.cpu_count() or 1):
        drive = await closed.drive(at, 4.5, ignore)
    sample = judged(drive, at, CLOSED)
    assert not sample.valid
    assert "the host was busy" in evidence(sample, "host_saturated")


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """Processes that burn a core each."""
    burn = [sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(burn) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


@pytest.mark.unhurried
@SHARED
async def test_a_stall_of_two_seconds(closed: DockerLab) -> None:
    """Everything of the target stands still, as on a host that is suspended."""
    chosen = configuration(haproxy=0.25)
    await closed.allocate(chosen)
    names = [container(closed._settings.session, name) for name in ("source", "haproxy", "sink")]
    at = point(HAPROXY, chosen, 2)
    driving = asyncio.create_task(closed.drive(at, 5.5, ignore))
    await asyncio.sleep(2.5)
    await asyncio.to_thread(docker, "pause", *names)
    await asyncio.sleep(2.0)
    await asyncio.to_thread(docker, "unpause", *names)
    sample = judged(await driving, at, CLOSED)
    assert not sample.valid
    assert evidence(sample, "unsteady")


@pytest.mark.unhurried
async def test_a_connection_table_that_is_nearly_full(
    open_lab: OpenLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the host's own count, against a limit that only the workbench reads: nobody loses any."""
    limit = told_limit(tmp_path, monkeypatch)
    assert "the connection table held" in await driven_to_the_limit(open_lab, limit)


@pytest.mark.long  # others on this host are short of connections, too
async def test_a_connection_table_whose_limit_is_the_hosts(open_lab: OpenLab) -> None:
    limit = NETFILTER / "nf_conntrack_max"
    assert "the connection table held" in await driven_to_the_limit(open_lab, limit)


async def driven_to_the_limit(open_lab: OpenLab, limit: Path) -> str:
    """What is said of a table that fills up while load is driven."""
    chosen = configuration(tinyproxy=0.25)
    lab = await open_lab(OPEN, TINYPROXY)
    await lab.deploy(TINYPROXY, chosen)
    at = point(TINYPROXY, chosen, 300)
    with connection_table(limit, room=2_000):
        drive = await lab.drive(at, 4.5, ignore)
    sample = judged(drive, at, OPEN)
    assert not sample.valid
    return evidence(sample, "conntrack_full")


def told_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A limit that is the workbench's alone, beside the host's own count."""
    (folder / "nf_conntrack_count").symlink_to(NETFILTER / "nf_conntrack_count")
    limit = folder / "nf_conntrack_max"
    limit.write_text((NETFILTER / limit.name).read_text())
    monkeypatch.setattr(host, "NETFILTER", folder)
    return limit


@contextmanager
def connection_table(limit: Path, room: int) -> Iterator[None]:
    """The host's connection table with room for so many more, others' in it; the limit as it was
    comes back."""
    before = limit.read_text()
    limit.write_text(str(int((NETFILTER / "nf_conntrack_count").read_text()) + room))
    try:
        yield
    finally:
        limit.write_text(before)


@pytest.mark.unhurried
async def test_fast_503s(open_lab: OpenLab, known: tuple[VnfTemplate, ...]) -> None:
    """A function that sheds load answers fast: the median falls, and the sample is no answer."""
    haproxy = next(template for template in known if template.name == "haproxy")
    shedding = replace(
        haproxy,
        files=tuple(
            replace(file, text=file.text.replace("backlog 4096\n", f"backlog 4096\n    {SHED}\n"))
            for file in haproxy.files
        ),
    )
    chosen = configuration(haproxy=0.25)
    lab = await open_lab(CLOSED, HAPROXY, changed=shedding)
    await lab.deploy(HAPROXY, chosen)
    at = point(HAPROXY, chosen, 4)
    sample = judged(await lab.drive(at, 4.5, ignore), at, CLOSED)
    assert not sample.valid
    assert "answered with an error" in evidence(sample, "errors")


@pytest.mark.unhurried
async def test_answers_that_do_not_come_in_time(open_lab: OpenLab, session: str) -> None:
    """The gaps of the quota, 94 ms of each 100, are longer than a client waits."""
    chosen = configuration(haproxy=0.0625)
    impatient = replace(WINDOWS, request_timeout_s=0.08)
    lab = await open_lab(CLOSED, HAPROXY, request_timeout_s=impatient.request_timeout_s)
    await lab.deploy(HAPROXY, chosen)
    prefer(session, "source", "sink")
    at = point(HAPROXY, chosen, 8)
    sample = judged(await lab.drive(at, 4.5, ignore), at, CLOSED, windows=impatient)
    assert not sample.valid
    assert evidence(sample, "timeout")


@SHARED
async def test_overload_of_what_is_no_cpu_is_valid_and_named(opened: DockerLab) -> None:
    """40 Mbit/s carry five hundred answers of 10 kB, and a quarter of a core far more."""
    chosen = configuration(haproxy=0.25)
    chosen = replace(chosen, resources={**chosen.resources, "haproxy.bandwidth_mbps": 40.0})
    await opened.allocate(chosen)
    at = point(HAPROXY, chosen, 900)

    async def measured() -> Sample:
        return judged(await opened.drive(at, 5.5, ignore), at, OPEN)

    sample, _ = await until_valid(measured)
    assert {"backlog", "overloaded", "not_cpu_limited"} <= set(sample.labels), sample.remarks


@pytest.mark.long  # the judge's own arithmetic, on real records
@SHARED
async def test_a_window_too_short_for_its_load(opened: DockerLab) -> None:
    chosen = configuration(haproxy=0.25)
    await opened.allocate(chosen)
    at = point(HAPROXY, chosen, 20)
    sample = judged(await opened.drive(at, 4.5, ignore), at, OPEN)
    assert not sample.valid
    assert evidence(sample, "too_few")


@SHARED
async def test_gaps_of_the_quota_are_named(closed: DockerLab) -> None:
    """With so many clients that one request in twenty meets a gap; how many hangs on the host."""
    chosen = configuration(haproxy=0.125)
    await closed.allocate(chosen)
    prefer(closed._settings.session, "source", "haproxy", "sink")
    noise = 0.0

    async def measured(clients: int) -> Sample:
        nonlocal noise
        at = point(HAPROXY, chosen, clients)
        drive = await closed.drive(at, 4.5, ignore)
        noise = noise_of(drive)
        return judged(drive, at, CLOSED)

    for _ in range(3):  # a host that others use leaves the function too little to be throttled
        full = await measured(16)
        clients = max(1, round(0.05 * rate_of(full) / PERIODS_A_SECOND))
        sample = await measured(clients)
        if {"throttled", "quota_jump"} <= set(sample.labels):
            break
    if sample.reason not in SPOILT_BY_HOST:
        assert {"throttled", "quota_jump"} <= set(sample.labels), (clients, sample.remarks)
    met = clients * PERIODS_A_SECOND * sample.usage["haproxy"].throttled_share
    assert sample.straddle_share == pytest.approx(met / rate_of(sample), rel=0.5 + noise), (
        "each client meets each gap"
    )


@SHARED
async def test_a_starved_sink(closed: DockerLab) -> None:
    """Past the function no more is answered either."""
    chosen = configuration(haproxy=0.5, sink=0.03)
    await closed.allocate(chosen)
    prefer(closed._settings.session, "source", "sink")
    at = point(HAPROXY, chosen, 8)
    drive = await closed.drive_bypass(at, 4.5, ignore)
    assert drive is not None
    seen = point_of(judged(drive, at, CLOSED), CLOSED)
    assert seen is not None
    assert "sink" in seen.limited_by
    assert closed._choice is not None
    curve = BypassCurve(closed._choice.title, CLOSED.key, True, chosen.workload, (seen,))
    sample = judged(await closed.drive(at, 4.5, ignore), at, CLOSED, curve)
    assert sample.reason == "sink_saturated"
    assert "sink" in evidence(sample, "sink_saturated")
    assert "without the functions" in evidence(sample, "bypass_limited")
    assert "bypass_share" in sample.labels
