"""One thousand kills -9 of whatever works: what was announced is there, nothing is there twice.

    pytest --accept acceptance/test_kills.py --minutes 5 --results reliability.json

Engines and commands are forked from a process that has made their imports; from there on they are
what is installed. Moments are seeded, and so is whether the command or its engine is killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio
from driving import REPOSITORY, Workbench, a_workbench
from engine_watching import SLOW, SMALL, Watched, same, stored_events, stored_samples
from real_campaigns import short_campaign
from tally import MakeTally
from terminal import Terminal
from yard import LONGEST_S, Yard, a_yard, below

from workbench.domain.errors import EngineError
from workbench.domain.events import Event, Noted, PointAsked, RunFinished, SampleTaken, UsageTick
from workbench.domain.messages import (
    ListSessions,
    ResumeSession,
    RunCampaign,
    SessionList,
    StopRun,
)
from workbench.domain.samples import Sample
from workbench.engine.process import serving
from workbench.engine.runs import busy_host
from workbench.link.local import LocalClient
from workbench.paths import Workspace
from workbench.probes.process import PROC

FUNCTIONS = REPOSITORY / "tests" / "engine" / "canary_functions.yaml"
CHAIN = ("--chain", "tinyproxy-haproxy")
GENERATORS = {"oha", "steady", "hey", "wrk", "h2load"}
SAMPLES = 12
"""Of a campaign whose generators are killed, at most; a kill for each but the first."""
MOST_KILLS = 6
"""Of one session, which is then brought to its end and looked at."""


@pytest_asyncio.fixture
async def yard(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Yard]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(workbench.runtime))
    workbench.variables["DOCKER_HOST"] = f"unix://{workbench.runtime}/none"
    async with a_yard(workbench) as made:
        yield made


def run_of(session: str, pace: float | None) -> RunCampaign:
    return RunCampaign(SMALL, session=session, lab="sim", seed=7, pace=pace)


async def undisturbed(yard: Yard) -> list[Sample]:
    """What the campaign measures where nobody kills anything."""
    client = await yard.engine_up()
    await client.ask(run_of("whole", None))
    async with client.follow("whole") as feed:
        assert (await Watched(feed).finish()).outcome == "done"
    return await stored_samples(client, "whole")


async def brought_to_its_end(yard: Yard, session: str, whole: list[Sample]) -> None:
    client = await yard.engine_up()
    listed = await client.ask(ListSessions())
    assert isinstance(listed, SessionList)
    state = {s.name: s.state for s in listed.sessions}[session]
    if state != "finished":
        assert state in ("interrupted", "failed", "planned"), state
        await client.ask(ResumeSession(session))
        async with client.follow(session) as feed:
            assert (await Watched(feed).finish()).outcome == "done"
    assert same(await stored_samples(client, session), whole)


@pytest.mark.slow
async def test_engines(yard: Yard, tally: MakeTally) -> None:
    counts = tally("kills", {"engine": 450})
    whole = await undisturbed(yard)
    announced: list[Event] = []
    session, killed = "", 0
    for number in counts.numbers("engine"):
        dice = random.Random(number)
        client = await yard.engine_up()
        if not session:
            session, killed, announced = f"killed-{number}", 0, []
            await client.ask(run_of(session, dice.choice((4 * SLOW, 20 * SLOW))))
        else:
            events = await yard.whole(session, announced)
            if not isinstance(events[-1].fact, RunFinished):
                await client.ask(ResumeSession(session, pace=dice.choice((4 * SLOW, 20 * SLOW))))
        changes = dice.choice((0, dice.randint(0, 4), dice.randint(0, 40)))
        async with client.follow(session) as feed:
            begun = feed.view.state
            watched = Watched(feed)
            with_end = begun == "finished"
            while changes > 0 and not with_end:
                change = await watched.until(lambda _: True)
                with_end = isinstance(change, Event) and isinstance(change.fact, RunFinished)
                changes -= 1
            await asyncio.sleep(dice.choice((0.0, 0.0, dice.random() / 20)))
            await yard.kill_engine()
            with pytest.raises((EngineError, AssertionError)):  # the rest of what was announced
                await watched.until(lambda _: False)
            announced += watched.events
        killed += 1
        if killed >= MOST_KILLS or with_end:
            await yard.whole(session, announced)
            await brought_to_its_end(yard, session, whole)
            session = ""
    if session:
        await yard.whole(session, announced)
        await brought_to_its_end(yard, session, whole)
    counts.keep()


@pytest.mark.slow
async def test_workers(yard: Yard, tally: MakeTally) -> None:
    """A run goes on over a worker that dies; where it died twice over one call it is resumed."""
    counts = tally("kills", {"worker": 150})
    whole = await undisturbed(yard)
    client = await yard.engine_up()
    session = ""
    for number in counts.numbers("worker"):
        dice = random.Random(number)
        if not session:
            session = f"killed-{number}"
            await client.ask(run_of(session, 20 * SLOW))
        async with client.follow(session) as feed:
            watched = Watched(feed)
            ended = feed.view.state not in ("planned", "running")
            for _ in range(dice.randint(0, 25)):
                if ended:
                    break
                change = await watched.until(lambda _: True)
                ended = isinstance(change, Event) and isinstance(change.fact, RunFinished)
            await asyncio.sleep(dice.random() / 20)
            workers = [] if ended else await yard.next_workers(session)
            for worker in workers:
                with suppress(ProcessLookupError):  # it ended by itself
                    os.kill(worker, 9)
            if not workers:
                counts.in_vain("worker")
        if ended or dice.random() < 0.2:
            await yard.idle()
            await brought_to_its_end(yard, session, whole)
            session = ""
    if session:
        await yard.idle()
        await brought_to_its_end(yard, session, whole)
    counts.keep()


@pytest.mark.long
async def test_screens(yard: Yard, tally: MakeTally) -> None:
    """A screen that dies is one client less; the run that it showed goes on."""
    counts = tally("kills", {"screen": 100})
    client = await yard.engine_up()
    long = "long"
    await client.ask(RunCampaign("demo", session=long, lab="sim", seed=7, pace=2.0))
    async with yard.following(long) as announced:
        for number in counts.numbers("screen"):
            dice = random.Random(number)
            screen = Terminal(yard.workbench, columns=100, rows=30)
            if dice.random() < 0.7:
                await asyncio.to_thread(screen.until, long)
                for key in dice.choices(("\r", "2", "3", "4", "?", "\x1b", "n", "/"), k=4):
                    screen.press(key)
            await asyncio.sleep(dice.random())
            screen.process.kill(9)
            screen.process.close()
            async with asyncio.timeout(LONGEST_S):
                await yard.until(lambda status: status.clients == 1 and status.running == long)
        await yard.until(lambda _: bool(announced))  # the run has gone on, with or without a screen
    await client.ask(StopRun(long, abort=True))
    await yard.idle()
    await yard.whole(long, announced)
    counts.keep()


def generators() -> list[int]:
    """Those that engines of this process have started, on the lab of namespaces."""
    found = []
    for pid in below(os.getpid()):
        with suppress(OSError):
            if (PROC / str(pid) / "comm").read_text().strip() in GENERATORS:
                found.append(pid)
    return found


@pytest.mark.long
@pytest.mark.needs("apt-get", "dpkg-deb", "ip", "nsenter")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces")
async def test_generators(
    workbench: Workbench, tally: MakeTally, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Real load on a real lab: a point whose generator dies is measured again, and the torn
    sample is none. Kills lie apart, a sample between any two: else the lab is at fault."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(workbench.runtime))
    # A host that others keep busy makes a run wait; nothing here is about what is measured.
    monkeypatch.setattr(busy_host, "STREAK", sys.maxsize)
    counts = tally("kills", {"generator": 30})
    numbers = counts.numbers("generator")
    number = next(numbers, None)
    campaign = str(short_campaign(tmp_path, SAMPLES))
    async with serving(Workspace(tmp_path)) as engine:
        client = LocalClient(engine, "tester")
        while number is not None:
            session, killed, ready = f"killed-{number}", 0, False
            await client.ask(RunCampaign(campaign, session=session, lab="netns"))
            announced: list[Event] = []
            async with client.follow(session) as feed:
                async for change in feed.changes:
                    if isinstance(change, UsageTick) and ready and number is not None:
                        await asyncio.sleep(random.Random(number).random())
                        victims = generators()
                        for pid in victims:
                            with suppress(ProcessLookupError):  # it ended by itself
                                os.kill(pid, 9)
                        if victims:
                            killed, ready, number = killed + 1, False, next(numbers, None)
                    if isinstance(change, Event):
                        announced.append(change)
                        ready = ready or isinstance(change.fact, SampleTaken)
                        if isinstance(change.fact, RunFinished):
                            break
            events = await stored_events(client, session)
            assert [e for e in announced if events[e.seq - 1] != e] == []
            finished = events[-1].fact
            assert isinstance(finished, RunFinished)
            assert finished.outcome == "done", finished.note
            ids = [sample.id for sample in await stored_samples(client, session)]
            assert len(set(ids)) == len(ids) == finished.samples
            facts = [event.fact for event in events]
            asked = {(f.wl, f.repetition) for f in facts if isinstance(f, PointAsked)}
            points = [f.sample.point for f in facts if isinstance(f, SampleTaken)]
            assert {(point.wl, point.repetition) for point in points} == asked
            again = [f for f in facts if isinstance(f, Noted) and "once more" in f.text]
            assert len(again) <= killed, "one that had just ended by itself cost nothing"
    counts.keep()


# ---------------------------------------------------------------------- commands


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session in which two functions are profiled, to be copied, and beside it its bundle."""
    with a_workbench(tmp_path_factory.mktemp("profiled")) as made:
        made.run("run", str(FUNCTIONS), "--session", "f", "--lab", "sim", "--seed", "3")
        kept = made.root / "sessions" / "f.duckdb"
        made.run("export", "f", "--as", "bundle", "--output", str(kept.with_suffix(".bundle")))
    return kept


