"""Repeated readings around the breakpoint, each on a deployment of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from workbench.domain.campaign import SamplingPlan
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.domain.sessions import ConfigurationOutcome
from workbench.models.base import ProfileModel
from workbench.models.breakpoints.scatter import saturated
from workbench.models.breakpoints.threshold import Evidence, locate
from workbench.models.scales import figure, log_kpi
from workbench.models.selection import capped_log_kpi, rate_kpi
from workbench.sampling.base import Ask, Ending, Space
from workbench.sampling.intervals import Interval, Node, ends, intervals
from workbench.sampling.taking_turns import TakingTurns
from workbench.sampling.track import TRANSIENT, UNUSABLE_LOADS

METHOD_VERSION = 1
"""Raised by hand when other points are asked for: benchmarks keep results by it."""
BRACKET = math.log(1.25)
"""Log width of the gap between carried and saturated at which searching ends."""
STEP = 0.05
"""How far above the lowest reading the search looks first: the scatter of a sample."""
OFFSETS = (0.07, -0.06, 0.1, -0.02, -0.3, 0.05, -0.1, 0.08, 0.0, 0.06)
"""Where samples lie around the breakpoint, in log load, in this order: above, where each
reads capacity directly, and below, where the response time bends."""
CLIENTS = (3.0, 0.0, 2.3, 4.0, 0.0)
"""In a closed loop, where samples lie in multiples of N*, in this order: on the plateau, which
reads X_max, and (0) at the lowest load, which reads Z + R(1)."""
EDGE_SAMPLES = 3
"""Samples of an end of the range beyond which the breakpoint lies."""


@dataclass(frozen=True)
class _Seen:
    """A valid sample: its log load, whether it broke, and its log capacity where it reads it."""

    x: float
    broken: bool
    reading: float | None


class _Track:
    """What is known of one configuration; a pure function of the samples it has observed."""

    def __init__(self, configuration: Configuration, space: Space, plan: SamplingPlan) -> None:
        self.configuration = configuration
        self.taken = 0
        self.samples: list[Sample] = []
        self._space = space
        self._most = plan.max_samples
        self._ceiling = log_kpi(space.kpi, space.kpi_max)
        self._recorded = space.loads.get(configuration, ())
        self._ends = ends(space.primary, self._recorded)
        self._seen: list[_Seen] = []

    def observe(self, sample: Sample) -> None:
        self.taken += 1
        self.samples.append(sample)
        if sample.valid:
            self._seen.append(self._see(sample))

    def _see(self, sample: Sample) -> _Seen:
        x = math.log(sample.point.wl)
        over = capped_log_kpi(sample, self._space.kpi, self._ceiling) >= self._ceiling
        rate = rate_kpi(sample)
        if rate is not None and saturated(sample, self._space.loss_goal, rate):
            return _Seen(x, True, math.log(sample.kpis[rate].value))
        return _Seen(x, over, None)

    @property
    def ending(self) -> Ending | None:
        """How it ended, None while there is more to ask."""
        if self.taken >= self._most:
            return self._ended("max_samples", f"{self.taken} samples taken")
        tried = {s.point.wl for s in self.samples}
        if not self._seen and len(tried) >= UNUSABLE_LOADS:
            return self._ended("unusable", "")
        if self._next() is None:
            return self._ended("converged", "no load is left to ask for")
        return None

    def _ended(self, outcome: ConfigurationOutcome, note: str) -> Ending:
        if self._seen:
            return Ending(outcome, note)
        reasons = sorted({s.reason for s in self.samples if s.reason})
        return Ending("unusable", f"none of {self.taken} samples is valid: {', '.join(reasons)}")

    def ask(self, block: int) -> Ask:
        found = self._next()
        assert found is not None
        wl, low, high, why = found
        repetition = 1 + max(
            (s.point.repetition for s in self.samples if s.point.wl == wl), default=-1
        )
        return Ask(self.configuration, wl, repetition, min(low, wl), max(high, wl), why, block)

    def _next(self) -> tuple[float, float, float, str] | None:
        tried: dict[float, list[Sample]] = {}
        for sample in self.samples:
            tried.setdefault(sample.point.wl, []).append(sample)
        for wl, samples in tried.items():
            if len(samples) == 1 and not samples[0].valid and samples[0].reason in TRANSIENT:
                return wl, wl, wl, "once more: the first sample was not valid"
        for wl in self._ends:
            if wl not in tried:
                return wl, wl, wl, "an end of the range"
        if self._space.load.kind == "closed":
            return self._clients(tried)
        carried = [s for s in self._seen if not s.broken]
        broken = [s for s in self._seen if s.broken]
        if not self._seen or not carried or not broken:
            return self._beyond(carried, broken, tried)
        return self._around(carried, broken)

    def _beyond(
        self, carried: Sequence[_Seen], broken: Sequence[_Seen], tried: Mapping[float, list[Sample]]
    ) -> tuple[float, float, float, str] | None:
        """Nothing broke, or all did: be sure of the end, then fill the curve."""
        wl = self._ends[0] if broken and not carried else self._ends[-1]
        visits = tried[wl]
        if (carried or broken) and sum(s.valid for s in visits) and len(visits) < EDGE_SAMPLES:
            return wl, wl, wl, "the end of the range again: the breakpoint may lie beyond"
        if broken and not carried:
            return None
        gap = self._gap(tried)
        if gap is None or (len(carried) >= 6 and max(s.x for s in carried) >= math.log(wl) - 1e-9):
            return None
        return gap.middle, gap.low, gap.high, "fills the widest gap of the curve"

    def _clients(
        self, tried: Mapping[float, list[Sample]]
    ) -> tuple[float, float, float, str] | None:
        """Closed loop: in turns the curve, and the two figures that N* = (Z + R(1))·X_max needs."""
        valid = [s for s in self.samples if s.valid and rate_kpi(s)]
        gap = self._gap(tried)
        if valid and (len(valid) % 2 == 0 or gap is None):
            lowest = min(valid, key=lambda s: s.point.wl)
            rates = [s.kpis[name].value for s in valid if (name := rate_kpi(s))]
            name = rate_kpi(lowest)
            star = lowest.point.wl / (lowest.kpi(name) or math.inf if name else math.inf)
            star *= max(rates)
            factor = CLIENTS[(len(valid) // 2 - 1) % len(CLIENTS)]
            wl = self._place(math.log(star * factor)) if factor else self._ends[0]
            return wl, wl, wl, f"reads N* near {figure(star)}"
        if gap is None:
            return None
        return gap.middle, gap.low, gap.high, "bisects the largest dx·dy"

    def _gap(self, tried: Mapping[float, list[Sample]]) -> Interval | None:
        """The largest dx·dy of Algorithm 2."""
        nodes = [
            Node(
                w,
                next(
                    (capped_log_kpi(s, self._space.kpi, self._ceiling) for s in v if s.valid), None
                ),
            )
            for w, v in sorted(tried.items())
        ]
        gaps = intervals(nodes, self._space.primary, self._ceiling, self._recorded)
        return gaps[0] if gaps else None

    def _around(
        self, carried: Sequence[_Seen], broken: Sequence[_Seen]
    ) -> tuple[float, float, float, str]:
        highest = max(s.x for s in carried)
        lowest = min(s.x for s in broken)
        ordered = highest < lowest
        readings = [s.reading for s in broken if s.reading is not None]
        first, last = self._ends[0], self._ends[-1]
        low, high = (
            min(max(math.exp(x), first), last)  # whatever exp and log make of the ends
            for x in (min(highest, lowest), max(highest, lowest))
        )
        place = self._place
        if ordered and lowest - highest > BRACKET:
            best = max(readings, default=None)
            middle = 0.5 * (highest + lowest)
            if best is not None and highest < best and best + STEP < lowest - STEP:
                middle = best + STEP
            return place(middle), low, high, f"searches between {figure(low)} and {figure(high)}"
        x = self.centre(carried, broken)
        turn = sum(1 for s in self._seen if abs(s.x - x) <= 0.5)
        offset = OFFSETS[max(turn - 1, 0) % len(OFFSETS)]
        wl = place(x + offset)
        return wl, low, high, f"reads the breakpoint near {figure(math.exp(x))} once more"

    def centre(self, carried: Sequence[_Seen], broken: Sequence[_Seen]) -> float:
        """A first guess of the breakpoint's log load; `models.breakpoints` does it properly."""
        readings = [(s.x, s.reading, 0.0, 1.0) for s in broken if s.reading is not None]
        verdicts = [s.x for s in broken if s.reading is None]
        found = locate(Evidence(above=[s.x for s in carried], below=verdicts, exact=readings), STEP)
        return found.centre

    def _place(self, x: float) -> float:
        low, high = self._ends[0], self._ends[-1]
        wl = min(max(math.exp(x), low), high)
        if self._recorded:
            return min(self._recorded, key=lambda known: abs(math.log(known / wl)))
        wl = float(round(wl)) if self._space.primary.integer else float(f"{wl:.4g}")
        return min(max(wl, low), high)


class BlockSampler(TakingTurns[_Track]):
    """Samples all configurations of a target in rounds, each round on a new deployment.

    Parameters
    ----------
    space : Space
        Target, configurations, range and KPI.
    plan : SamplingPlan
        `max_samples` counts all samples of a configuration, invalid ones included.
    model_factory : callable
        Not used: what is asked rests on readings, not on a model.
    """

    def __init__(
        self,
        space: Space,
        plan: SamplingPlan,
        *,
        model_factory: Callable[[], ProfileModel],
    ) -> None:
        del model_factory
        super().__init__(space, {c: _Track(c, space, plan) for c in space.configurations})
        self.plan = plan

    @staticmethod
    def blocks(plan: SamplingPlan) -> int:
        """Deployments of a target at most: every round of samples has its own."""
        return plan.max_samples

    def ask(self) -> Ask | None:
        """The next point; None when every configuration has ended. Asking again changes nothing."""
        track = self._following()
        return track.ask(track.taken) if track else None
