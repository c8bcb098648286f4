"""`python benchmarks/contention_alarms.py`: contention injected beside a function that is watched.

Records the campaign that is given on the Docker lab (`--folder` keeps its session, and takes it
where it is there), deploys its function, drives a load through it whose rate changes every minute,
and has `workbench watch` look at it as a process of its own. Competitors come on the function's
core in turn, at times that the watch does not know; `cache` is none that the campaign has. Told are
alarms that were missed or late, their delays, alarms while nobody competed, looks without an
answer, how many of the intervals held the p95 that the load's own records have of the same seconds,
and what the watch costs. What is played is added to what `--results` has, by session, each alarm
with its time and sign (`alarm_results`); without it nothing is kept; `--show` prints them all
together, and `--publish` writes what the files of `results/` say into counters-science.md. Needs
root, an engine, stress-ng and taskset on this host; and a quiet one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from statistics import median

import numpy as np
from alarm_results import (
    HERE,
    KINDS,
    PAGE,
    Asked,
    Cost,
    Injection,
    Live,
    Played,
    Quiet,
    Raised,
    keep,
    play_of,
    published,
    read_plays,
    report,
    told,
)
from counted_sessions import CEILING_MS, measurements

from workbench.descriptors.loading import load_campaign
from workbench.domain import kpis
from workbench.domain.campaign import Campaign
from workbench.domain.competitors import COMPETITOR, FULL, NONE, Competitor
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Measurement
from workbench.engine.answers.counter_learning import counted_rows
from workbench.labs.base import LabSettings
from workbench.labs.components.competing import argv
from workbench.labs.docker import DockerLab
from workbench.measuring.records import Drive
from workbench.models.base import Floats
from workbench.paths import Workspace
from workbench.probes.process import parse_stat_cpu_s

LASTS_S = 6.0
"""For which a competitor stays."""
QUIET_S = (3.0, 8.0)
"""Before each injection, drawn evenly, once the alarm of the one before is over."""
CLEARING_S = 40.0
"""For which an alarm may take to clear before the next injection."""
PIECE_S = 300.0
"""Of a rest without any: what one deployment is watched for."""
TIMES_EACH = 5
"""Injections beside one deployment."""
LEARNING_S = 180.0
DRIVE_S = 60.0
"""Of one stretch of load; the next, at another rate, begins half a second after it."""
ENDING_S = 10.0
"""Which the last stretch of load may take longer than `DRIVE_S`."""
AFTER_S = 5.0
"""After a competitor has gone, in which an alarm is still of it: looks span up to four seconds."""
SESSION = "learned"
STOLEN = "host stolen_s"
QUIET_STOLEN = 0.01
"""Share of this host's cores that its hypervisor may give to others, in the middle of the session's
windows; those of `results/` had a hundredth of that."""


class Watched:
    """The lines of a running `workbench watch --json`."""

    def __init__(self, pid: int) -> None:
        self.looks: list[dict[str, object]] = []
        self._stat = Path(f"/proc/{pid}/stat")
        self._began_s = self._began_cpu_s = 0.0

    def begin(self) -> None:
        """It has learned: what it costs is counted from here."""
        self._began_s, self._began_cpu_s = (
            time.monotonic(),
            parse_stat_cpu_s(self._stat.read_text()),
        )

    def cost(self) -> Cost:
        cpu_s = parse_stat_cpu_s(self._stat.read_text()) - self._began_cpu_s
        return Cost(time.monotonic() - self._began_s, cpu_s, len(self.looks))

    async def read(self, stream: asyncio.StreamReader) -> None:
        while line := await stream.readline():
            with suppress(ValueError):
                self.looks.append(json.loads(line))
                self._tell_a_change()

    def _tell_a_change(self) -> None:
        """An alarm that came or went, as it does."""
        if self.alarmed != (len(self.looks) > 1 and alarmed(self.looks[-2])):
            look = self.looks[-1]
            kinds = ", ".join(kind for kind in ("alarm", "contention") if look[kind])
            print(f"look {len(self.looks)}: {kinds or 'no alarm any more'}: {look}", flush=True)

    @property
    def alarmed(self) -> bool:
        return bool(self.looks and alarmed(self.looks[-1]))

    def reasons(self) -> list[str]:
        """Of looks without an answer, up to the figure: which counter it is."""
        whys = [str(look["why"]) for look in self.looks if look["value"] is None]
        return [why.partition(" is ")[0] for why in whys]

    def since(self, at: float) -> list[dict[str, object]]:
        return [look for look in self.looks if float(str(look["at"])) >= at]


def alarmed(look: dict[str, object]) -> bool:
    """By the SLA or by others' load."""
    return bool(look["alarm"] or look["contention"])