def copy_of(yard: Yard, profiled: Path, session: str) -> None:
    shutil.copy(profiled, yard.workspace.sessions / f"{session}.duckdb")


async def kill_one_of(yard: Yard, dice: random.Random, longest_s: float, *arguments: str) -> bool:
    """Start a command, kill it or its engine a little later. Whether one of them died by that."""
    await yard.engine_up()
    victim = yard.start(*arguments)
    await asyncio.sleep(dice.random() * longest_s)
    if dice.random() < 0.5:
        await yard.kill_engine()
        await yard.ended(victim)
        return True
    victim.kill()
    code, _ = await yard.ended(victim)
    return code == -9


def no_partial_files(folder: Path) -> None:
    left = [path.name for path in folder.iterdir() if ".partial" in path.name]
    assert not left, f"{folder}: {left}"


MEASURING = {
    "canary": (60, 1.5, ("canary", *CHAIN, "--guard", "mean<=200ms", "--steps", "5", "--json")),
    "recommend --verify": (
        60,
        2.5,
        ("recommend", *CHAIN, "--sla", "mean<=100ms @ rate=300/s", "--verify", "--json"),
    ),
}
"""How many kills, the longest that is waited before one, and the command without its session."""


@pytest.mark.slow
@pytest.mark.parametrize("part", MEASURING)
async def test_commands_that_measure(
    yard: Yard, profiled: Path, tally: MakeTally, part: str
) -> None:
    wanted, longest_s, (command, *options) = MEASURING[part]
    counts = tally("kills", {part: wanted})
    copy_of(yard, profiled, "f")
    before = await stored_events(await yard.engine_up(), "f")
    for number in counts.numbers(part):
        session = f"{command}-{number}"
        copy_of(yard, profiled, session)
        async with yard.following(session) as announced:
            dice = random.Random(number)
            if not await kill_one_of(yard, dice, longest_s, command, session, *options):
                counts.in_vain(part)
            if yard.client is not None:
                await yard.idle()  # what was begun goes to its end, or ends
                await asyncio.sleep(0)
        events = await yard.whole(session, announced)
        assert [e.fact for e in events[: len(before)]] == [e.fact for e in before]
        listed = await (await yard.engine_up()).ask(ListSessions())
        assert isinstance(listed, SessionList)
        assert {s.name: s.state for s in listed.sessions}[session] == "finished"
        ids = [s.id for s in await stored_samples(await yard.engine_up(), session)]
        assert len(set(ids)) == len(ids)
        for file in yard.workspace.sessions.glob(f"{session}.duckdb*"):
            file.unlink()
    counts.keep()


