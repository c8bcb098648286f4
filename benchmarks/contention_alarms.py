"""`python benchmarks/contention_alarms.py`: contention injected beside a function that is watched.

Records the campaign that is given on the Docker lab (`--folder` keeps its session, and takes it
where it is there), deploys its function, drives a load through it whose rate changes every minute,
and has `workbench watch` look at it as a process of its own. Competitors come on the function's
core in turn, at times that the watch does not know; `cache` is none that the campaign has. Told are
alarms that were missed or late, their delays, alarms while nobody competed, looks without an
answer, how many of the intervals held the p95 that the load's own records have of the same seconds,
and what the watch costs. What is played is added to what `--results` has of the same session, each
alarm with its time and sign; without it nothing is kept; `--show` prints them, and `--publish`
writes what the files of `results/` say into docs/counters.md. Needs root, an engine, stress-ng and
taskset on this host; and a quiet one.
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
from dataclasses import asdict, dataclass, field
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from counted_sessions import CEILING_MS, measurements
from doc_blocks import with_blocks
from scipy import stats

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
from workbench.labs.netns.groups import version
from workbench.measuring.records import Drive
from workbench.models.base import Floats
from workbench.paths import Workspace
from workbench.probes.process import parse_stat_cpu_s

HERE = Path(__file__).parent
WITHIN_S = 5.0
"""In which contention is to be alarmed (issue 23)."""
LASTS_S = 6.0
"""For which a competitor stays."""
QUIET_S = (3.0, 8.0)
"""Before each injection, drawn evenly, once the alarm of the one before is over."""
CLEARING_S = 40.0
"""For which an alarm may take to clear before the next injection."""
PIECE_S = 300.0
"""Of a rest without any."""
LEARNING_S = 180.0
DRIVE_S = 60.0
"""Of one stretch of load; the next, at another rate, begins half a second after it."""
ENDING_S = 10.0
"""Which the last stretch of load may take longer than `DRIVE_S`."""
AFTER_S = 5.0
"""After a competitor has gone, in which an alarm is still of it: looks span up to four seconds."""
SESSION = "learned"
PAGE = HERE.parent / "docs" / "counters.md"
PUBLISHED = ("alarms", "quiet_hours")
"""Files of `results/` that the page has, each by its own quotation."""
KINDS = {"alarm": "the SLA", "contention": "others' load"}
"""The alarms of a look, and what they are of."""


@dataclass(frozen=True)
class Injection:
    """One competitor that came, in seconds since the epoch.

    Attributes
    ----------
    delay_s : until the alarm; None where there was none as long as it stayed.
    false : the alarm was there already, though nobody competed.
    silent : of the looks while it stayed, those without an answer.
    clearing_s : until the alarm before it was over, after its competitor had gone.
    sla_s, contention_s : until the alarm of the SLA and that of others' load; None: none.
    before : which of the two (`KINDS`) was there already.
    """

    began_at: float
    delay_s: float | None
    false: bool
    looks: int
    silent: int
    clearing_s: float = 0.0
    competitor: str = ""
    sla_s: float | None = None
    contention_s: float | None = None
    before: tuple[str, ...] = ()

    def by(self, kind: str) -> bool:
        """Whether it was alarmed in time by this one, which was not there already."""
        delay_s = self.sla_s if kind == "alarm" else self.contention_s
        return kind not in self.before and delay_s is not None and delay_s <= WITHIN_S

    @property
    def in_time(self) -> bool:
        return not self.false and self.delay_s is not None and self.delay_s <= WITHIN_S


@dataclass(frozen=True)
class Quiet:
    """A stretch in which nobody competed, and no alarm was left from before.

    Attributes
    ----------
    alarms : that were raised in it, all of them false.
    looks, silent : in it, and those without an answer.
    """

    seconds: float
    alarms: int
    looks: int
    silent: int


@dataclass(frozen=True)
class Cost:
    """Of the watch from its first look on: its process's CPU time, in ticks of 10 ms."""

    seconds: float
    cpu_s: float
    looks: int


@dataclass(frozen=True)
class Live:
    """Looks with a figure beside what the load's own records have of the same seconds.

    Attributes
    ----------
    windows : looks, each of seconds that no other of them has.
    held : of them, intervals that have the measured figure within.
    median_error, median_width : of the figure, as a share of the measured one; of the interval, its
        upper end over its lower.
    compared : of each look its time (seconds since the epoch), the seconds it spans, p95 in ms as
        measured, the figure and both ends of its interval. Of results of before it is empty, and
        their looks were taken two seconds apart while they spanned more.
    """

    windows: int
    held: int
    median_error: float
    median_width: float
    compared: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class Raised:
    """One alarm, from the look that raised it to the one that had it no more.

    Attributes
    ----------
    kind : of `KINDS`.
    at_s : since the first look.
    seconds : that it lasted, or until the last look.
    competitor : who was there, or had just gone; empty where nobody was.
    sign : what it was raised by.
    """

    kind: str
    at_s: float
    seconds: float
    competitor: str
    sign: str


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