def record(campaign: Path, workspace: Path) -> None:
    """Run a campaign to its end; it does not wait for a quiet host."""
    program = (
        "import sys; from workbench.engine.runs import busy_host; busy_host.STREAK = 1_000_000\n"
        "from workbench.cli import main; main()"
    )
    run = [sys.executable, "-c", program, "run", str(campaign), "--lab", "docker", "--headless"]
    environment = {**os.environ, "WORKBENCH_WORKSPACE": str(workspace)}
    done = subprocess.run([*run, "--session", SESSION], env=environment)
    if done.returncode not in (0, 1):  # 1: a configuration without a usable sample
        sys.exit(f"the campaign ended with exit code {done.returncode}")


def refuse_a_stolen_host(taken: Sequence[Measurement], function: str) -> None:
    """End where a hypervisor gave this host's cores to others while the session was recorded: it is
    another host from minute to minute, of which a session says nothing. Before anything is played.
    """
    rows = counted_rows(taken, function, kpis.P95, CEILING_MS).rows
    if STOLEN not in rows.features:
        return
    share = float(np.median(rows.x[:, rows.features.index(STOLEN)])) / (os.cpu_count() or 1)
    if share > QUIET_STOLEN:
        sys.exit(
            f"the hypervisor gave {share:.1%} of this host's cores to others: not a quiet host"
        )


def limit_of(session: Path, function: str) -> float:
    """Of p95, in ms: between it alone and beside who raises it most, of those that never pause, in
    the middle of their logs."""
    taken = [m for m in asyncio.run(measurements(session)) if m.sample.point.target == function]
    refuse_a_stolen_host(taken, function)
    beside: dict[str, list[Measurement]] = {}
    for one in taken:
        asked = str(one.sample.point.configuration.workload.get(COMPETITOR, NONE))
        beside.setdefault(asked, []).append(one)
    usual = {
        asked: median(counted_rows(those, function, kpis.P95, CEILING_MS).rows.y.tolist())
        for asked, those in beside.items()
    }
    told = ", ".join(f"{value:.3g} ms beside {asked}" for asked, value in usual.items())
    print(f"p95 of {function}, median: {told}", flush=True)
    competitors = [c for asked in usual if (c := Competitor.parse(asked)) and c.intensity == FULL]
    worst = max(competitors, key=lambda c: usual[c.text], default=None)
    if worst is None or usual[worst.text] <= usual[NONE]:
        sys.exit("no competitor raises p95 here: there is nothing to be alarmed of")
    return float((usual[NONE] * usual[worst.text]) ** 0.5)


@contextmanager
def contention(competitor: Competitor, core: int) -> Iterator[float]:
    """stress-ng on a core; when it began, in seconds since the epoch. It ends on every way out."""
    program = ["taskset", "-c", str(core), *argv(competitor, 1, LASTS_S)]
    quiet = subprocess.DEVNULL
    began_at = time.time()
    running = subprocess.Popen(program, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        yield began_at
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


@asynccontextmanager
async def loaded(
    campaign: Campaign, function: str, rates: Sequence[float]
) -> AsyncIterator[tuple[str, asyncio.Task[None], list[Drive]]]:
    """The function under load of one rate after the other: its container, who drives, and what was
    driven so far."""
    lab = DockerLab(campaign, LabSettings(f"alarms-{os.getpid()}"))
    try:
        await lab.open()
        plan = campaign.target_plan(function)
        first = campaign.configurations(plan)[0]
        alone = Configuration(first.resources, {**first.workload, COMPETITOR: NONE})
        await lab.deploy(plan.target, alone)

        driven: list[Drive] = []

        async def drive() -> None:
            for wl in cycle(rates):
                point = OperatingPoint(function, alone, wl)
                driven.append(await lab.drive(point, DRIVE_S, lambda _: None))

        driving = asyncio.create_task(drive())
        try:
            yield lab.known_as(function)["container"], driving, driven
        finally:
            driving.cancel()
            await asyncio.gather(driving, return_exceptions=True)
    finally:
        await lab.close()


@asynccontextmanager
async def watching(
    session: Path, function: str, at: str, kpi: str, core: int
) -> AsyncIterator[Watched]:
    """`workbench watch` as a process on a core; its lines, from the first look on."""
    program = ["taskset", "-c", str(core), sys.executable, "-m", "workbench", "watch"]
    running = await asyncio.create_subprocess_exec(
        *program, session.stem, function, "--at", at, "--kpi", kpi, "--json",
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "WORKBENCH_WORKSPACE": str(session.parent.parent)},
    )  # fmt: skip
    assert running.stdout is not None
    watched = Watched(running.pid)
    reading = asyncio.create_task(watched.read(running.stdout))
    try:
        latest = time.monotonic() + LEARNING_S
        while not (watched.looks or reading.done() or time.monotonic() > latest):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        if not watched.looks:
            sys.exit(f"the watch ended, or took over {LEARNING_S:g} s, before its first look")
        yield watched
    finally:
        with suppress(ProcessLookupError):
            running.send_signal(signal.SIGTERM)  # who starts in the background has SIGINT ignored
        await running.wait()
        await reading