async def test_imports(yard: Yard, profiled: Path, tally: MakeTally) -> None:
    counts = tally("kills", {"import": 50})
    copy_of(yard, profiled, "f")
    before = await stored_events(await yard.engine_up(), "f")
    bundle = str(profiled.with_suffix(".bundle"))
    for number in counts.numbers("import"):
        session = f"import-{number}"
        dice = random.Random(number)
        if not await kill_one_of(yard, dice, 0.6, "import", bundle, "--session", session):
            counts.in_vain("import")
        if yard.client is not None:
            await yard.kill_engine()
        await yard.engine_up()  # sweeps
        no_partial_files(yard.workspace.sessions)
        if (yard.workspace.sessions / f"{session}.duckdb").exists():
            events = await yard.whole(session, [])
            assert [e.fact for e in events] == [e.fact for e in before]
        else:
            again = yard.start("import", bundle, "--session", session)
            assert (await yard.ended(again))[0] == 0
    counts.keep()


async def test_exports(yard: Yard, profiled: Path, tally: MakeTally) -> None:
    counts = tally("kills", {"export": 50})
    copy_of(yard, profiled, "f")
    before = await stored_events(await yard.engine_up(), "f")
    exports = yard.workspace.exports
    for number in counts.numbers("export"):
        dice = random.Random(number)
        kind = dice.choice(("bundle", "csv"))
        if not await kill_one_of(yard, dice, 0.6, "export", "f", "--as", kind):
            counts.in_vain("export")
        if yard.client is not None:
            await yard.kill_engine()
        client = await yard.engine_up()
        if exports.exists():
            no_partial_files(exports)
        if (exports / "f.bundle").exists():
            # What lies there, of this kill or an earlier one, is whole.
            events = await stored_events(client, str(exports / "f.bundle"))
            assert [e.fact for e in events] == [e.fact for e in before]
    counts.keep()


