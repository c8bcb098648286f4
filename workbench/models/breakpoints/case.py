"""What a breakpoint rule is given, and how it answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.domain.parameters import Configuration, LoadModel, PrimaryWorkload, Sla
from workbench.domain.profiles import Breakpoint, BreakpointRule, BreakpointState
from workbench.domain.samples import Sample
from workbench.models.scales import figure, log_kpi
from workbench.models.selection import capped_log_kpi, limited_by_source, of_configuration

SAMPLE_LOG_SD = 0.05
"""Log standard deviation from sample to sample of what a function carries (METHOD.md 6: 0.05 in
windows of 2-3 s, and drift between the samples)."""

SHARED_LOG_SD = 0.04
"""Log standard deviation that all samples of one deployment share, a restart's or slow drift's
(METHOD.md 6, 11): more samples do not average it away, so every interval contains it."""

LOAD_LOG_SD = math.hypot(SAMPLE_LOG_SD, SHARED_LOG_SD)
"""How far one sample's break may lie from the long-run one, in log `wl`."""

COMPONENTS = frozenset({"source", "sink", "host"})
"""Keys of `Sample.usage` that are not functions."""


@dataclass(frozen=True)
class Case:
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

    @classmethod
    def of(
        cls,
        target: str,
        configuration: Configuration,
        samples: Sequence[Sample],
        primary: PrimaryWorkload,
        load: LoadModel,
        kpi: str,
        kpi_max: float,
        loss_goal: float,
        sla: Sla | None,
    ) -> Case:
        every = tuple(
            s
            for s in of_configuration(target, configuration, samples)
            if s.load_model == load.key and s.point.wl > 0.0
        )
        valid = tuple(s for s in every if s.valid)
        return cls(target, configuration, valid, every, primary, load, kpi, kpi_max, loss_goal, sla)

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