def quiet_of(looks: Sequence[dict[str, object]], seconds: float) -> Quiet:
    """Looks while nobody competed, the first of them without an alarm."""
    on = [alarmed(look) for look in looks]
    raised = sum(now and not before for before, now in zip([False, *on], on, strict=False))
    return Quiet(seconds, raised, len(looks), sum(look["value"] is None for look in looks))


async def rest(watched: Watched, seconds: float) -> tuple[Quiet, float]:
    """Nobody competes, once the last alarm is over; how long it was not."""
    began_s = time.monotonic()
    while watched.alarmed and time.monotonic() < began_s + CLEARING_S:  # noqa: ASYNC110
        await asyncio.sleep(0.2)
    clearing_s, known = time.monotonic() - began_s, len(watched.looks)
    await asyncio.sleep(seconds)
    return quiet_of(watched.looks[known:], seconds), clearing_s


def pieces(seconds: float) -> list[float]:
    """Of a long rest: a go that is interrupted has all but the last of them."""
    whole, left = divmod(seconds, PIECE_S)
    return [PIECE_S] * int(whole) + [left] * (left > 0.0)


async def inject(
    watched: Watched, competitor: Competitor, core: int, draw: random.Random
) -> tuple[Injection, Quiet]:
    """Wait, let a competitor come, and see what the watch says."""
    quiet, clearing_s = await rest(watched, draw.uniform(*QUIET_S))
    before = tuple(kind for kind in KINDS if watched.looks and watched.looks[-1][kind])
    false = bool(before)
    with contention(competitor, core) as began_at:
        await asyncio.sleep(LASTS_S)
    seen = watched.since(began_at)
    first = {
        kind: next((float(str(look["at"])) - began_at for look in seen if look[kind]), None)
        for kind in KINDS
    }
    delays = [delay for delay in first.values() if delay is not None]
    injection = Injection(
        began_at,
        None if false else min(delays, default=None),
        false,
        len(seen),
        sum(look["value"] is None for look in seen),
        clearing_s,
        competitor.text,
        first["alarm"],
        first["contention"],
        before,
    )
    return injection, quiet


def core_of(campaign: Campaign, function: str) -> int:
    cpuset = next((m.cpuset for m in campaign.managers if m.name == function), "")
    return int(cpuset.replace("-", ",").split(",")[0]) if cpuset else 0


async def play(campaign: Campaign, session: Path, asked: Asked, played: Played) -> None:
    """Add to what was played; what was seen is kept where it does not come to its end.

    Every piece is of a new deployment, which a new watch looks at: looks at one are all off alike.
    """
    for seconds in pieces(asked.quiet_s):
        await play_piece(campaign, session, asked, played, Piece(quiet_s=seconds))
    whole, left = divmod(asked.times, TIMES_EACH)
    for times in [TIMES_EACH] * whole + [left] * (left > 0):
        await play_piece(campaign, session, asked, played, Piece(times=times))


@dataclass(frozen=True)
class Piece:
    """Of what is asked for: seconds without a competitor, or injections."""

    quiet_s: float = 0.0
    times: int = 0


async def play_piece(
    campaign: Campaign, session: Path, asked: Asked, played: Played, piece: Piece
) -> None:
    """Deploy, load, watch, and add what was seen."""
    function, core = asked.function, core_of(campaign, asked.function)
    draw = random.Random(len(played.injections))  # another go draws other times
    kpi = f"p95<={asked.limit:.4g}ms"
    apart = core_of(campaign, "source")
    async with loaded(campaign, function, asked.rates) as (container, driving, driven):
        at = f"container:{container}"
        async with watching(session, function, at, kpi, apart) as watched:
            watched.begin()
            try:
                if piece.quiet_s:
                    played.quiet.append((await rest(watched, piece.quiet_s))[0])
                    print(played.quiet[-1], flush=True)
                for _ in range(piece.times):
                    if driving.done():
                        driving.result()  # why there is no load any more
                    who = asked.competitors[len(played.injections) % len(asked.competitors)]
                    one, quiet = await inject(watched, who, core, draw)
                    played.injections.append(one)
                    played.quiet.append(quiet)
                    print(f"injection {len(played.injections)}: {told(one)}", flush=True)
                await stretch_ended(driving, driven)
            finally:
                played.costs.append(watched.cost())
                for why in watched.reasons():
                    played.reasons[why] = played.reasons.get(why, 0) + 1
                played.live.append(live_of(watched.looks, driven))
                played.raised += raised_of(watched.looks, played.injections)


