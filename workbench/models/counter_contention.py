"""Whether another's load slows a function: its counters, over what its own traffic explains.

Learned from windows in which nobody competed; where a session has competitors, their windows say
how far apart the two are. No KPI is predicted, so that none has to be inside of what was learned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

from workbench.domain.errors import DataError
from workbench.domain.observations import THROTTLED_SHARE as THROTTLED
from workbench.models.base import Floats
from workbench.models.counter_rows import CounterRows
from workbench.models.estimator import seeded_subset
from workbench.models.folds import Ints

TRAFFIC = ("rx_packets", "segments_sent", "tx_packets", "connections_accepted")
"""What tells a function's own load, whoever competes: the first of them that was counted."""
FEWEST_QUIET = 6
"""Windows in which nobody competed, below which nothing is known of quiet ones."""
LEAST_SD = 0.1
"""Of a quiet sign, in logs: fewer than some dozens of windows do not show more certainty."""
LEAST_TIMES = 1.5
"""By which a sign has grown, before it says anything."""
FALSE_AT_A_LOOK = 3e-4
"""Of each sign. With two of three looks before an alarm, at windows of two seconds that overlap by
half: one false alarm in a day of quiet by each, if its residuals are normal."""
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
    """How a sign is told, and the rate per second up to which it is chance."""

    says: str
    unit: str
    floor: float


SIGNS: Mapping[str, SignWords] = {
    "cpu_wait_s": SignWords("waiting for CPU", "s/s", 2e-3),
    "involuntary_switches": SignWords("taken off its core", "/s", 5.0),
    "pressure_cpu_s": SignWords("some thread waiting for CPU", "s/s", 2e-3),
    "cpu_cores": SignWords("CPU for the same traffic", "cores", 5e-3),
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
    column: int
    line: Floats
    """Coefficients of the log of the sign over powers of the log of traffic."""
    limit: float
    """Logs above the line from which on it is no chance."""
    disturbed: int
    """Quiet windows that were left out."""


class ContentionTest:
    """Signs of others' load, each over what the function's own traffic explains.

    The log of a sign is a line over the log of traffic, fitted to quiet windows but for those that
    somebody disturbed whom the campaign did not call (`DISTURBED`). Its limit is what a quiet look
    exceeds three times in 10,000 by this sign alone (Student's t of the residuals at held-out
    experiments, their windows taken as independent, which is too good), at least `LEAST_TIMES`;
    where contended windows are known, it lies half-way to what three of four of them have, if that
    is further. A sign that does not tell half of them says nothing.

    Raises
    ------
    DataError
        If the rows tell no traffic, too few quiet windows, or no sign.
    """

    def __init__(self, rows: CounterRows) -> None:
        quiet = _quiet(rows)
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
        found = [_sign(rows, name, load, quiet) for name in SIGNS if name in rows.features]
        self._signs = [one for one in found if one is not None]
        if not self._signs:
            raise DataError("no counter tells windows beside competitors from quiet ones")

    @property
    def signs(self) -> tuple[str, ...]:
        """What tells others' load, in words."""
        return tuple(SIGNS[one.name].says for one in self._signs)

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


def rates_of(rows: CounterRows) -> ContentionRates | None:
    """What single looks say of experiments held out; None where too little is left without one."""
    quiet = _quiet(rows)
    false = missed = 0
    for group in np.unique(rows.groups):
        out = rows.groups == group
        try:
            test = ContentionTest(rows.taken(np.flatnonzero(~out)))
        except DataError:
            return None
        for x, alone in zip(rows.x[out], quiet[out], strict=True):
            said = test.look(dict(zip(rows.features, x.tolist(), strict=True))).contended
            false += bool(alone and said)
            missed += bool(not alone and not said)
    return ContentionRates(int(quiet.sum()), false, int((~quiet).sum()), missed)


def _quiet(rows: CounterRows) -> Ints:
    alone = np.ones(len(rows.y), dtype=bool)
    return alone if rows.beside is None else np.asarray(rows.beside == 0)


def _column(rows: CounterRows, name: str) -> Floats:
    return rows.x[:, rows.features.index(name)] if name in rows.features else np.zeros(len(rows.y))


def _sign(rows: CounterRows, name: str, load: Floats, quiet: Ints) -> _Sign | None:
    """None where it does not tell contended windows."""
    column = rows.features.index(name)
    logs = np.log(rows.x[:, column] + SIGNS[name].floor)
    alone, quiet = quiet, _undisturbed(load, logs, quiet)
    left = np.concatenate(
        [
            logs[out] - np.polyval(_line(load[seen], logs[seen]), load[out])
            for group in np.unique(rows.groups[quiet])
            if (seen := quiet & (rows.groups != group)).sum() >= FEWEST_QUIET // 2
            and (out := quiet & (rows.groups == group)).any()
        ]
        or [np.zeros(0)]
    )
    line = _line(load[quiet], logs[quiet])
    if not left.size:
        left = logs[quiet] - np.polyval(line, load[quiet])
    sd = max(float(np.sqrt(np.mean(np.square(left)))), LEAST_SD)
    free = max(len(left) - 2, 1)
    limit = max(float(stats.t.ppf(1.0 - FALSE_AT_A_LOOK, free)) * sd, math.log(LEAST_TIMES))
    if not alone.all():
        beside = logs[~alone] - np.polyval(line, load[~alone])
        limit = max(limit, float(np.quantile(beside, 0.25)) / 2.0)
        if float(np.median(beside)) <= limit:
            return None
    return _Sign(name, column, line, limit, int(alone.sum() - quiet.sum()))


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


def _line(load: Floats, logs: Floats) -> Floats:
    """A line, or a level where the load hardly varied."""
    return np.polyfit(load, logs, 1 if np.ptp(load) > VARIED else 0)


def _over(value: float, sign: _Sign, load: float) -> float:
    return math.log(value + SIGNS[sign.name].floor) - float(np.polyval(sign.line, load))
