"""Whether another's load slows a function: its counters, over what its own traffic explains.

Learned from windows in which nobody competed; where a session has competitors, their windows say
how far apart the two are. No KPI is predicted, so that none has to be inside of what was learned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import owens_t

from workbench.domain.errors import DataError
from workbench.domain.observations import THROTTLED_SHARE as THROTTLED
from workbench.models.base import Floats
from workbench.models.counter_rows import CounterRows
from workbench.models.estimator import seeded_subset
from workbench.models.folds import Ints

TRAFFIC = (
    "rx_packets", "segments_sent", "tx_packets", "connections_accepted", "rx_bytes", "tx_bytes",
)  # fmt: skip
"""What tells a function's own load, whoever competes: the first of them that was counted. Bytes
are what is left of packets of one size, whose number is left out as their double."""
FEWEST_QUIET = 6
"""Windows in which nobody competed, below which nothing is known of quiet ones."""
LEAST_SD = 0.1
"""Of a quiet sign, in logs: fewer than some dozens of windows do not show more certainty."""
LEAST_TIMES = 1.5
"""By which a sign has grown, before it says anything."""
LOOKS_A_DAY = 86_400
"""One each second, of windows that overlap."""
FALSE_A_DAY = 1.0
"""Alarms in a day of quiet, of all signs together."""
SURE_OF_SCATTER = 0.8
"""Probability with which quiet looks scatter no more than the most that is told counts with."""
AMONG = 3
"""Looks of which two raise an alarm (`counter_watch.Alarm`)."""
FEWEST_EXPERIMENTS = 4
"""Experiments alone, below which nothing says how alike the windows of one are."""
DISTURBED = 4.0
"""Robust standard deviations over the line of quiet windows, from which on one of them was not
quiet: somebody whom the campaign did not call was there (Hampel's identifier)."""
MOST_DISTURBED = 0.2
"""Share of quiet windows that may be left out for that; more of them, and it is their scatter."""
MOST_PAIRED = 500
"""Quiet windows of which each two are compared."""
BEYOND = 0.35
"""Logs by which traffic may be outside of what was learned alone."""
VARIED = 0.5
"""Logs by which traffic has to vary for a line over it."""
QUOTA_SLACK = 0.05
"""Share of quota periods by which a function may be throttled more than it was alone."""


class SignWords(NamedTuple):
    """How a sign is told, and the rate per second up to which it is chance.

    Not every sign slows a function by itself: one that does not (`slows`) is looked at only where
    windows beside competitors tell how much of it goes with them.
    """

    says: str
    unit: str
    floor: float
    slows: bool = True


SIGNS: Mapping[str, SignWords] = {
    "cpu_wait_s": SignWords("waiting for CPU", "s/s", 2e-3),
    "involuntary_switches": SignWords("taken off its core", "/s", 5.0),
    "pressure_cpu_s": SignWords("some thread waiting for CPU", "s/s", 2e-3),
    "cpu_cores": SignWords("CPU for the same traffic", "cores", 5e-3),
    "others_on_cores_s": SignWords("others' CPU on its cores", "cores", 0.1, slows=False),
}
"""What others make grow."""


@dataclass(frozen=True)
class ContentionLook:
    """What the counters of one look say of others.

    Attributes
    ----------
    contended : None where it is not known, and `why` says so.
    times : by how many times the clearest sign is more than its traffic explains.
    score : how far that is, in logs, over the limit; above 1 the function is contended.
    why : the sign, in words.
    """

    contended: bool | None = None
    times: float | None = None
    score: float | None = None
    why: str = ""


@dataclass(frozen=True)
class ContentionRates:
    """Single looks at experiments that were not seen, where there are such with competitors.

    Attributes
    ----------
    quiet, false : windows in which nobody competed, and those called contended.
    beside, missed : windows beside a competitor, and those called quiet.
    """

    quiet: int
    false: int
    beside: int
    missed: int


@dataclass(frozen=True)
class _Sign:
    name: str
    line: Floats
    """Coefficients of the log of the sign over powers of the log of traffic."""
    sd: float
    """Of quiet looks around the line, in logs, at held-out experiments."""
    most_sd: float
    """What that is at most (`SURE_OF_SCATTER`)."""
    beside: Floats
    """Logs above the line in windows beside competitors."""
    disturbed: int
    """Quiet windows that were left out."""
    limit: float = math.inf
    """Logs above the line from which on it is no chance."""


class ContentionTest:
    """Signs of others' load, each over what the function's own traffic explains.

    The log of a sign is a line over the log of traffic, fitted to quiet windows but for those that
    somebody disturbed whom the campaign did not call (`DISTURBED`). Its limit is where all signs
    together are expected to raise `FALSE_A_DAY` alarms a day by chance (`chance_limit`), at least
    `LEAST_TIMES`; where contended windows are known, it lies half-way to what three of four of them
    have, if that is further. A sign that does not tell half of them says nothing.

    How far quiet looks scatter is learned from held-out experiments. They are few, so that beside
    what is expected stands what it is at most, if they scatter as far as they may (`_at_most`).

    Parameters
    ----------
    window_s : seconds that a look spans; there is a look each second.

    Raises
    ------
    DataError
        If the rows tell no traffic, too few quiet windows, or no sign.
    """

    def __init__(self, rows: CounterRows, window_s: float) -> None:
        quiet = quiet_of(rows)
        traffic = traffic_of(rows.features)
        if traffic is None:
            raise DataError("no counter tells the function's own traffic")
        if quiet.sum() < FEWEST_QUIET:
            raise DataError(
                f"{quiet.sum()} windows in which nobody competed, where {FEWEST_QUIET} are needed",
                remedy="Measure it with `competitor: none` as well",
            )
        self.features, self.traffic = rows.features, traffic
        self.quiet = int(quiet.sum())
        load = np.log(np.maximum(rows.x[:, rows.features.index(traffic)], 1.0))
        self._ends = float(load[quiet].min()) - BEYOND, float(load[quiet].max()) + BEYOND
        self._throttled = _column(rows, THROTTLED)[quiet].max(initial=0.0) + QUOTA_SLACK
        self.window_s = window_s
        names = [name for name in SIGNS if SIGNS[name].slows or not quiet.all()]
        found = [_sign(rows, name, load, quiet) for name in names if name in rows.features]
        # What tells nobody is not judged; fewer signs are fewer chances to be wrong.
        self._signs = _telling(_telling(found, window_s), window_s)
        self.experiments = len(np.unique(rows.groups[quiet]))
        """In which nobody competed; below `FEWEST_EXPERIMENTS` their windows count as independent,
        which is too good."""
        if not self._signs:
            raise DataError("no counter tells windows beside competitors from quiet ones")

    @property
    def signs(self) -> tuple[str, ...]:
        """What tells others' load, in words."""
        return tuple(SIGNS[one.name].says for one in self._signs)

    @property
    def false_a_day(self) -> tuple[float, float]:
        """False alarms in a day of quiet: what is expected, fewer than `FALSE_A_DAY` where limits
        are further, and the most, with `SURE_OF_SCATTER` of each sign's scatter."""
        return self._false_a_day([s.sd for s in self._signs]), self._false_a_day(
            [s.most_sd for s in self._signs]
        )

    def _false_a_day(self, sds: list[float]) -> float:
        limits = [sign.limit / sd for sign, sd in zip(self._signs, sds, strict=True)]
        return LOOKS_A_DAY * len(limits) * sum(raised_by_chance(z, self.window_s) for z in limits)

    @property
    def disturbed(self) -> int:
        """Of the `quiet` windows, those left out of the sign that had most of them."""
        return max(one.disturbed for one in self._signs)

    def look(self, counted: Mapping[str, float]) -> ContentionLook:
        """Whether another's load shows in these counters, each per second."""
        packets = counted.get(self.traffic)
        if packets is None or any(one.name not in counted for one in self._signs):
            return ContentionLook(why="a counter that tells it is missing")
        load = math.log(max(packets, 1.0))
        if load > self._ends[1]:
            return ContentionLook(
                why=f"{self.traffic} is {packets:.3g}, alone it was at most "
                f"{math.exp(self._ends[1] - BEYOND):.3g}"
            )
        if counted.get(THROTTLED, 0.0) > self._throttled:
            return ContentionLook(why="its own quota stops it")
        load = max(load, self._ends[0])
        over = [(_over(counted[s.name], s, load), s) for s in self._signs]
        far, sign = max(over, key=lambda one: one[0] / one[1].limit)
        words, value = SIGNS[sign.name], counted[sign.name]
        told = f"{words.says} {math.exp(far):.1f} times what its traffic explains"
        return ContentionLook(
            far > sign.limit, math.exp(far), far / sign.limit,
            f"{told} ({value:.3g} {words.unit})",
        )  # fmt: skip


def traffic_of(features: tuple[str, ...]) -> str | None:
    """The counter among these that tells the function's own load."""
    return next((name for name in TRAFFIC if name in features), None)


def raised_by_chance(limit: float, window_s: float) -> float:
    """Share of quiet looks that raise an alarm, at most, by a limit in standard deviations.

    Looks are means over `window_s` seconds, each a second after the one before, so that those k
    seconds apart correlate by r = 1 - k/window_s if seconds are independent and normal. An alarm
    takes two looks of three over the limit, k = 1 or 2 apart, of which each are
    P(both > limit) = P(one > limit) - 2 T(limit, sqrt((1 - r) / (1 + r))) with Owen's T (1956).
    """
    pairs = 0.0
    for apart in range(1, AMONG):
        alike = max(0.0, 1.0 - apart / max(window_s, 1.0))
        beyond = float(owens_t(limit, math.sqrt((1.0 - alike) / (1.0 + alike))))
        pairs += float(stats.norm.sf(limit)) - 2.0 * beyond
    return pairs


def chance_limit(window_s: float, signs: int) -> float:
    """Standard deviations by which so many signs together raise `FALSE_A_DAY` alarms a day.

    The two looks of an alarm may be over by two signs: there are signs² pairs, of which none is
    over more often than a sign with itself (P(x > u, y > v)² <= P2(u) P2(v)).
    """

    def more(limit: float) -> float:
        return signs**2 * LOOKS_A_DAY * raised_by_chance(limit, window_s) - FALSE_A_DAY

    return float(brentq(more, 0.0, 8.0))


def rates_of(rows: CounterRows, window_s: float) -> ContentionRates:
    """What single looks say of experiments held out.

    Raises `DataError` where too little is left without one of them.
    """
    quiet = quiet_of(rows)
    false = missed = 0
    for group in np.unique(rows.groups):
        out = rows.groups == group
        test = ContentionTest(rows.taken(np.flatnonzero(~out)), window_s)
        for x, alone in zip(rows.x[out], quiet[out], strict=True):
            said = test.look(dict(zip(rows.features, x.tolist(), strict=True))).contended
            false += bool(alone and said)
            missed += bool(not alone and not said)
    return ContentionRates(int(quiet.sum()), false, int((~quiet).sum()), missed)


def quiet_of(rows: CounterRows) -> Ints:
    """Of rows (n,), whether nobody competed; all of them where that is not known."""
    alone = np.ones(len(rows.y), dtype=bool)
    return alone if rows.beside is None else np.asarray(rows.beside == 0)


def _column(rows: CounterRows, name: str) -> Floats:
    return rows.x[:, rows.features.index(name)] if name in rows.features else np.zeros(len(rows.y))


def _sign(rows: CounterRows, name: str, load: Floats, quiet: Ints) -> _Sign:
    logs = np.log(rows.x[:, rows.features.index(name)] + SIGNS[name].floor)
    alone, quiet = quiet, _undisturbed(load, logs, quiet)
    left, groups = np.full(len(logs), np.nan), rows.groups
    for group in np.unique(groups[quiet]):
        out, seen = quiet & (groups == group), quiet & (groups != group)
        if seen.sum() >= FEWEST_QUIET // 2:
            left[out] = logs[out] - np.polyval(_line(load[seen], logs[seen]), load[out])
    line = _line(load[quiet], logs[quiet])
    over = logs - np.polyval(line, load)
    known = np.isfinite(left)
    if not known.any():
        left, known = over, quiet
    sd = max(float(np.sqrt(np.mean(np.square(left[known])))), LEAST_SD)
    most_sd = sd * _at_most(_independent(left[known], groups[known]))
    return _Sign(name, line, sd, most_sd, over[~alone], int(alone.sum() - quiet.sum()))


def _telling(signs: list[_Sign], window_s: float) -> list[_Sign]:
    """Those with their limits that tell half of the contended windows, where such are known."""
    chance = chance_limit(window_s, len(signs)) if signs else math.inf
    found = []
    for one in signs:
        limit = max(chance * one.sd, math.log(LEAST_TIMES))
        if one.beside.size:
            limit = max(limit, float(np.quantile(one.beside, 0.25)) / 2.0)
            if float(np.median(one.beside)) <= limit:
                continue
        found.append(replace(one, limit=limit))
    return found


def _at_most(windows: float) -> float:
    """By how much quiet looks may scatter more than so many independent windows did, with
    `SURE_OF_SCATTER`, if they are normal: by the chi-squared distribution, less the two degrees of
    freedom of a line."""
    free = max(windows - 2.0, 1.0)
    return math.sqrt(free / float(stats.chi2.ppf(1.0 - SURE_OF_SCATTER, free)))


def _independent(left: Floats, groups: Ints) -> float:
    """How many independent windows these are worth: n / (1 + (m - 1) r), with m windows in each
    experiment that correlate by r (Kish's design effect, r by analysis of variance); never fewer
    than experiments. Below `FEWEST_EXPERIMENTS` r cannot be told, and all count."""
    numbers, sizes = np.unique(groups, return_inverse=True, return_counts=True)[1:]
    count, total = len(sizes), len(left)
    if count < FEWEST_EXPERIMENTS or total == count:
        return float(total)
    means = np.bincount(numbers, left) / sizes
    within = float(np.square(left - means[numbers]).sum()) / (total - count)
    between = float((sizes * np.square(means - left.mean())).sum()) / (count - 1)
    each = (total - float(np.square(sizes).sum()) / total) / (count - 1)
    alike = (between - within) / max(between + (each - 1.0) * within, 1e-12)
    return max(total / (1.0 + (each - 1.0) * max(alike, 0.0)), float(count))


def _undisturbed(load: Floats, logs: Floats, quiet: Ints) -> Ints:
    """Quiet windows without those far over the others: by medians, which these do not move."""
    slope = 0.0
    if np.ptp(load[quiet]) > VARIED:
        some = np.flatnonzero(quiet)[seeded_subset(int(quiet.sum()), MOST_PAIRED, 0)]
        slope = float(stats.theilslopes(logs[some], load[some]).slope)
    over = logs - slope * load
    over -= np.median(over[quiet])
    sd = max(float(stats.median_abs_deviation(over[quiet], scale="normal")), LEAST_SD)
    kept = quiet & (over <= DISTURBED * sd)
    return kept if kept.sum() >= (1.0 - MOST_DISTURBED) * quiet.sum() else quiet


def quiet_line(load: Floats, logs: Floats, quiet: Ints) -> Floats:
    """What traffic explains of a sign: the line of its logs (n,) over those of traffic (n,) through
    quiet windows, but for disturbed ones (`DISTURBED`)."""
    kept = _undisturbed(load, logs, quiet)
    return _line(load[kept], logs[kept])


def _line(load: Floats, logs: Floats) -> Floats:
    """A line, or a level where the load hardly varied."""
    return np.polyfit(load, logs, 1 if np.ptp(load) > VARIED else 0)


def _over(value: float, sign: _Sign, load: float) -> float:
    return math.log(value + SIGNS[sign.name].floor) - float(np.polyval(sign.line, load))