@pytest.mark.long
async def test_measuring_the_host(yard: Yard, tally: MakeTally) -> None:
    counts = tally("kills", {"doctor --measure": 30})
    state = Path(yard.workbench.environment["XDG_STATE_HOME"])
    for number in counts.numbers("doctor --measure"):
        asked = ("doctor", "--measure", "--lab", "sim", "--json")
        if not await kill_one_of(yard, random.Random(number), 2.0, *asked):
            counts.in_vain("doctor --measure")
        await yard.idle()
        for file in state.rglob("*.json"):
            json.loads(file.read_text(encoding="utf-8"))
        yard.no_trace()
    done = yard.start("doctor", "--measure", "--lab", "sim", "--json")
    code, output = await yard.ended(done)
    assert code == 0
    assert json.loads(output)["noise"]
    counts.keep()


@pytest.mark.slow
async def test_resumes(tmp_path: Path, tally: MakeTally, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an engine beside it: `run` and `resume` are engine and command in one process."""
    counts = tally("kills", {"resume": 50})
    with a_workbench(tmp_path) as workbench:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(workbench.runtime))
        workbench.variables["DOCKER_HOST"] = f"unix://{workbench.runtime}/none"
        async with a_yard(workbench) as yard:
            run = ("run", SMALL, "--lab", "sim", "--seed", "7", "--json", "--session")
            pace = ("--pace", f"{4 * SLOW:g}")  # slow enough to be killed before its end
            code, output = await yard.ended(yard.start(*run, "whole"))
            assert code == 0
            whole = ids_of(output)
            session, stored = "", list[str]()
            for number in counts.numbers("resume"):
                dice = random.Random(number)
                if not session:
                    session, stored = f"killed-{number}", []
                    victim = yard.start(*run, session, *pace)
                else:
                    victim = yard.start("resume", session, "--json", *pace)
                lines = dice.randint(1, 40)
                heard = await asyncio.to_thread(first_lines, victim.stdout.readline, lines)
                victim.kill()
                code, rest = await yard.ended(victim)
                taken = ids_of(heard + rest)
                assert not set(taken) & set(stored), "measured twice"
                rows = workbench.samples(session)
                stored_now = [str(row["id"]) for row in rows]
                assert set(taken) | set(stored) <= set(stored_now), "announced, and not stored"
                assert len(set(stored_now)) == len(stored_now)
                stored = stored_now
                if code != -9:
                    counts.in_vain("resume")
                if code == 0:
                    assert sorted(stored) == sorted(whole)
                    session = ""
    counts.keep()


def first_lines(readline: Callable[[], str], count: int) -> str:
    lines = []
    while len(lines) < count and (line := readline()):
        lines.append(line)
    return "".join(lines)


def ids_of(output: str) -> list[str]:
    """Ids of the samples that a run announced; its last line may be torn."""
    lines = (line for line in output.splitlines() if line.endswith("}"))
    events = (json.loads(line) for line in lines)
    return [event["sample"]["id"] for event in events if event["event"] == "SampleTaken"]