async def stretch_ended(driving: asyncio.Task[None], driven: Sequence[Drive]) -> None:
    """Wait until the stretch of load that is on has its records, too."""
    known, latest = len(driven), time.monotonic() + DRIVE_S + ENDING_S
    while len(driven) == known and not driving.done() and time.monotonic() < latest:  # noqa: ASYNC110
        await asyncio.sleep(0.2)


def live_of(looks: Sequence[dict[str, object]], driven: Sequence[Drive]) -> list[Live]:
    """Figures that were told of one deployment beside p95 of the requests due in the same seconds.

    Looks overlap: one is taken whose seconds begin after those of the last that was, and which lies
    in one stretch of load, a second after its begin at the earliest.
    """
    to_epoch = time.time() - time.monotonic()
    found: list[Live] = []
    for look in looks:
        at, over_s = float(str(look["at"])), look["window_s"]
        if look["value"] is None or over_s is None:
            continue
        begin = at - float(str(over_s))
        waited_s = waits(driven, begin - to_epoch, at - to_epoch)
        if (found and begin < found[-1].at) or not waited_s.size:
            continue
        was_ms = float(np.quantile(waited_s, 0.95, method="inverted_cdf")) * 1e3
        said = (float(str(look[name])) for name in ("value", "low", "high"))
        found.append(Live(at, at - begin, was_ms, *said))
    return found


def waits(driven: Sequence[Drive], begin_s: float, end_s: float) -> Floats:
    """How long the requests due in these seconds took, each in seconds; none where they are not of
    one stretch of load."""
    drive = next((d for d in driven if d.begin_s + 1.0 <= begin_s and end_s <= d.stop_s), None)
    if drive is None:
        return np.zeros(0)
    planned_s = drive.records.planned_s
    due = (planned_s >= begin_s) & (planned_s < end_s)
    unanswered = np.isnan(drive.records.end_s)
    ends_s = np.where(unanswered, drive.stop_s, drive.records.end_s)
    return np.asarray(ends_s[due] - planned_s[due])


def raised_of(looks: Sequence[dict[str, object]], found: Sequence[Injection]) -> list[Raised]:
    """Each alarm of these looks, in the order in which they came."""
    if not looks:
        return []
    times = [float(str(look["at"])) for look in looks]
    raised = []
    for kind in KINDS:
        on = [False, *(bool(look[kind]) for look in looks)]
        for i in range(len(looks)):
            if on[i] or not on[i + 1]:
                continue
            gone = next((j for j in range(i, len(looks)) if not on[j + 1]), len(looks) - 1)
            there = (one for one in found if 0.0 <= times[i] - one.began_at <= LASTS_S + AFTER_S)
            beside = next((one.competitor for one in there), "")
            value = looks[i]["value"]
            figure = "?" if value is None else f"{float(str(value)):.3g} ms"
            sign = str(looks[i]["sign"]) if kind == "contention" else figure
            raised.append(Raised(kind, times[i] - times[0], times[gone] - times[i], beside, sign))
    return sorted(raised, key=lambda one: one.at_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaign", type=Path, default=HERE / "contention_alarms.yaml")
    parser.add_argument("--folder", type=Path, help="keeps the session, or has it")
    parser.add_argument("--function", default="haproxy")
    parser.add_argument("--rates", default="350,250,550", help="of the load, a minute each")
    parser.add_argument("--competitors", default="cpu,memory,cpu:50,cache")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--quiet", type=float, default=0.0, help="seconds without any, before them")
    parser.add_argument("--show", action="store_true", help="print what the results say, and end")
    parser.add_argument("--publish", action="store_true", help="write counters-science.md, and end")
    parser.add_argument("--results", type=Path, help="a file to which what is played is added")
    given = parser.parse_args()
    if given.show:
        kept = given.results or HERE / "results" / "alarms.json"
        print(report([played for _, played in read_plays(kept)]))
        return
    if given.publish:
        PAGE.write_text(published(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return
    with tempfile.TemporaryDirectory(prefix="alarms-") as temporary:
        folder = given.folder.resolve() if given.folder else Path(temporary)
        session = folder / "sessions" / f"{SESSION}.duckdb"
        if not session.is_file():
            record(given.campaign, folder)
        campaign = load_campaign(str(given.campaign), workspace=Workspace(folder)).campaign
        limit = limit_of(session, given.function)
        rates = tuple(float(one) for one in given.rates.split(","))
        asked_for = [Competitor.parse(one) for one in given.competitors.split(",")]
        competitors = tuple(one for one in asked_for if one is not None)
        asked = Asked(given.function, rates, given.times, given.quiet, competitors, limit)
        played = play_of(given.results, asked)
        try:
            asyncio.run(play(campaign, session, asked, played))
        finally:
            if given.results is not None:
                keep(given.results, asked, played)
    print(report([played]))


if __name__ == "__main__":
    main()
