"""Algorithm 1 of paper B for one configuration: ends, bisection, stop, repetitions."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import numpy as np

from workbench.domain.campaign import SamplingPlan
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.domain.sessions import ConfigurationOutcome
from workbench.models.base import ProfileModel
from workbench.models.scales import UNKNOWN_LOG_SD, figure, log_kpi, log_sd
from workbench.models.selection import capped_log_kpi, stated
from workbench.sampling.base import Ask, Ending, Space
from workbench.sampling.intervals import Interval, Node, ends, intervals

FEWEST_SAMPLES = 5
"""Valid loads before dRMSE may stop: two ends and two bisections say nothing about a trend."""
JUMP_RISE = 0.25
"""Share of the KPI's range that makes an interval a jump ..."""
JUMP_RATIO = 1.10
"""... which dRMSE may not leave wider than this: the breakpoint lies in it."""
UNUSABLE_LOADS = 4
"""Loads without any valid sample after which a configuration is given up."""
TRANSIENT = frozenset({"little", "host_saturated", "unsteady"})
"""Reasons that may pass: such a point is asked for once more. The others come back as they were."""


class Track:
    """What is known of one configuration; a pure function of the samples it has observed."""

    def __init__(
        self,
        configuration: Configuration,
        space: Space,
        plan: SamplingPlan,
        model_factory: Callable[[], ProfileModel],
    ) -> None:
        self.configuration = configuration
        self.taken = 0
        self._space = space
        self._plan = plan
        self._model_factory = model_factory
        self._ceiling = log_kpi(space.kpi, space.kpi_max)
        self._order = random.Random(f"{space.seed}/{space.target}/{configuration.key}")
        self._recorded = space.loads.get(configuration, ())
        self._ends = list(ends(space.primary, self._recorded))
        self._order.shuffle(self._ends)
        self._visits: dict[float, list[Sample]] = {}
        self._first_valid: list[Sample] = []
        """The first valid sample of every load, in the order taken: what Algorithm 1 sees."""
        self._sampled: Ending | None = None
        """How the bisection ended; repetitions may still be due."""
        self._repeated: list[float] = []
        self._model: tuple[int, ProfileModel] | None = None

    @property
    def ending(self) -> Ending | None:
        """How it ended, None while there is more to ask."""
        return self._sampled if self._sampled and self._repetition() is None else None

    @property
    def any_valid(self) -> bool:
        """Whether some sample is valid."""
        return bool(self._first_valid)

    @property
    def is_sampled(self) -> bool:
        """Whether its bisection has ended; repetitions may still be due."""
        return self._sampled is not None

    def has_visited(self, wl: float) -> bool:
        """Whether a sample was taken at this load, valid or not."""
        return wl in self._visits

    def observe(self, sample: Sample) -> None:
        """A sample of this configuration, valid or not."""
        wl = sample.point.wl
        before = self._visits.setdefault(wl, [])
        is_first = sample.valid and not any(s.valid for s in before)
        before.append(sample)
        self.taken += 1
        if self._sampled is None:
            if is_first:
                self._first_valid.append(sample)
            self._sampled = self._stop(is_first)
            if self._sampled:
                self._repeated = sorted(s.point.wl for s in self._first_valid)
                self._order.shuffle(self._repeated)

    def next(self) -> Ask | None:
        """The next point of this configuration; None once it has ended."""
        if self._sampled:
            return self._repetition()
        again = self._second_try()
        if again is not None:
            return self._ask(again, "once more: the first sample was not valid")
        for wl in self._ends:
            if wl not in self._visits:
                return self._ask(wl, "an end of the range")
        gaps = self._gaps()
        if not gaps:
            return None
        gap = gaps[0]
        why = f"bisects {figure(gap.low)}-{figure(gap.high)}: largest dx·dy ({gap.score:.2g})"
        return self._ask(gap.middle, why, gap)

    def _ask(self, wl: float, why: str, gap: Interval | None = None) -> Ask:
        low, high = (gap.low, gap.high) if gap else (wl, wl)
        known = self._visits.get(wl, [])
        repetition = max((s.point.repetition for s in known), default=-1) + 1
        return Ask(self.configuration, wl, repetition, low, high, why)

    def _gaps(self) -> list[Interval]:
        valid = {s.point.wl: self._y(s) for s in self._first_valid}
        nodes = [Node(wl, valid.get(wl)) for wl in sorted(self._visits)]
        return intervals(nodes, self._space.primary, self._ceiling, self._recorded)

    def _second_try(self) -> float | None:
        """A load whose only sample failed for a reason that may pass."""
        for wl, samples in self._visits.items():
            if len(samples) == 1 and not samples[0].valid and samples[0].reason in TRANSIENT:
                return wl
        return None

    def _stop(self, is_first: bool) -> Ending | None:
        """Whether the bisection ends with the sample just observed."""
        if self.taken >= max(self._plan.max_samples // max(self._plan.repetitions, 1), 1):
            return self._ended("max_samples", f"{self.taken} samples taken")
        if any(wl not in self._visits for wl in self._ends) or self._second_try() is not None:
            return None
        if not self._first_valid and len(self._visits) >= UNUSABLE_LOADS:
            return self._ended("unusable", "")
        gaps = self._gaps()
        if not gaps:
            return self._ended("converged", "no load is left to bisect")
        jumps = any(gap.rise >= JUMP_RISE and gap.ratio > JUMP_RATIO for gap in gaps)
        if jumps or not is_first or len(self._first_valid) < FEWEST_SAMPLES:
            return None
        change = self._change_of_rmse()
        if change < self._plan.epsilon:  # a change that is no number ends nothing
            note = f"|dRMSE| {change:.2g} of the KPI's range, under {self._plan.epsilon:g}"
            return self._ended("converged", note)
        return None

    def _ended(self, outcome: ConfigurationOutcome, note: str) -> Ending:
        if self._first_valid:
            return Ending(outcome, note)
        reasons = sorted({s.reason for samples in self._visits.values() for s in samples})
        note = f"none of {self.taken} samples is valid: {', '.join(r for r in reasons if r)}"
        return Ending("unusable", note)

    def _change_of_rmse(self) -> float:
        """|dRMSE| of the last sample over the KPI's range (Algorithm 1, lines 6-10).

        Both models are compared on all samples, the last included. The range goes from the lowest
        log KPI seen to the ceiling, where overload stands.
        """
        count = len(self._first_valid)
        old = (
            self._model[1]
            if self._model and self._model[0] == count - 1
            else self._fit(self._first_valid[:-1])
        )
        new = self._fit(self._first_valid)
        self._model = (count, new)
        x, y, _ = self._columns(self._first_valid)
        span = max(self._ceiling - float(y.min()), math.log(2.0))
        errors = [float(np.sqrt(np.mean((m.predict(x) - y) ** 2))) for m in (old, new)]
        return abs(errors[0] - errors[1]) / span

    def _fit(self, samples: Sequence[Sample]) -> ProfileModel:
        return self._model_factory().fit(*self._columns(samples))

    def _columns(self, samples: Sequence[Sample]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        known = [stated(s, self._space.kpi) for s in samples]
        return (
            np.log([[s.point.wl] for s in samples]),
            np.array([self._y(s) for s in samples]),
            np.array([log_sd(self._space.kpi, e) if e else UNKNOWN_LOG_SD for e in known]),
        )

    def _y(self, sample: Sample) -> float:
        """Log KPI, at the ceiling where it is above or where overload left no figure."""
        return capped_log_kpi(sample, self._space.kpi, self._ceiling)

    def _repetition(self) -> Ask | None:
        """The next repetition, all loads once in a shuffled order before any twice."""
        wanted = self._plan.repetitions
        if self.taken >= self._plan.max_samples:
            return None
        due = [
            (len(self._visits[wl]), place, wl)
            for place, wl in enumerate(self._repeated)
            if sum(s.valid for s in self._visits[wl]) < wanted and len(self._visits[wl]) <= wanted
        ]
        if not due:
            return None
        return self._ask(min(due)[2], f"repetition, {wanted} of each load are wanted")
