"""What a breakpoint rule is given, and how it answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench.domain import kpis
from workbench.domain.lab import HostNoise
from workbench.domain.parameters import Configuration, LoadModel, PrimaryWorkload, Sla
from workbench.domain.profiles import Breakpoint, BreakpointRule, BreakpointState
from workbench.domain.samples import Sample
from workbench.models.breakpoints.overload import EDGE, FULL, PLAIN, SHAPES, Shape
from workbench.models.breakpoints.scatter import (
    BELIEVED,
    COMPONENTS,
    CapacityReading,
    Posterior,
    busiest,
    centre,
    evenly,
    plateau,
    read,
    saturated,
    unseen_sd,
)
from workbench.models.scales import figure, log_kpi
from workbench.models.selection import (
    capped_log_kpi,
    limited_by_source,
    of_configuration,
    rate_kpi,
)

_MOST_READINGS = 60
"""Readings that are pooled: more tell little more of the scatter, and cost their number cubed."""
IN_STEP = 20.0
"""Think times that samples must have been measured for, in the median of a configuration. Clients
that began together ask together until queues have spread them, for a cycle or two: in less than
that their burst is more than the 5 % of the requests that a p95 looks away from (docs/truth.md)."""
_CLOSE = math.log(3.0)
"""How far below capacity, in log load, usage is compared with it."""


@dataclass(frozen=True)
class RuleTerms:
    """What a campaign says that the rules need.

    Attributes
    ----------
    kpi, kpi_max : the KPI of the rules `knee` and `covariance`, and its ceiling in its unit.
    loss_goal : long-run share of unserved requests that `capacity` tolerates.
    sla : its limit; without one there is no rule `sla`.
    noise : what `doctor --measure` found of the host's noise: prior for what one session cannot
        see, above all drift slower than itself. Without it the priors of `scatter` stand.
    """

    primary: PrimaryWorkload
    load: LoadModel
    kpi: str
    kpi_max: float
    loss_goal: float
    sla: Sla | None
    noise: HostNoise | None = None


@dataclass(frozen=True)
class RuleInputs:
    """The samples of one configuration and the rule's parameters.

    `valid` and `every` are sorted by `wl`; `top` and `bottom` are the highest and lowest valid
    load (NaN where nothing is valid).
    """

    target: str
    configuration: Configuration
    valid: tuple[Sample, ...]
    every: tuple[Sample, ...]
    primary: PrimaryWorkload
    load: LoadModel
    kpi: str
    kpi_max: float
    loss_goal: float
    sla: Sla | None
    noise: HostNoise | None = None
    log_capacity: Posterior | None = None
    """Of an open loop, where a sample of this configuration reads it."""

    @classmethod
    def of(
        cls,
        target: str,
        configuration: Configuration,
        samples: Sequence[Sample],
        terms: RuleTerms,
    ) -> RuleInputs:
        load, loss_goal, noise = terms.load, terms.loss_goal, terms.noise
        every = tuple(
            s
            for s in of_configuration(target, configuration, samples)
            if s.load_model == load.key and s.point.wl > 0.0
        )
        valid = tuple(s for s in every if s.valid)
        pooled = [
            s for s in samples if s.valid and s.point.target == target and s.load_model == load.key
        ]
        log_capacity = None
        if load.kind == "open":
            readings = sorted(read(pooled, loss_goal), key=lambda r: (r.block, r.log_wl))
            found = _centred(_pool(readings, configuration), noise, loss_goal)
            if configuration in found:
                about = [evenly(*shape.about_goal(loss_goal)) for shape in SHAPES]
                log_capacity = found[configuration].moved(about)
        return cls(
            target, configuration, valid, every, terms.primary, load, terms.kpi, terms.kpi_max,
            loss_goal, terms.sla, noise, log_capacity,
        )  # fmt: skip

    @cached_property
    def rate(self) -> str:
        """The KPI that says what was carried: requests or packets per second."""
        return next(filter(None, map(rate_kpi, self.valid)), kpis.THROUGHPUT)

    @property
    def sample_sd(self) -> float:
        """Log standard deviation from sample to sample of what a function carries."""
        return self.log_capacity.sd if self.log_capacity else unseen_sd(self.noise)

    @property
    def shared_sd(self) -> float:
        """Log standard deviation that all samples of a session are thought to share."""
        return unseen_sd(self.noise, drift_only=True)

    def functions(self, sample: Sample) -> list[str]:
        """Names of the functions whose usage was seen."""
        return sorted(set(sample.usage) - COMPONENTS)

    def busiest(self) -> str | None:
        """The function with the highest share of its allocation in any valid sample."""
        return busiest(self.valid)

    def plateau(self, name: str) -> float:
        """Usage of a function at its plateau."""
        return plateau(name, self.valid)

    @cached_property
    def _bottleneck(self) -> tuple[str | None, float]:
        """The busiest function and its usage at its plateau; 0 where none was seen."""
        name = self.busiest()
        return name, self.plateau(name) if name else 0.0

    def overloads(self, shape: Shape = PLAIN[0]) -> list[float | None]:
        """Log load over log capacity that has the outcome of each valid sample in steady state,
        None where nobody can say.

        How far a saturated sample was over says its loss, under a shape of overload. One that
        carried its load used the share λ/C of what the bottleneck uses at saturation (utilisation
        law U = X·D, Denning & Buzen 1978), which is believed where usage follows throughput up to
        saturation; where usage is full already, it is what little was lost that says the place.
        """
        name, top = self._bottleneck
        at = shape.goal(self.loss_goal)
        places: list[float | None] = []
        for s, broken in zip(self.valid, self.broken, strict=True):
            used = s.usage.get(name) if name else None
            share = used.cpu_share / top if used and top > 0.0 else 0.0
            short = 1.0 - (s.kpi(self.rate) or 0.0) / s.point.wl
            if broken:
                places.append(float(shape.overload(np.array([short]))[0]) - at)
            elif share >= FULL:
                lost = np.array([min(max(short, 0.0), EDGE)])
                places.append(float(shape.overload(lost)[0]) - at)
            elif share > 0.0:
                places.append(float(shape.usage_place(np.array([share]))[0]) - at)
            else:
                places.append(None)
        if self.log_capacity is not None:
            follows = self._proportional(places)
            places = [
                p if broken or follows else None
                for p, broken in zip(places, self.broken, strict=True)
            ]
        return places

    @cached_property
    def broken(self) -> list[bool]:
        """Whether each valid sample of an open loop is saturated."""
        return [
            bool(s.kpi(self.rate)) and saturated(s, self.loss_goal, self.rate) for s in self.valid
        ]

    def _proportional(self, places: Sequence[float | None]) -> bool:
        """Whether loads over usage point to the capacity that saturated samples read."""
        assert self.log_capacity is not None
        at = float(self.log_capacity.quantiles((0.5,))[0])
        apart = [
            math.log(s.point.wl) - place - at
            for s, place, broken in zip(self.valid, places, self.broken, strict=True)
            if place is not None and not broken and math.log(s.point.wl) > at - _CLOSE
        ]
        return not apart or abs(float(np.median(apart))) <= max(BELIEVED, 2.0 * self.sample_sd)

    def in_step(self, kpi: str) -> str:
        """Why the samples' response times may be those of a burst, as a note; empty where not."""
        think_s = self.load.think_time_s if self.load.kind == "closed" else 0.0
        if not (think_s and self.valid) or kpis.of(kpi).kind != "response_time":
            return ""
        measured_s = float(np.median([s.measured_s for s in self.valid]))
        if measured_s >= IN_STEP * think_s:
            return ""
        return (
            f"measured for {figure(measured_s)} s at a load where clients think for "
            f"{figure(think_s)} s: they may go in step, and this would be of their burst; "
            f"measure for {figure(IN_STEP * think_s)} s (windows: window)"
        )

    @property
    def bottom(self) -> float:
        return self.valid[0].point.wl if self.valid else math.nan

    @property
    def top(self) -> float:
        return self.valid[-1].point.wl if self.valid else math.nan

    @property
    def unit(self) -> str:
        unit = self.primary.unit
        return unit if unit.startswith("/") or not unit else f" {unit}"

    def log_ceiling(self) -> float:
        return log_kpi(self.kpi, self.kpi_max)

    def capped_log_kpi(self, sample: Sample) -> float:
        """Log KPI, at the ceiling where it is above or where overload left no figure."""
        return capped_log_kpi(sample, self.kpi, self.log_ceiling())

    def found(
        self,
        rule: BreakpointRule,
        log_wl: float,
        log_low: float,
        log_high: float,
        note: str = "",
        kpi: str | None = None,
    ) -> Breakpoint:
        """An answer from logs, on loads."""
        return Breakpoint(
            self.target,
            self.configuration,
            rule,
            self.kpi if kpi is None else kpi,
            "found",
            math.exp(log_wl),
            math.exp(min(log_low, log_wl)),
            math.exp(max(log_high, log_wl)),
            note,
        )

    def answer(
        self, rule: BreakpointRule, state: BreakpointState, note: str, kpi: str | None = None
    ) -> Breakpoint:
        """An answer without a load."""
        kpi = self.kpi if kpi is None else kpi
        return Breakpoint(self.target, self.configuration, rule, kpi, state, note=note)

    def none_in_range(self, rule: BreakpointRule, what: str, kpi: str | None = None) -> Breakpoint:
        """`what` did not happen up to the highest valid load.

        That is no answer for the range where a load above it was tried in vain: the breakpoint
        may lie there, behind a source that gives out first or a sample that is not valid.
        """
        note = f"no {what} up to {figure(self.top)}{self.unit}"
        limit = limited_by_source(self.every)
        if limit is not None and limit > self.top:
            note += f", where the source limits (at {figure(limit)}{self.unit})"
        elif self.every and self.every[-1].point.wl > self.top:
            note += f"; no valid sample above, though tried at {figure(self.every[-1].point.wl)}"
            note += self.unit
        else:
            return self.answer(rule, "none_in_range", note, kpi)
        return self.answer(rule, "unresolved", note, kpi)


def _centred(
    readings: list[CapacityReading], noise: HostNoise | None, goal: float
) -> Mapping[Configuration, Posterior]:
    """`centre`, once for configurations of a target that are asked one after the other."""
    key = (tuple(readings), repr(noise), goal)
    if key not in _LAST:
        _LAST.clear()
        _LAST[key] = centre(readings, noise, goal=goal)
    return _LAST[key]


_LAST: dict[object, Mapping[Configuration, Posterior]] = {}


def _pool(
    readings: Sequence[CapacityReading], configuration: Configuration
) -> list[CapacityReading]:
    """The readings of a configuration, and of others until there are `_MOST_READINGS`."""
    names = sorted({r.configuration for r in readings}, key=lambda c: (c != configuration, c.key))
    chosen: list[CapacityReading] = []
    for name in names:
        if len(chosen) < _MOST_READINGS:
            chosen += [r for r in readings if r.configuration == name]
    return sorted(chosen, key=lambda r: (r.block, r.log_wl))
