"""Chains that need not be measured: their capacity is forecast surely enough from what was.

A chain carries what its weakest function carries, each at its share of the traffic.
How far that is from the truth is not assumed but taken from the chains of the same session that
were measured: the largest error of theirs widens every further forecast.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from workbench.chains.base import visits_of
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.lab import HostNoise
from workbench.domain.parameters import Configuration, carried_over
from workbench.domain.samples import Sample
from workbench.domain.topology import Vnf
from workbench.models.breakpoints.capacity import capacity
from workbench.models.breakpoints.case import RuleInputs, RuleTerms

LEAST_MEASURED = 2
"""Configurations of chains whose capacity was measured before anything is left out."""


@dataclass(frozen=True)
class Foreseen:
    """The capacity of a configuration of a chain, in the unit of `wl`, and what it rests on.

    Attributes
    ----------
    low, high : of its functions' 95 % intervals and the largest error so far.
    off_by : that error: of so many configurations (`measured`), relative.
    """

    value: float
    low: float
    high: float
    off_by: float
    measured: int

    @property
    def within(self) -> float:
        """Half width, relative."""
        return math.sqrt(self.high / self.low) - 1.0

    def note(self, asked: float) -> str:
        return (
            f"not measured: its capacity is forecast at {self.value:.4g} [{self.low:.4g}, "
            f"{self.high:.4g}], sure to {self.within:.0%} where {asked:.0%} was asked; "
            f"{self.measured} configurations of chains that were measured were forecast to "
            f"{self.off_by:.0%}"
        )


_Interval = tuple[float, float, float]
"""Value, low, high."""


def foreseen(
    campaign: Campaign,
    plan: TargetPlan,
    samples: Sequence[Sample],
    noise: HostNoise | None = None,
) -> dict[Configuration, Foreseen]:
    """Forecasts of a chain's configurations; none where nothing tells, as where a function was not
    profiled at its allocation, clients wait for answers, or too few chains were measured."""
    if campaign.load.kind != "open" or isinstance(plan.target.graph, Vnf):
        return {}
    known = _Known(campaign, samples, noise)
    errors = list(known.errors(plan))
    if len(errors) < LEAST_MEASURED:
        return {}
    worst = max(abs(error) for error in errors)
    wider, off_by = math.exp(worst), math.expm1(worst)
    found: dict[Configuration, Foreseen] = {}
    for configuration in campaign.configurations(plan):
        if (forecast := known.forecast(plan, configuration)) is not None:
            value, low, high = forecast
            found[configuration] = Foreseen(value, low / wider, high * wider, off_by, len(errors))
    return found


@dataclass(frozen=True)
class _Known:
    campaign: Campaign
    samples: Sequence[Sample]
    noise: HostNoise | None
    found: dict[tuple[str, Configuration], _Interval | None] = field(default_factory=dict)

    def forecast(self, plan: TargetPlan, configuration: Configuration) -> _Interval | None:
        """The least that any function carries, in the chain's load."""
        found: list[_Interval] = []
        templates = {vnf.name: vnf.template for vnf in plan.target.vnfs}
        for name, share in visits_of(plan.target.graph).items():
            own = self.campaign.find_target(templates[name])
            if own is None or not isinstance(own.target.graph, Vnf):
                return None
            carried = self.capacity(own, _alone(configuration, name, templates[name]))
            if carried is None:
                return None
            found.append((carried[0] / share, carried[1] / share, carried[2] / share))
        value, low, high = (min(column) for column in zip(*found, strict=True))
        return (value, low, high) if math.isfinite(high) else None

    def errors(self, besides: TargetPlan) -> Iterator[float]:
        """Of every other chain's configuration that was measured, log of measured over forecast."""
        for plan in self.campaign.targets:
            if plan.target.name == besides.target.name or isinstance(plan.target.graph, Vnf):
                continue
            for configuration in self.campaign.configurations(plan):
                measured = self.capacity(plan, configuration)
                forecast = self.forecast(plan, configuration)
                if measured and forecast and math.isfinite(measured[2]):
                    yield math.log(measured[0] / forecast[0])

    def capacity(self, plan: TargetPlan, configuration: Configuration) -> _Interval | None:
        """By the rule `capacity`; without bounds above where the range ended before it."""
        key = (plan.target.name, configuration)
        if key not in self.found:
            self.found[key] = self._capacity(plan, configuration)
        return self.found[key]

    def _capacity(self, plan: TargetPlan, configuration: Configuration) -> _Interval | None:
        given = self.campaign
        own = [s for s in self.samples if s.point.target == plan.target.name]
        if not any(s.point.configuration == configuration for s in own):
            return None
        answer = capacity(
            RuleInputs.of(
                plan.target.name,
                configuration,
                own,
                RuleTerms(
                    plan.primary,
                    given.load,
                    given.kpi,
                    given.kpi_max,
                    given.loss_goal,
                    given.sla,
                    self.noise,
                ),
            )
        )
        if answer.wl and answer.low and answer.high:
            return answer.wl, answer.low, answer.high
        # Not reached by the end of its range: it carries that at least.
        beyond = answer.state == "none_in_range"
        return (math.inf, plan.primary.high, math.inf) if beyond else None


def _alone(configuration: Configuration, name: str, template: str) -> Configuration:
    """What a function of a chain is allotted, as the configuration of its own target."""
    allotted = {
        f"{template}.{key.rpartition('.')[2]}": value
        for key, value in configuration.resources.items()
        if key.rpartition(".")[0] == name
    }
    return Configuration(allotted, carried_over(configuration.workload, {name: template}))
