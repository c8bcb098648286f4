"""What samplers share that choose freely over configurations x `wl`: budget, repetitions, ends."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.domain.campaign import SamplingPlan
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.models.scales import log_kpi
from workbench.models.selection import capped_log_kpi, stated
from workbench.sampling.base import Ask, Ending, Space
from workbench.sampling.intervals import ends
from workbench.sampling.track import UNUSABLE_LOADS
from workbench.sampling.uniform import loads_allowed


@dataclass(frozen=True)
class NextLoad:
    """A load of a configuration (its place in the space), what it bisects, and why."""

    place: int
    wl: float
    low: float
    high: float
    why: str


class ConfigurationVisits:
    """What was measured of one configuration."""

    def __init__(self, configuration: Configuration, recorded: Sequence[float]) -> None:
        self.configuration = configuration
        self.recorded = tuple(recorded)
        """The loads that there are; empty where any can be measured."""
        self.samples: dict[float, list[Sample]] = {}
        self.taken = 0
        self.any_valid = False
        self.skipped = False

    def observe(self, sample: Sample) -> bool:
        """Whether its load was not visited before."""
        is_new = sample.point.wl not in self.samples
        self.samples.setdefault(sample.point.wl, []).append(sample)
        self.taken += 1
        self.any_valid |= sample.valid
        return is_new

    @property
    def left(self) -> list[float]:
        """Recorded loads that were not visited."""
        return [wl for wl in self.recorded if wl not in self.samples]

    @property
    def is_unusable(self) -> bool:
        """Nothing is valid, and enough was tried."""
        return not self.any_valid and len(self.samples) >= UNUSABLE_LOADS

    def due(self, repetition: int) -> list[float]:
        """Loads that this repetition has not visited: of those that could be measured."""
        return [
            wl
            for wl, samples in sorted(self.samples.items())
            if len(samples) <= repetition and any(s.valid for s in samples)
        ]


class GridSampler:
    """Base of the baselines: a subclass says which point comes next, all else is done here.

    Every configuration gets at most `max_samples` // `repetitions` loads, whichever order they
    come in; a configuration of which nothing is valid after `UNUSABLE_LOADS` loads is given up.
    When no load is left, what could be measured is repeated, a repetition at a time, each in a
    seeded order and a block of its own (METHOD.md 1).

    Parameters
    ----------
    space : Space
        Where it has recorded loads, only those are asked for.
    plan : SamplingPlan
        `max_samples` counts all samples of a configuration, invalid ones included.

    Raises
    ------
    DataError
        If fewer samples than repetitions are allowed, or the range holds no load above zero.
    """

    def __init__(self, space: Space, plan: SamplingPlan) -> None:
        self.space = space
        self.plan = plan
        self.ceiling = log_kpi(space.kpi, space.kpi_max)
        self.each = loads_allowed(space, plan)
        ends(space.primary)
        self.visits = tuple(
            ConfigurationVisits(c, space.loads.get(c, ())) for c in space.configurations
        )
        self._place = {c: place for place, c in enumerate(space.configurations)}
        self._choice: NextLoad | None = None
        self._is_current = False
        """Whether `_choice` knows all that was told."""

    def tell(self, samples: Sequence[Sample]) -> None:
        """New samples, valid or not, in the order they were taken; strangers are ignored."""
        primary = self.space.primary
        for sample in samples:
            place = self._place.get(sample.point.configuration)
            in_range = primary.low <= sample.point.wl <= primary.high
            if place is not None and in_range and sample.point.target == self.space.target:
                is_new = self.visits[place].observe(sample)
                self._is_current = False
                if is_new:
                    self.observe(place, sample)

    def skip(self, configuration: Configuration) -> None:
        """The user wants no more of it."""
        if configuration in self._place:
            self.visits[self._place[configuration]].skipped = True
            self._is_current = False

    def ask(self) -> Ask | None:
        """The next point; None when every configuration has ended. Asking again changes nothing."""
        if choice := self._chosen():
            configuration = self.visits[choice.place].configuration
            low, high = min(choice.low, choice.wl), max(choice.high, choice.wl)
            return Ask(configuration, choice.wl, 0, low, high, choice.why)
        return self._repetition()

    @property
    def endings(self) -> Mapping[Configuration, Ending]:
        """Configurations that need no more samples."""
        explored = self._chosen() is None
        found = {}
        for visits in self.visits:
            if ending := self._ending(visits, explored):
                found[visits.configuration] = ending
        return found

    def observe(self, place: int, sample: Sample) -> None:
        """The first sample of a load, for subclasses that keep what they learn."""

    def choose(self, open_: Sequence[int]) -> NextLoad | None:
        """A load not visited yet of one of the open configurations; None: there is none left."""
        raise NotImplementedError

    def level(self, sample: Sample) -> float | None:
        """Log KPI, at the ceiling in overload; None of an invalid sample.

        Raises
        ------
        DataError
            If a valid sample states a KPI that is no number: nothing may be learned from it.
        """
        if not sample.valid:
            return None
        known = stated(sample, self.space.kpi)
        if known is not None and not math.isfinite(known.value):
            raise DataError(
                f"{self.space.kpi} is {known.value}",
                where=f"sample {sample.id}",
                remedy="Measure that point again, or import the data set again without it",
            )
        return capped_log_kpi(sample, self.space.kpi, self.ceiling)

    def _chosen(self) -> NextLoad | None:
        if not self._is_current:
            open_ = [place for place, visits in enumerate(self.visits) if self._is_open(visits)]
            self._choice = self.choose(open_) if open_ else None
            self._is_current = True
        return self._choice

    def _is_open(self, visits: ConfigurationVisits) -> bool:
        exhausted = bool(visits.recorded) and not visits.left
        return not (visits.skipped or exhausted or visits.is_unusable or self._is_full(visits))

    def _is_full(self, visits: ConfigurationVisits) -> bool:
        return len(visits.samples) >= self.each or visits.taken >= self.plan.max_samples

    def _repeats(self, visits: ConfigurationVisits, repetition: int) -> list[float]:
        if visits.skipped or visits.taken >= self.plan.max_samples:
            return []
        return visits.due(repetition)

    def _repetition(self) -> Ask | None:
        wanted = self.plan.repetitions
        for repetition in range(1, wanted):
            due = [(v, wl) for v in self.visits for wl in self._repeats(v, repetition)]
            if due:
                # Every point draws its own place: the order does not depend on what is left of it.
                seed = f"{self.space.seed}/{self.space.target}/{repetition}"
                visits, wl = min(
                    due,
                    key=lambda d: random.Random(f"{seed}/{d[0].configuration.key}/{d[1]}").random(),
                )
                number = max(s.point.repetition for s in visits.samples[wl]) + 1
                why = f"repetition {repetition + 1} of {wanted}"
                return Ask(visits.configuration, wl, number, wl, wl, why, block=repetition)
        return None

    def _ending(self, visits: ConfigurationVisits, explored: bool) -> Ending | None:
        if any(self._repeats(visits, r) for r in range(1, self.plan.repetitions)):
            return None
        if self._is_open(visits) and not explored:
            return None
        taken, loads = visits.taken, len(visits.samples)
        if visits.skipped and not (self._is_full(visits) and visits.any_valid):
            return Ending("skipped", f"skipped after {taken} samples")
        if taken and not visits.any_valid:
            reasons = sorted({s.reason for v in visits.samples.values() for s in v})
            return Ending("unusable", f"none of {taken} samples is valid: {', '.join(reasons)}")
        if self._is_full(visits):
            return Ending("max_samples", f"{loads} loads, {taken} samples taken")
        return Ending("converged", f"no load is left to ask for after {taken} samples")
