"""What `recommend` asks its worker process: of which chain, and what that may be given.

An order crosses to the engine's own worker process, by pickle as all that crosses there; nothing
pickled is ever stored or taken from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from workbench import plugins
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.lab import HostNoise
from workbench.domain.parameters import (
    Configuration,
    Parameter,
    PrimaryWorkload,
    Sla,
    carried_over,
)
from workbench.domain.recommendations import PriceTable
from workbench.domain.samples import Sample
from workbench.domain.topology import Target, Vnf
from workbench.engine.answers.chain_models import Accepted
from workbench.engine.answers.chain_profiles import learned_for
from workbench.engine.answers.plugin_guards import CheckedCost

if TYPE_CHECKING:  # their imports take seconds, and the engine only hands these values on
    from workbench.models.breakpoints import RuleTerms
    from workbench.sla.costs import Cost
    from workbench.sla.profiled import Profiled
    from workbench.sla.replicas import Balancer
    from workbench.sla.sla_query import Question


@dataclass(frozen=True)
class Order:
    """What is asked, of which chain, and what was measured of it.

    Attributes
    ----------
    spoken_for : the profiled target by function, balancers included; empty where the chain itself
        was measured and its functions were not.
    balancers : what could stand before each function that may have several instances.
    samples : of the profiled targets, or of the chain itself.
    prices : the table that costs are read from; None: `cost` is a plugin.
    greedy : whether greedy scaling is to be played as well, on the model.
    accepted : retrained models of the chain in force, by KPI.
    noise : the host's own, where it was measured.
    measured : samples of the chain itself, whose functions speak for it.
    tried : whether the lab is asked about what is recommended: nothing is answered before it has
        said what a chain adds that nobody has measured.
    """

    campaign: Campaign
    chain: Target
    slas: tuple[Sla, ...]
    confidence: float
    spoken_for: Mapping[str, str]
    balancers: Mapping[str, Vnf]
    samples: tuple[Sample, ...]
    cost: str
    prices: PriceTable | None = None
    greedy: bool = False
    accepted: Mapping[str, Accepted] = field(default_factory=dict)
    noise: HostNoise | None = None
    measured: tuple[Sample, ...] = ()
    tried: bool = False

    @property
    def plans(self) -> tuple[TargetPlan, ...]:
        """Of the targets that were measured, each once."""
        names = dict.fromkeys(self.spoken_for.values()) or (self.chain.name,)
        return tuple(self.campaign.target_plan(name) for name in names)

    @property
    def targets(self) -> tuple[Target, ...]:
        """Those of `plans`."""
        return tuple(plan.target for plan in self.plans)

    @property
    def primary(self) -> PrimaryWorkload:
        """The loads of the chain: its own plan's, else those of its functions."""
        own = (p.primary for p in self.campaign.targets if p.target.name == self.chain.name)
        return next(own, self.plans[0].primary)

    def of(self, target: str) -> tuple[Sample, ...]:
        return tuple(s for s in self.samples if s.point.target == target)


def question_of(order: Order) -> Question:
    """The question alone. Raises `SlaError` as `sla.sla_query.asked`."""
    from workbench.models.selection import stated
    from workbench.sla.sla_query import asked
    from workbench.sla.updated_by_trials import start_sds

    by_target = [
        {kpi for s in order.of(plan.target.name) for kpi in s.kpis if stated(s, kpi)}
        for plan in order.plans
    ]
    kpis = set.intersection(*by_target)
    starts = start_sds(order.noise)
    return asked(order.slas, profiled(order), kpis, confidence=order.confidence, start_sd=starts)


def kpis_of_models(order: Order, kpi: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the functions' models speak of where a limit is on `kpi`; see `parts.learned_for`."""
    return learned_for(kpi, order.campaign.load.key, len(order.chain.vnfs))


def terms_of(order: Order, primary: PrimaryWorkload) -> RuleTerms:
    """What the rules of breakpoints are told of a target that was profiled over `primary`."""
    from workbench.models.breakpoints import RuleTerms

    given = order.campaign
    return RuleTerms(
        primary, given.load, given.kpi, given.kpi_max, given.loss_goal, given.sla, order.noise
    )


def profiled(order: Order) -> Profiled:
    """What was measured, under the names that the functions have in the chain."""
    from workbench.sla.profiled import Profiled

    points = []
    for vnf, target in (order.spoken_for or {"": order.chain.name}).items():
        for sample in order.of(target):
            configuration = sample.point.configuration
            if vnf:
                configuration = Configuration(
                    {_in_chain(key, vnf): v for key, v in configuration.resources.items()},
                    carried_over(configuration.workload, {_own_name(order, target): vnf}),
                )
            if sample.valid:
                points.append((configuration, sample.point.wl))
    primary = order.plans[0].primary
    campaign = order.campaign
    return Profiled.of(
        points,
        primary.name,
        integer=primary.integer,
        ceilings={campaign.kpi: campaign.kpi_max},
    )


# ------------------------------------------------------------------- what may be allocated


def _own_name(order: Order, target: str) -> str:
    """Of the function of a stand-alone target, as its profile calls it."""
    return order.campaign.target_plan(target).target.vnfs[0].name


def functions_of(order: Order) -> tuple[str, ...]:
    return tuple(vnf.name for vnf in order.chain.vnfs)


def _in_chain(key: str, vnf: str) -> str:
    """A resource key of a stand-alone profile, under the function's name in the chain."""
    return f"{vnf}.{key.rpartition('.')[2]}"


def resources_of(order: Order, functions: Iterable[str]) -> tuple[Parameter, ...]:
    """What the campaign allows each function."""
    if not order.spoken_for:
        return order.plans[0].resources
    return tuple(
        replace(parameter, key=_in_chain(parameter.key, vnf))
        for vnf in functions
        for parameter in order.campaign.target_plan(order.spoken_for[vnf]).resources
    )


def balancers_in(order: Order) -> dict[str, Balancer]:
    """Those in the chain cost nothing more; others may be given what they were profiled with."""
    from workbench.sla.replicas import Balancer

    present = functions_of(order)
    return {
        vnf: Balancer(
            balancer, () if balancer.name in present else resources_of(order, [balancer.name])
        )
        for vnf, balancer in order.balancers.items()
    }


def cost_in(order: Order) -> Cost:
    from workbench.sla.costs import Prices

    if order.prices is not None:
        return Prices(order.prices)
    return CheckedCost(order.cost, plugins.make("costs", order.cost))
