"""Breakpoint searches on the devices of `devices`: the protocol, MLRsearch and bisection.

Ours is in `ours`, so that what others took is not searched again when it changes.

Every search is given the same range and goal, and returns a bracket; its error is that of the
bracket's geometric middle, which favours those that state bounds only. A method has a time score
only where 90 % of its errors are within the width and its bracket holds the truth in 90 % of all
searches (research/peers.md 4, 5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from msgspec.structs import replace

from science.devices import GOAL, HIGH, LOW, NOISES, Device, Fault, Noise, device
from science.mlrsearch import (
    AbstractMeasurer,
    Config,
    MeasurementResult,
    MultipleLossRatioSearch,
    SearchGoal,
)

METHOD_VERSION = 2
"""Raised by hand when a search here or a device of `devices` does otherwise."""
Bracket = tuple[float, float] | None
"""Bounds of the breakpoint; None where the search refuses to answer."""
Search = Callable[[Device, float], Bracket]
"""Of a device at a relative width."""
GridSearch = Callable[[list[Device], float], list[Bracket]]
"""Of a grid of devices, by rising allocation."""
TRIAL_S = {"MLRsearch E": 30.0, "RFC 2544": 60.0, "bisection 30 s": 30.0}
"""Seconds of the trials, half of which are to pass; of all others one second."""
WITHIN, COVERED = 0.9, 0.9
OVERHEADS_S = (0.0, 0.5, 3.0, 15.0)
WIDTHS = (0.05, 0.005)


class _Measurer(AbstractMeasurer):  # type: ignore[misc]  # no types
    """Lets MLRsearch drive a device. Overheads are charged to it and not told to it: it would
    count them as evidence. What could not be sent is told: it counts as lost."""

    def __init__(self, driven: Device) -> None:
        self.driven = driven

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        sent, answered = self.driven.trial(intended_load, intended_duration)
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=sent,
            forwarding_count=answered,
            intended_count=round(intended_load * intended_duration),
        )


def mlrsearch(
    first_s: float, last_s: float, sum_s: float, exceed: float, low: float = LOW, high: float = HIGH
) -> Search:
    """The package with one goal; the trial that it ignores as a warm-up is not run."""

    def search(driven: Device, width: float) -> Bracket:
        goal = SearchGoal(
            loss_ratio=GOAL,
            exceed_ratio=exceed,
            relative_width=width,
            initial_trial_duration=first_s,
            final_trial_duration=last_s,
            duration_sum=sum_s,
            fail_fast=False,
        )
        config = Config()
        config.goals = (goal,)
        # In this order: each is checked against the other, at first against its default.
        config.min_load, config.max_load = low, high
        config.warmup_duration = 0.0
        config.search_duration_max = 1200.0
        try:
            found = MultipleLossRatioSearch(config).search(_Measurer(driven), lambda _: None)[goal]
        except RuntimeError:
            return None
        bounds = found.relevant_lower_bound, found.relevant_upper_bound
        if bounds[0] is None or bounds[1] is None:
            return None
        return float(bounds[0]), float(bounds[1])

    return search


def bisection(seconds: float) -> Search:
    """One trial per load, halves in logs; a failed bound is never looked at again."""

    def search(driven: Device, width: float) -> Bracket:
        low, high = LOW, HIGH
        while high / low > 1.0 + width:
            middle = math.sqrt(low * high)
            sent, answered = driven.trial(middle, seconds)
            intended = middle * seconds
            if (intended - answered) / max(intended, 1.0) <= GOAL and sent > 0:
                low = middle
            else:
                high = middle
        return low, high

    return search


MLR_A, MLR_E = mlrsearch(1.0, 1.0, 21.0, 0.5), mlrsearch(1.0, 30.0, 30.0, 0.0)
SEARCHES: dict[str, Search] = {
    "MLRsearch A": MLR_A,
    "MLRsearch E": MLR_E,
    "RFC 2544": mlrsearch(1.0, 60.0, 60.0, 0.0),
    "bisection 1 s": bisection(1.0),
    "bisection 30 s": bisection(30.0),
}


class Searched(msgspec.Struct, frozen=True):
    """One search: what it stated and what it spent."""

    error: float
    """|log(middle / truth)|; infinite where it refused."""
    covered: bool
    trials: int
    load_s: float
    wall_s: float
    half_error: float = math.inf
    """As `error`, of the load at which half of all trials pass."""
    half_covered: bool = False


def searched(search: Search, driven: Device, width: float, trial_s: float = 1.0) -> Searched:
    """Run it and hold its bracket against the truth of the device as it was meanwhile, and against
    the load at which half of the trials of `trial_s` seconds pass."""
    bracket = search(driven, width)
    if bracket is None or bracket[0] <= 0.0:
        return Searched(math.inf, False, driven.trials, driven.load_s, driven.wall_s)
    error, covered = _held(bracket, driven.truth, width)
    half = _held(bracket, driven.passing_half(trial_s), width)
    return Searched(error, covered, driven.trials, driven.load_s, driven.wall_s, *half)


def _held(bracket: tuple[float, float], truth: float, width: float) -> tuple[float, bool]:
    """The error of its middle in logs, and whether it holds the truth."""
    low, high = bracket
    # A thousandth of the width: brackets and truth are rounded differently.
    slack = 1.0 + width * 1e-3
    error = abs(math.log(math.sqrt(low * high) / truth))
    return error, low / slack <= truth <= high * slack


@dataclass(frozen=True)
class Cell:
    """Searches of one method under one condition."""

    width: float
    found: Sequence[Searched]

    @property
    def error(self) -> float:
        """The 90th percentile."""
        errors = [one.error for one in self.found]
        return float(np.quantile(errors, WITHIN, method="inverted_cdf"))

    @property
    def coverage(self) -> float:
        return sum(one.covered for one in self.found) / len(self.found)

    @property
    def fair(self) -> bool:
        """Good enough to have a time."""
        return self.error <= math.log1p(self.width) and self.coverage >= COVERED

    def spent(self, what: str = "load_s", share: float = 0.5) -> float:
        values = [getattr(one, what) for one in self.found]
        return float(np.quantile(values, share, method="inverted_cdf"))


def cell(search: Search, devices: Sequence[Device], width: float, trial_s: float = 1.0) -> Cell:
    """One method on devices of a kind."""
    return Cell(width, [searched(search, one, width, trial_s) for one in devices])


def both_rows(cells: Iterable[tuple[str, str, Sequence[Cell]]]) -> list[list[str]]:
    """Rows of kind, noise and per method: p90 error and coverage of the expected loss, and of the
    load at which half of the trials pass."""
    rows = []
    for kind, noise, own in cells:
        row = [kind, noise]
        for one in own:
            half = [replace(f, error=f.half_error, covered=f.half_covered) for f in one.found]
            row.append(f"{_quality(one)} / {_quality(Cell(one.width, half))}")
        rows.append(row)
    return rows


def _quality(one: Cell) -> str:
    error = "refused" if math.isinf(one.error) else f"{100 * one.error:.2g} %"
    return f"{error} · {100 * one.coverage:.0f} %"


def faulty(search: Search, fault: Fault, devices: int, width: float = 0.05) -> tuple[int, int, int]:
    """Searches that were right, that refused and that were silently wrong under a fault."""
    right = refused = 0
    for seed in range(devices):
        driven = device("hard knee", NOISES[1], seed, fault=fault)
        bracket = search(driven, width)
        if bracket is None:
            refused += 1
        elif bracket[0] / (1.0 + width) <= driven.truth <= bracket[1] * (1.0 + width):
            right += 1
    return right, refused, devices - right - refused


# ------------------------------------------------------------------- with a neighbour's result

VCPUS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
"""A grid of one parameter: capacities follow a power of it, with 10 % of luck each."""


def neighbours(seed: int, noise: Noise, overhead_s: float = 0.0) -> list[Device]:
    """A grid of devices, by rising allocation."""
    rng = np.random.default_rng([seed, 11])
    base = 6_000.0 * math.exp(rng.uniform(-0.7, 0.7))
    power = rng.uniform(0.7, 1.1)
    return [
        Device(
            "hard knee",
            noise,
            base * vcpu**power * math.exp(0.1 * rng.standard_normal()),
            seed * 100 + place,
            overhead_s,
        )
        for place, vcpu in enumerate(VCPUS)
    ]


def cold(search: Search) -> GridSearch:
    """Every configuration from scratch."""
    return lambda devices, width: [search(one, width) for one in devices]


def warm_mlrsearch(devices: list[Device], width: float) -> list[Bracket]:
    """MLRsearch with the neighbour's result: a range of half to twice what the ratio of the
    allocations predicts, and the whole range where that does not hold the breakpoint."""
    found: list[Bracket] = []
    for place, one in enumerate(devices):
        bracket: Bracket = None
        if found and (before := found[-1]) is not None:
            guess = math.sqrt(before[0] * before[1]) * VCPUS[place] / VCPUS[place - 1]
            low, high = max(guess / 2.0, LOW), min(guess * 2.0, HIGH)
            bracket = mlrsearch(1.0, 1.0, 21.0, 0.5, low, high)(one, width)
        found.append(bracket or MLR_A(one, width))
    return found


GRIDS: dict[str, GridSearch] = {
    "MLRsearch A, each from scratch": cold(MLR_A),
    "MLRsearch A, neighbour's range": warm_mlrsearch,
}


def grid_cell(
    search: GridSearch, noise: Noise, width: float, grids: int, overhead_s: float = 0.0
) -> Cell:
    """A way to search grids; every configuration counts, the neighbour that paid included."""
    found: list[Searched] = []
    for seed in range(grids):
        devices = neighbours(seed, noise, overhead_s)
        brackets = search(devices, width)
        for one, bracket in zip(devices, brackets, strict=True):
            found.append(searched(_already(bracket), one, width))
    return Cell(width, found)


def _already(bracket: Bracket) -> Search:
    return lambda driven, width: bracket  # noqa: ARG005


SWEPT: dict[str, tuple[tuple[Search, float], ...]] = {
    "MLRsearch, 1 s trials": tuple(
        (mlrsearch(1.0, 1.0, total, 0.5), 0.005) for total in (1.0, 3.0, 5.0, 11.0, 21.0, 60.0)
    ),
    "bisection": tuple((bisection(seconds), 0.005) for seconds in (1.0, 3.0, 10.0, 30.0)),
}
"""Each method swept by what it offers: sum of durations, seconds of a trial, width."""


def time_and_error(
    settings: Sequence[tuple[Search, float]], devices: int, noise: Noise
) -> list[tuple[float, float]]:
    """Median seconds of load and the 90th percentile of the error in per cent, per setting."""
    points = []
    for search, width in settings:
        found = [
            searched(search, device("hard knee", noise, seed), width) for seed in range(devices)
        ]
        whole = Cell(width, found)
        points.append((whole.spent(), 100.0 * whole.error))
    return points


def table_rows(
    cells: Iterable[tuple[str, str, Sequence[Cell]]],
) -> list[list[str]]:
    """Rows of kind, noise and per method: seconds (p90), p90 error, coverage; no seconds where
    the quality is not met."""
    rows = []
    for kind, noise, own in cells:
        row = [kind, noise]
        for one in own:
            time = f"{one.spent():.0f} s ({one.spent(share=0.9):.0f})" if one.fair else "-"
            row.append(f"{time} · {_quality(one)}")
        rows.append(row)
    return rows
