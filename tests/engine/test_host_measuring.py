"""`doctor --measure` in an engine: what is found is kept, stored with sessions, and torn down."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from engine_fakes import FaultyLab
from engine_watching import SMALL, Watched

from workbench.domain.errors import EngineError, LabError, UsageError
from workbench.domain.lab import (
    HOST_NOISE,
    Examined,
    HostMeasured,
    HostNoise,
    MeasureHost,
    RunDoctor,
)
from workbench.domain.messages import (
    Compared,
    CompareSessions,
    Done,
    EngineStatus,
    GetStatus,
    RunCampaign,
    StopRun,
    Viewed,
    ViewSession,
)
from workbench.engine.core import Engine
from workbench.engine.runs import noises
from workbench.link.socket import SocketClient
from workbench.paths import noise_folder

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.usefixtures("faulty")]

KPIS = {"throughput_rps", "mean_ms", "p95_ms"}


async def until_the_a_a_run(client: SocketClient, measuring: asyncio.Future[Any]) -> None:
    """Return once it has begun; raises what ended it before."""
    while not measuring.done():
        status = await client.ask(GetStatus())
        assert isinstance(status, EngineStatus)
        if "A/A run" in status.host_measuring:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(await measuring)


@pytest.mark.slow
async def test_what_is_measured_is_kept_and_stored_with_every_session(client: SocketClient) -> None:
    measured = await client.ask(MeasureHost("sim", seed=3, pairs=4))
    assert isinstance(measured, HostMeasured)
    noise = measured.noise
    assert (noise.lab, noise.deployments, noise.samples) == ("sim", 4, 8)
    assert noise.generator.startswith("simulated ")
    for figures in (
        noise.window_sd,
        noise.restart_sd,
        noise.drift_sd,
        noise.smallest_difference,
    ):
        assert set(figures) == KPIS
    assert all(0 < noise.window_sd[kpi] < noise.smallest_difference[kpi] < 2 for kpi in KPIS)
    checks = {check.name: check for check in measured.checks}
    assert {"source and sink", "null pairs of p95_ms"} <= set(checks)
    assert noises.known("sim") == noise

    for session, lab in (("with", "sim"), ("without", "sim:window_sd=0.02")):
        await client.ask(RunCampaign(SMALL, session=session, lab=lab))
        async with client.follow(session) as feed:
            await Watched(feed).finish()
        viewed = await client.ask(ViewSession(session))
        assert isinstance(viewed, Viewed)
        assert viewed.view.noise == (noise if session == "with" else None)

    examined = await client.ask(RunDoctor())
    assert isinstance(examined, Examined)
    lines = {check.name: check for check in examined.checks}
    assert lines["noise sim"].state == "ok"
    assert noise.in_words() in lines["noise sim"].found
    assert lines["noise docker"].state == "warning"

    compared = await client.ask(CompareSessions("with", "with"))
    assert isinstance(compared, Compared)
    assert compared.differences
    assert {d.floor for d in compared.differences} <= set(noise.smallest_difference.values())
    assert {d.verdict for d in compared.differences} <= {
        "no_visible_difference",
        "not_comparable",
    }
    apart = await client.ask(CompareSessions("with", "without"))
    assert isinstance(apart, Compared)
    assert {d.verdict for d in apart.differences} == {"not_comparable"}


async def test_a_broken_file_is_a_sentence_and_as_good_as_none(client: SocketClient) -> None:
    path = noises.file_of("sim:hop_us=1")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"lab": "sim:hop')
    assert noises.known("sim:hop_us=1") is None
    examined = await client.ask(RunDoctor())
    assert isinstance(examined, Examined)
    line = next(check for check in examined.checks if check.name == f"noise {path.stem}")
    assert line.state == "warning"
    assert "cannot be read: not JSON" in line.found
    assert "doctor --measure" in line.remedy
    path.unlink()


async def test_what_is_kept_replaces_what_was_there_whole() -> None:
    noise = HostNoise("sim:hop_us=2", "g", 1.0, 8, 4, {}, {}, {}, {"p95_ms": 0.1}, 0.0)
    path = noises.keep(noise)
    assert noises.keep(replace(noise, measured_at=2.0)) == path
    assert noises.read(path).measured_at == 2.0
    assert [p.name for p in noise_folder().iterdir() if p.name.startswith(path.stem)] == [path.name]
    path.unlink()


async def test_the_noise_of_another_host_is_not_applied(client: SocketClient) -> None:
    lab = "sim:hop_us=3"
    kept = HostNoise(lab, "g", 1.0, 8, 4, {}, {}, {}, {"p95_ms": 0.1}, 0.0, "another CPU", 64)
    path = noises.keep(kept)
    await client.ask(RunCampaign(SMALL, session="elsewhere", lab=lab, budget_s=1.0))
    async with client.follow("elsewhere") as feed:
        watched = Watched(feed)
        await watched.finish()
    assert watched.view.noise is None
    assert any("64 cores, another CPU" in line.text for line in watched.view.log)
    path.unlink()


async def test_it_ends_when_told_and_gives_back_lab_and_lock(
    engine: Engine, client: SocketClient
) -> None:
    before = noises.known("faulty")
    measuring = asyncio.ensure_future(client.ask(MeasureHost("faulty", pairs=1000)))
    await until_the_a_a_run(client, measuring)
    holder = engine.host_lock.holder()
    assert holder is not None
    assert holder.session == HOST_NOISE
    with pytest.raises(UsageError, match="measured already"):
        await client.ask(MeasureHost("sim"))
    assert isinstance(await client.ask(StopRun(HOST_NOISE, abort=True)), Done)
    with pytest.raises(EngineError, match="was stopped"):
        await measuring
    assert engine.host_lock.holder() is None
    assert noises.known("faulty") == before
    status = await client.ask(GetStatus())
    assert isinstance(status, EngineStatus)
    assert status.host_measuring == ""


async def test_a_lab_that_fails_is_a_sentence_and_torn_down(
    client: SocketClient, faulty: type[FaultyLab], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        faulty,
        "failing",
        staticmethod(lambda attempted, configuration: {"drive": "it burns"}.get(attempted)),
    )
    with pytest.raises(LabError, match="it burns"):
        await client.ask(MeasureHost("faulty", pairs=4))


async def test_a_function_that_cannot_be_saturated_is_a_sentence(client: SocketClient) -> None:
    with pytest.raises(LabError, match=r"haproxy at 12.5% of a core answers \d+ of"):
        await client.ask(MeasureHost("sim:host_cores=64,source_cores=0.02", pairs=4))


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (MeasureHost("sim", pairs=3), "3 pairs are too few"),
        (MeasureHost("recorded:demo"), "no load can be driven there"),
    ],
)
async def test_what_cannot_be_measured_is_refused(
    client: SocketClient, request_: MeasureHost, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        await client.ask(request_)
