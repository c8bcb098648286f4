"""What `contention_alarms.py` saw, kept by session, and what counters-science.md says of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from doc_blocks import with_blocks
from scipy import stats

from workbench.domain.competitors import Competitor
from workbench.domain.counts import counted
from workbench.labs.netns.groups import version

HERE = Path(__file__).parent
WITHIN_S = 5.0
"""In which contention is to be alarmed (issue 23)."""
PAGE = HERE.parent / "docs" / "counters-science.md"
PUBLISHED = ("alarms", "alarms_by_waiting", "quiet_hours")
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


class Live(NamedTuple):
    """A look with a figure, beside what the load's own records have of the same seconds.

    Attributes
    ----------
    at : seconds since the epoch, at its end. `over_s` : the seconds that it spans, which no other
        that was compared has.
    was_ms : p95 as measured.
    value, low, high : p95 as it was told, with the ends of its interval, in ms.
    """

    at: float
    over_s: float
    was_ms: float
    value: float
    low: float
    high: float


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


@dataclass
class Played:
    """What was seen while one session was watched, or of several, one after the other."""

    injections: list[Injection] = field(default_factory=list)
    quiet: list[Quiet] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    """Of looks without an answer: how many there were of each."""
    live: list[list[Live]] = field(default_factory=list)
    """By deployment."""
    raised: list[Raised] = field(default_factory=list)


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


def report(plays: Sequence[Played]) -> str:
    """What counters-science.md says of these together."""
    injections = [one for played in plays for one in played.injections]
    lines = [summary(injections), by_kind(injections)] if injections else []
    lines += quiet_lines(plays)
    lines += live_lines([live for played in plays for live in played.live])
    costs = [one for played in plays for one in played.costs]
    if seconds := sum(one.seconds for one in costs):
        share = sum(one.cpu_s for one in costs) / seconds
        looks = sum(one.looks for one in costs)
        lines.append(f"the watch took {share:.2%} of a core over {looks} looks")
    if len(plays) > 1:
        lines.append(f"over {len(plays)} sessions, each learned from anew")
    return "\n".join(lines)


def quiet_lines(plays: Sequence[Played]) -> list[str]:
    """How long nobody competed, and each alarm with nobody there."""
    quiet = [one for played in plays for one in played.quiet]
    lines = []
    if seconds := sum(one.seconds for one in quiet):
        alarms = sum(one.alarms for one in quiet)
        looks, silent = sum(one.looks for one in quiet), sum(one.silent for one in quiet)
        lines.append(
            f"{alarms or 'no'} false alarm{'' if alarms == 1 else 's'} in {seconds / 60:.1f} "
            f"quiet minutes (at most {most_an_hour(alarms, seconds / 3600):.1f} an hour, 95 %); "
            f"{silent} of {looks} looks in them without an answer"
        )
    lines += [
        f"alarm of {KINDS[one.kind]} with nobody there in minute {int(one.at_s // 60) + 1}, for "
        f"{one.seconds:.0f} s: {one.sign}"
        for played in plays
        for one in played.raised
        if not one.competitor
    ]
    return lines


def live_lines(deployments: Sequence[Sequence[Live]]) -> list[str]:
    """How many of the intervals held what was measured of the same seconds, over deployments: looks
    at one are off alike, so that the share is of so many deployments, and not of so many looks."""
    shares = [sum(map(is_held, live)) / len(live) for live in deployments if live]
    looks = [look for live in deployments for look in live]
    if not looks:
        return []
    held = sum(map(is_held, looks))
    width = median(one.high / one.low for one in looks)
    off = median(abs(one.value / one.was_ms - 1.0) for one in looks)
    return [
        f"of {len(looks)} looks, each of seconds of its own, {held} had their measured p95 within "
        f"the interval ({held / len(looks):.0%}), whose ends were {width:.1f} times apart; the "
        f"figure was {off:.1%} off (medians)",
        f"these looks are of {counted(len(shares), 'deployment')}, by which {min(shares):.0%} to "
        f"{max(shares):.0%} were within (median {median(shares):.0%})",
    ]


def is_held(live: Live) -> bool:
    """Whether its interval held what was measured."""
    return live.low <= live.was_ms <= live.high


@dataclass(frozen=True)
class Asked:
    """What is played: `times` injections, and `quiet_s` seconds without any before them.

    `limit` is that of p95 in ms, which is drawn from the session that is learned from and tells it
    from others.
    """

    function: str
    rates: tuple[float, ...]
    times: int
    quiet_s: float
    competitors: tuple[Competitor, ...]
    limit: float

    @property
    def session(self) -> dict[str, Any]:
        """What tells the session, and the load that is driven, from others in a file of results."""
        return {
            "function": self.function,
            "limit_p95_ms": self.limit,
            "rates": list(self.rates),
            "competitors": [one.text for one in self.competitors],
            "cgroup": version(),
        }


def read_plays(results: Path) -> list[tuple[dict[str, Any], Played]]:
    """What was seen of each session, in the order of watching; nothing without a file."""
    if not results.is_file():
        return []
    return [(one["session"], _played(one)) for one in json.loads(results.read_text())["plays"]]


def play_of(results: Path | None, asked: Asked) -> Played:
    """What these results have of the same session under the same load; else nothing yet."""
    plays = [] if results is None else read_plays(results)
    return next((played for session, played in plays if session == asked.session), Played())


def keep(results: Path, asked: Asked, played: Played) -> None:
    """In place of what the file has of this session; those of others are left as they are."""
    plays = read_plays(results)
    place = next((i for i, (session, _) in enumerate(plays) if session == asked.session), None)
    if place is None:
        plays.append((asked.session, played))
    else:
        plays[place] = asked.session, played
    write_plays(results, plays)


def write_plays(results: Path, plays: Sequence[tuple[dict[str, Any], Played]]) -> None:
    """A line for each session, so that a change is seen in what it changed."""
    lines = (json.dumps({"session": session, **asdict(played)}) for session, played in plays)
    results.write_text('{"plays": [\n' + ",\n".join(lines) + "\n]}\n")


def _played(kept: dict[str, Any]) -> Played:
    return Played(
        [Injection(**{**one, "before": tuple(one["before"])}) for one in kept["injections"]],
        [Quiet(**one) for one in kept["quiet"]],
        [Cost(**one) for one in kept["costs"]],
        dict(kept["reasons"]),
        [[Live(*one) for one in live] for live in kept["live"]],
        [Raised(**one) for one in kept["raised"]],
    )


def quoted(name: str) -> str:
    """What a file of results says, as the page quotes it."""
    plays = read_plays(HERE / "results" / f"{name}.json")
    return "\n>\n".join(f"> {line}" for line in report([one for _, one in plays]).splitlines())


def published(page: str) -> str:
    """The page with what the results say."""
    return with_blocks(page, {f"alarms: {name}": quoted(name) for name in PUBLISHED})
