"""Uniform sampling: the papers' grids, as a baseline and for data sets that others can compare."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from workbench.domain.campaign import SamplingPlan
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, PrimaryWorkload
from workbench.domain.samples import Sample
from workbench.sampling.base import Ask, Ending, Space
from workbench.sampling.intervals import axis, ends

METHOD_VERSION = 1
"""Raised by hand when other points are asked for: benchmarks keep results by it."""


class UniformSampler:
    """Loads spread evenly over the range on its scale, each repeated in a block of its own.

    Paper A measures 30 loads, evenly along the log scale, five times each ("VNF Performance
    Modelling", 5.1 and Table 2); paper B's uniform baseline is the same without repetition
    ("Optimized Sampling Strategies", 6.1). Here a repetition takes all loads and configurations
    once, in a seeded random order on a fresh deployment, before any is taken again (METHOD.md 1).

    Parameters
    ----------
    space : Space
        Target, configurations and range.
    plan : SamplingPlan
        `max_samples` counts all samples of a configuration: `max_samples` // `repetitions` loads.
        Of these, `options["upper"]` lie evenly on the linear scale in the upper half of the range,
        where functions saturate and a log scale has few loads; of recorded loads none does.

    Raises
    ------
    DataError
        If fewer samples than repetitions are allowed, or fewer loads than `upper`.
    """

    def __init__(self, space: Space, plan: SamplingPlan) -> None:
        self.space = space
        self.plan = plan
        count = loads_allowed(space, plan)
        upper = int(plan.options.get("upper", 0))
        if not 0 <= upper < count:
            raise DataError(
                f"upper is {upper}, must be 0 to {count - 1}: {count} loads are taken",
                where=f"sampling of {space.target}",
                remedy="Raise max_samples or lower the option `upper`",
            )
        spread = {*even_loads(space.primary, count - upper), *upper_loads(space.primary, upper)}
        self._loads: dict[Configuration, tuple[float, ...]] = {
            c: even_loads(space.primary, count, space.loads[c])
            if space.loads.get(c)
            else tuple(sorted(spread))
            for c in space.configurations
        }
        self._taken: dict[Configuration, set[tuple[float, int]]] = {
            c: set() for c in space.configurations
        }
        self._any_valid: set[Configuration] = set()
        self._skipped: set[Configuration] = set()
        self._left: dict[int, list[tuple[Configuration, float]]] = {}

    def tell(self, samples: Sequence[Sample]) -> None:
        """New samples, valid or not; strangers are ignored."""
        for sample in samples:
            point = sample.point
            if point.target == self.space.target and point.configuration in self._taken:
                self._taken[point.configuration].add((point.wl, point.repetition))
                if sample.valid:
                    self._any_valid.add(point.configuration)

    def skip(self, configuration: Configuration) -> None:
        """The user wants no more of it."""
        self._skipped.add(configuration)

    def ask(self) -> Ask | None:
        """The next load that is missing, repetition after repetition."""
        for repetition in range(self.plan.repetitions):
            order = self._order(repetition)
            while order and self._is_done(*order[-1], repetition):
                order.pop()
            if order:
                configuration, wl = order[-1]
                why = f"repetition {repetition + 1} of {self.plan.repetitions} of an even grid"
                return Ask(configuration, wl, repetition, wl, wl, why, block=repetition)
        return None

    def _order(self, repetition: int) -> list[tuple[Configuration, float]]:
        """What is left of a repetition, the next one last: what is done stays done."""
        if repetition not in self._left:
            points = [(c, wl) for c, loads in self._loads.items() for wl in loads]
            random.Random(f"{self.space.seed}/{self.space.target}/{repetition}").shuffle(points)
            self._left[repetition] = points[::-1]
        return self._left[repetition]

    def _is_done(self, configuration: Configuration, wl: float, repetition: int) -> bool:
        taken = (wl, repetition) in self._taken[configuration]
        return taken or configuration in self._skipped

    @property
    def endings(self) -> Mapping[Configuration, Ending]:
        """Configurations whose grid is measured, or that were skipped."""
        found: dict[Configuration, Ending] = {}
        for configuration, taken in self._taken.items():
            loads = self._loads[configuration]
            wanted = {(wl, n) for wl in loads for n in range(self.plan.repetitions)}
            if wanted <= taken:
                usable = configuration in self._any_valid
                found[configuration] = (
                    Ending("max_samples", f"{len(loads)} loads, {len(wanted)} samples taken")
                    if usable
                    else Ending("unusable", f"none of {len(wanted)} samples is valid")
                )
            elif configuration in self._skipped:
                found[configuration] = Ending("skipped", f"skipped after {len(taken)} samples")
        return found


def upper_loads(primary: PrimaryWorkload, count: int) -> tuple[float, ...]:
    """`count` loads on the linear scale, evenly between the middle of the range and its top."""
    middle = (primary.low + primary.high) / 2
    loads = [
        middle + (primary.high - middle) * place / (count + 1) for place in range(1, count + 1)
    ]
    return tuple(sorted({float(round(wl)) if primary.integer else wl for wl in loads}))


def loads_allowed(space: Space, plan: SamplingPlan) -> int:
    """Loads of a configuration that a plan has samples for. Raises `DataError` if there is none."""
    count = plan.max_samples // plan.repetitions
    if count < 1:
        raise DataError(
            f"{plan.max_samples} samples are too few for {plan.repetitions} repetitions",
            where=f"sampling of {space.target}",
            remedy="Raise max_samples or lower repetitions",
        )
    return count


def even_loads(
    primary: PrimaryWorkload, count: int, recorded: Sequence[float] = ()
) -> tuple[float, ...]:
    """At most `count` loads from low to high, evenly on the range's scale, rising.

    Whole loads (clients) that fall together at the low end are taken once. Where only recorded
    loads can be had, each even one takes the nearest that is left.
    """
    low, high = (bounds := ends(primary, recorded))[0], bounds[-1]
    if count == 1:
        return (high,)
    first, last = axis(low, primary), axis(high, primary)
    places = [first + i / (count - 1) * (last - first) for i in range(count)]
    if recorded:
        if len(recorded) <= count:
            return tuple(recorded)
        left = list(recorded)
        return tuple(sorted(_take_nearest(left, place, primary) for place in places))
    loads = [math.exp(place) for place in places] if primary.scale == "log" else places
    loads = [min(max(wl, low), high) for wl in loads]  # whatever exp and log make of the ends
    loads[0], loads[-1] = low, high
    return tuple(sorted({float(round(wl)) if primary.integer else wl for wl in loads}))


def _take_nearest(left: list[float], place: float, primary: PrimaryWorkload) -> float:
    """Remove the load nearest to a place of the axis, and return it."""
    return left.pop(min(range(len(left)), key=lambda i: abs(axis(left[i], primary) - place)))