def limit_of(session: Path, function: str) -> float:
    """Of p95, in ms: between it alone and beside who raises it most, of those that never pause, in
    the middle of their logs."""
    taken = [m for m in asyncio.run(measurements(session)) if m.sample.point.target == function]
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
    """Of a long rest, so that a go which is interrupted has all but the last of them."""
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


@dataclass
class Played:
    """What was seen of one session, in one or more goes."""

    injections: list[Injection] = field(default_factory=list)
    quiet: list[Quiet] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    """Of looks without an answer: how many there were of each."""
    live: list[Live] = field(default_factory=list)
    raised: list[Raised] = field(default_factory=list)


@dataclass(frozen=True)
class Asked:
    """What is played: `times` injections, and `quiet_s` seconds without any before them."""

    function: str
    rates: tuple[float, ...]
    times: int
    quiet_s: float
    competitors: tuple[Competitor, ...]
    limit: float


async def play(campaign: Campaign, session: Path, asked: Asked, played: Played) -> None:
    """Add to what was played; what was seen is kept where it does not come to its end."""
    function, core = asked.function, core_of(campaign, asked.function)
    draw = random.Random(len(played.injections))  # another go draws other times
    kpi = f"p95<={asked.limit:.4g}ms"
    apart = core_of(campaign, "source")
    async with loaded(campaign, function, asked.rates) as (container, driving, driven):
        at = f"container:{container}"
        async with watching(session, function, at, kpi, apart) as watched:
            watched.begin()
            try:
                for seconds in pieces(asked.quiet_s):
                    played.quiet.append((await rest(watched, seconds))[0])
                    print(played.quiet[-1], flush=True)
                for number in range(1, asked.times + 1):
                    if driving.done():
                        driving.result()  # why there is no load any more
                    who = asked.competitors[len(played.injections) % len(asked.competitors)]
                    one, quiet = await inject(watched, who, core, draw)
                    played.injections.append(one)
                    played.quiet.append(quiet)
                    print(f"injection {number} of {asked.times}: {told(one)}", flush=True)
                await stretch_ended(driving, driven)
            finally:
                played.costs.append(watched.cost())
                for why in watched.reasons():
                    played.reasons[why] = played.reasons.get(why, 0) + 1
                played.live += live_of(watched.looks, driven)
                played.raised += raised_of(watched.looks, played.injections)


async def stretch_ended(driving: asyncio.Task[None], driven: Sequence[Drive]) -> None:
    """Wait until the stretch of load that is on has its records, too."""
    known, latest = len(driven), time.monotonic() + DRIVE_S + ENDING_S
    while len(driven) == known and not driving.done() and time.monotonic() < latest:  # noqa: ASYNC110
        await asyncio.sleep(0.2)


def live_of(looks: Sequence[dict[str, object]], driven: Sequence[Drive]) -> list[Live]:
    """Figures that were told beside p95 of the requests due in the same seconds.

    Looks overlap: one is taken whose seconds begin after those of the last that was, and which lies
    in one stretch of load, a second after its begin at the earliest.
    """
    to_epoch = time.time() - time.monotonic()
    found: list[tuple[float, ...]] = []
    last_at = 0.0
    for look in looks:
        at, over_s = float(str(look["at"])), look["window_s"]
        if look["value"] is None or over_s is None:
            continue
        begin = at - float(str(over_s))
        waited_s = waits(driven, begin - to_epoch, at - to_epoch)
        if begin < last_at or not waited_s.size:
            continue
        was = float(np.quantile(waited_s, 0.95, method="inverted_cdf")) * 1e3
        said = (float(str(look[name])) for name in ("value", "low", "high"))
        found.append((at, at - begin, was, *said))
        last_at = at
    if not found:
        return []
    _, _, was_ms, value, low, high = np.array(found).T
    held = int(((low <= was_ms) & (was_ms <= high)).sum())
    errors, widths = np.abs(value / was_ms - 1.0), high / low
    middle = float(np.median(errors)), float(np.median(widths))
    return [Live(len(found), held, *middle, tuple(found))]


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


def told(one: Injection) -> str:
    said = "no alarm" if one.delay_s is None else f"alarm after {one.delay_s:.1f} s"
    said = "false alarm before it" if one.false else said
    return f"{one.competitor}: {said}; {one.silent} of {one.looks} looks without an answer"


def summary(found: Sequence[Injection]) -> str:
    delays = [one.delay_s for one in found if one.delay_s is not None]
    return (
        f"{sum(one.in_time for one in found)} of {len(found)} alarmed within {WITHIN_S:g} s; "
        f"{sum(one.delay_s is None and not one.false for one in found)} without an alarm, "
        f"{sum(one.false for one in found)} alarmed before; delays "
        + (f"{min(delays):.1f} to {max(delays):.1f} s, median {median(delays):.1f} s"
           if delays else "none")
    )  # fmt: skip


