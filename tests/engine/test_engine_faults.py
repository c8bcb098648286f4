"""Labs that fail: one more try, then the configuration, then the run; nothing stored is lost."""

from __future__ import annotations

import pytest
from engine_fakes import FaultyLab
from engine_watching import SLOW, SMALL, Watched, kinds, stored_events, stored_samples

from workbench.domain.errors import LabError
from workbench.domain.events import (
    BypassMeasured,
    ConfigurationFinished,
    LogWritten,
    Noted,
    PointAsked,
    RunFinished,
    RunStarted,
    SampleTaken,
)
from workbench.domain.messages import (
    EventPage,
    ListEvents,
    ListSessions,
    ResumeSession,
    RunAccepted,
    RunCampaign,
    SessionList,
    StopRun,
)
from workbench.domain.parameters import Configuration
from workbench.engine.runs.sample_runner import NO_BYPASS
from workbench.link.socket import SocketClient
from workbench.locks import Holder, HostLock
from workbench.paths import measuring_lock

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.usefixtures("faulty")]

HALF = 0.5


async def run(client: SocketClient, session: str, **options: float) -> tuple[Watched, RunFinished]:
    await client.ask(RunCampaign(SMALL, session=session, lab="faulty", **options))  # type: ignore[arg-type]
    async with client.follow(session) as feed:
        watched = Watched(feed)
        return watched, await watched.finish()


def failing(
    monkeypatch: pytest.MonkeyPatch, trouble: str, attempts: set[int] | None, *, half: bool = False
) -> None:
    """Let drives fail: those with these numbers, or all; all or those of half a core."""
    count = 0

    def fails(attempted: str, configuration: Configuration | None) -> str | None:
        nonlocal count
        if attempted != "drive":
            return None
        assert configuration is not None
        if half and configuration.vcpu("tinyproxy") != HALF:
            return None
        count += 1
        return trouble if attempts is None or count in attempts else None

    monkeypatch.setattr(FaultyLab, "failing", staticmethod(fails))


async def test_a_function_that_crashes_once_is_deployed_again(
    client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, "it crashed", {3})
    watched, finished = await run(client, "hiccup")
    assert finished.outcome == "done"
    notes = [e.fact.text for e in watched.events if isinstance(e.fact, Noted)]
    assert len([note for note in notes if "it crashed" in note and "once more" in note]) == 1
    assert kinds(watched.events).count("TargetDeployed") == 2
    samples = await stored_samples(client, "hiccup")
    assert len({s.id for s in samples}) == len(samples) == finished.samples


async def test_what_a_function_wrote_is_stored_before_it_is_removed(
    client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, "it crashed", {3})
    await run(client, "wrote")
    events = await stored_events(client, "wrote")
    (at,) = (i for i, e in enumerate(events) if isinstance(e.fact, Noted) and "crash" in str(e))
    last, noted = events[at - 1].fact, events[at].fact
    assert isinstance(last, LogWritten)
    assert isinstance(noted, Noted)
    assert (last.target, last.sample, last.log.component) == ("tinyproxy", "", "tinyproxy")
    assert last.log.lines[-1].text == "\x1b[31mpanic: it crashed\x00"
    assert last.log.lines[-1].level == "error"
    assert "; read what was written until then (workbench show wrote --logs)." in noted.text

    page = await client.ask(ListEvents("wrote", kinds=("LogWritten",)))
    assert isinstance(page, EventPage)
    assert page.events == tuple(e for e in events if isinstance(e.fact, LogWritten))
    samples = {sample.id for sample in await stored_samples(client, "wrote")}
    of_samples = {e.fact.sample for e in page.events if isinstance(e.fact, LogWritten)} - {""}
    assert of_samples
    assert of_samples <= samples, "another allocation is told with the sample that it is for"


async def test_a_configuration_that_cannot_be_measured_is_unusable_and_tried_again_on_resume(
    client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, "it crashes", None, half=True)
    watched, finished = await run(client, "half")
    assert finished.outcome == "done"
    states = {
        c.configuration.vcpu("tinyproxy"): (c.state, c.note) for c in watched.view.configurations
    }
    assert states[HALF][0] == "unusable"
    assert "it crashes" in states[HALF][1]
    assert states[0.25][0] in ("converged", "max_samples")
    unresolved = {
        b.state for b in finished.breakpoints if b.configuration.vcpu("tinyproxy") == HALF
    }
    assert unresolved == {"unresolved"}

    failing(monkeypatch, "", set())
    await client.ask(ResumeSession("half"))
    async with client.follow("half") as feed:
        assert (await Watched(feed).finish()).outcome == "done"
        assert {c.state for c in feed.view.configurations} <= {"converged", "max_samples"}


async def test_a_lab_that_dies_fails_the_run_and_keeps_what_was_taken(
    client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, "no engine answers", set(range(5, 100)))
    watched, finished = await run(client, "dead")
    assert finished.outcome == "failed"
    assert "no engine answers" in finished.note
    assert "Look at its log" in finished.note
    assert len(await stored_samples(client, "dead")) == 4
    assert {c.state for c in watched.view.configurations} == {"stopped"}

    failing(monkeypatch, "", set())
    await client.ask(ResumeSession("dead"))
    async with client.follow("dead") as feed:
        assert (await Watched(feed).finish()).outcome == "done"
    taken = [s.id for s in await stored_samples(client, "dead")]
    assert len(set(taken)) == len(taken)


async def test_a_bypass_is_measured_once_and_known_after_a_resume(client: SocketClient) -> None:
    await client.ask(RunCampaign(SMALL, session="bypass", lab="faulty"))
    async with client.follow("bypass") as feed:
        watched = Watched(feed)
        curve = (await watched.fact(BypassMeasured)).fact
        await watched.fact(SampleTaken)
        await client.ask(StopRun("bypass", abort=True))
        await watched.finish()
        await client.ask(ResumeSession("bypass"))
        assert (await watched.finish()).outcome == "done"
    assert isinstance(curve, BypassMeasured)
    assert curve.lab_s > 0
    assert len(curve.curve.points) >= 4
    assert kinds(await stored_events(client, "bypass")).count("BypassMeasured") == 1
    assert watched.view.bypasses == [curve.curve]
    most = max(point.throughput_rps for point in curve.curve.points)
    samples = await stored_samples(client, "bypass")
    assert {s.bypass.throughput_rps for s in samples if s.bypass} == {most}
    assert all(s.bypass for s in samples)


@pytest.mark.slow
async def test_a_campaign_goes_on_without_a_bypass_and_says_so(
    client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        FaultyLab,
        "failing",
        staticmethod(lambda attempted, _: "the sink hangs" if attempted == "bypass" else None),
    )
    watched, finished = await run(client, "no-bypass")
    assert finished.outcome == "done"
    notes = [e.fact.text for e in watched.events if isinstance(e.fact, Noted)]
    assert len([n for n in notes if "the sink hangs" in n and "not checked" in n]) == 1
    assert all(s.bypass is None for s in await stored_samples(client, "no-bypass"))

    monkeypatch.setattr(FaultyLab, "failing", staticmethod(lambda attempted, configuration: None))
    monkeypatch.setattr(FaultyLab, "has_bypass", False)
    watched, finished = await run(client, "no-path")
    assert finished.outcome == "done"
    notes = [e.fact.text for e in watched.events if isinstance(e.fact, Noted)]
    assert notes.count(NO_BYPASS) == 1


@pytest.mark.slow
async def test_a_bypass_on_a_busy_host_is_measured_again_and_no_sample_is_held_against_it(
    client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for session, drives in (("busy-once", 1), ("busy", 100)):
        monkeypatch.setattr(FaultyLab, "busy_bypasses", drives)
        watched, finished = await run(client, session)
        assert finished.outcome == "done"
        (curve,) = watched.view.bypasses
        notes = [e.fact.text for e in watched.events if isinstance(e.fact, Noted)]
        told = [note for note in notes if "limited by a busy host twice" in note]
        samples = await stored_samples(client, session)
        assert all(s.bypass for s in samples)
        if drives == 1:
            assert len(curve.points) >= 4
            assert not any(point.busy_host for point in curve.points)
            assert told == []
        else:  # the lowest rate is all that was seen, far under what samples carry
            assert [point.busy_host for point in curve.points] == [True]
            assert len(told) == 1
            assert "the host was busy with" in told[0]
            carried = [s.kpis["throughput_rps"].value for s in samples if s.valid]
            assert max(carried) > 2 * curve.points[0].throughput_rps
            reasons = {finding.reason for s in samples for finding in s.findings}
            assert "bypass_limited" not in reasons


async def test_another_image_is_refused_on_resume(
    client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.ask(RunCampaign(SMALL, session="image", lab="faulty", pace=SLOW))
    async with client.follow("image") as feed:
        watched = Watched(feed)
        await watched.fact(PointAsked)
        await client.ask(StopRun("image", abort=True))
        await watched.finish()
    monkeypatch.setattr(FaultyLab, "digest", "sha256:2")
    with pytest.raises(LabError, match="image of tinyproxy"):
        await client.ask(ResumeSession("image"))
    monkeypatch.setattr(FaultyLab, "digest", "sha256:1")
    await client.ask(ResumeSession("image"))
    async with client.follow("image") as feed:
        assert (await Watched(feed).finish()).outcome == "done"


async def test_a_campaign_waits_for_the_lock_of_the_host(client: SocketClient) -> None:
    other = HostLock(measuring_lock())
    assert other.take(Holder(1, "/another/workspace", "theirs"))
    FaultyLab.reaped.clear()
    try:
        reply = await client.ask(RunCampaign(SMALL, session="waiting", lab="faulty"))
        assert isinstance(reply, RunAccepted)
        assert "theirs" in reply.queued_behind
        async with client.follow("waiting") as feed:
            watched = Watched(feed)
            await watched.phase("queued")
            await watched.phase("queued")
            assert "RunStarted" not in kinds(await stored_events(client, "waiting"))
            listed = await client.ask(ListSessions())
            assert isinstance(listed, SessionList)
            assert {s.name: s.state for s in listed.sessions}["waiting"] == "planned"
            # The simulated lab loads no host: it need not wait for the lock.
            other.free()
            await watched.fact(RunStarted)
            assert not other.take(Holder(1, "/another/workspace", "theirs"))
            await watched.fact(SampleTaken)
            await client.ask(StopRun("waiting", abort=True))
            await watched.finish()
    finally:
        other.free()
    assert FaultyLab.reaped == [frozenset()], "strays go before the first deployment"


async def test_a_sampler_that_breaks_fails_the_run_with_a_sentence(
    client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(attempted: str, configuration: Configuration | None) -> str | None:
        raise ZeroDivisionError("a bug in a lab")

    monkeypatch.setattr(FaultyLab, "failing", staticmethod(broken))
    watched, finished = await run(client, "bug")
    assert finished.outcome == "failed"
    assert finished.note.startswith("Unexpected ZeroDivisionError: a bug in a lab")
    assert not any(
        isinstance(e.fact, ConfigurationFinished) and e.fact.samples for e in watched.events
    )