def by_kind(found: Sequence[Injection]) -> str:
    """Alarms in time by competitor, which alarm it was, and how much was answered meanwhile."""
    asked = dict.fromkeys(one.competitor for one in found)
    told = [
        f"{sum(one.in_time for one in those)} of {len(those)} beside {competitor}"
        for competitor in asked
        if (those := [one for one in found if one.competitor == competitor])
    ]
    sla, others = (sum(one.by(kind) for one in found) for kind in KINDS)
    looks, silent = sum(one.looks for one in found), sum(one.silent for one in found)
    return (
        f"in time: {', '.join(told) or 'none'}; of all, {others} by others' load, {sla} by the "
        f"SLA; {silent} of {looks} looks beside them without a figure"
    )


def most_an_hour(alarms: int, hours: float) -> float:
    """The rate that 95 % of such times would have shown more alarms at (Garwood, 1936)."""
    return float(stats.chi2.ppf(0.95, 2 * alarms + 2)) / 2.0 / hours


def report(played: Played) -> str:
    """What docs/counters.md says."""
    lines = [summary(played.injections)] if played.injections else []
    if any(one.competitor for one in played.injections):
        lines.append(by_kind(played.injections))
    if seconds := sum(one.seconds for one in played.quiet):
        alarms = sum(one.alarms for one in played.quiet)
        looks, silent = (
            sum(getattr(q, name) for q in played.quiet) for name in ("looks", "silent")
        )
        lines.append(
            f"{alarms or 'no'} false alarm{'' if alarms == 1 else 's'} in {seconds / 60:.1f} "
            f"quiet minutes (at most {most_an_hour(alarms, seconds / 3600):.1f} an hour, 95 %); "
            f"{silent} of {looks} looks in them without an answer"
        )
    lines += [
        f"alarm of {KINDS[one.kind]} with nobody there in minute {int(one.at_s // 60) + 1}, for "
        f"{one.seconds:.0f} s: {one.sign}"
        for one in played.raised
        if not one.competitor
    ]
    lines += [
        f"of {one.windows} {_whose(one)} {one.held} had their measured p95 within the interval "
        f"({one.held / one.windows:.0%}), whose ends were {one.median_width:.1f} times apart; the "
        f"figure was {one.median_error:.1%} off (medians)"
        for one in played.live
    ]
    if seconds := sum(one.seconds for one in played.costs):
        share = sum(one.cpu_s for one in played.costs) / seconds
        looks = sum(one.looks for one in played.costs)
        lines.append(f"the watch took {share:.2%} of a core over {looks} looks")
    return "\n".join(lines)


def _whose(live: Live) -> str:
    return "looks, each of seconds of its own," if live.compared else "looks that overlap"


def earlier(results: Path | None, limit: float, rates: Sequence[float]) -> Played:
    """What these results have of the same session; those of another are left as they are."""
    if results is None or not results.is_file():
        return Played()
    kept = json.loads(results.read_text())
    if (kept["limit_p95_ms"], kept.get("rates")) != (limit, list(rates)):
        sys.exit(f"{results} is of another session: name another file, or remove it")
    return played_of(kept)


def played_of(kept: dict[str, Any]) -> Played:
    return Played(
        [
            Injection(**{**one, "before": tuple(one.get("before", ()))})
            for one in kept["injections"]
        ],
        [Quiet(**one) for one in kept["quiet"]],
        [Cost(**one) for one in kept["costs"]],
        dict(kept["reasons"]),
        [
            Live(**{**one, "compared": tuple(tuple(row) for row in one.get("compared", ()))})
            for one in kept.get("live", ())
        ],
        [Raised(**one) for one in kept.get("raised", ())],
    )


def quoted(name: str) -> str:
    """What a file of results says, as the page quotes it."""
    kept = json.loads((HERE / "results" / f"{name}.json").read_text())
    return "\n>\n".join(f"> {line}" for line in report(played_of(kept)).splitlines())


def published(page: str) -> str:
    """The page with what the results say."""
    return with_blocks(page, {f"alarms: {name}": quoted(name) for name in PUBLISHED})


def keep(results: Path, asked: Asked, played: Played) -> None:
    kept = {
        "function": asked.function,
        "competitors": [one.text for one in asked.competitors],
        "limit_p95_ms": asked.limit,
        "rates": list(asked.rates),
        "cgroup": version(),
        "report": report(played).splitlines(),
        **asdict(played),
    }
    results.write_text(json.dumps(kept, indent=1) + "\n")


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
    parser.add_argument("--publish", action="store_true", help="write docs/counters.md, and end")
    parser.add_argument("--results", type=Path, help="a file to which what is played is added")
    given = parser.parse_args()
    if given.show:
        kept = given.results or HERE / "results" / "alarms.json"
        print(report(played_of(json.loads(kept.read_text()))))
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
        played = earlier(given.results, limit, rates)
        try:
            asyncio.run(play(campaign, session, asked, played))
        finally:
            if given.results is not None:
                keep(given.results, asked, played)
    print(report(played))


if __name__ == "__main__":
    main()
