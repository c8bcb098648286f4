"""What is predicted of the deployments of a chain, from the models of its functions or its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from workbench.domain import kpis
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, Parameter, ParameterValue, Sla
from workbench.domain.profiles import Curve
from workbench.domain.recommendations import Choice, Deployment
from workbench.domain.samples import UNBOUNDED
from workbench.domain.topology import Node
from workbench.engine.answers.chain_models import (
    InForce,
    cpu_scales,
    in_force,
    measured_first,
    of_several,
)
from workbench.engine.answers.chain_profiles import AskableProfiles, Profiles, parts_from
from workbench.engine.answers.recommend_request import (
    Order,
    cost_in,
    kpis_of_models,
    terms_of,
)
from workbench.engine.learning.refitting import load

if TYPE_CHECKING:  # their imports take seconds, and the engine only hands these values on
    from workbench.chains.composition import ChainForecaster
    from workbench.chains.function_profiles import Part
    from workbench.chains.measured_first import MeasuredFirst
    from workbench.chains.measured_limits import LimitedByMeasured
    from workbench.chains.usage import ExpectedUsage, MeasuredUsage
    from workbench.models.forecast import Forecaster
    from workbench.sla.performance import Performance
    from workbench.sla.profiled import Profiled
    from workbench.sla.replicas import Balancer
    from workbench.sla.sla_query import Question

LOADS = 60
"""Points of a curve."""


@dataclass(frozen=True)
class PredictedDeployments:
    """The performance of the chain's deployments, and what it was made of."""

    order: Order
    question: Question
    performance: Performance
    method: Mapping[str, str]
    """By KPI: a rule of composition, or the method of the chain's own model."""
    versions: Mapping[str, int]
    """By KPI, of the chain's model; 0 are the profiles of its functions."""
    of_several: Mapping[str, int]
    """By KPI, the version that speaks for several instances."""
    parts: Mapping[str, Mapping[str, Part]]
    """By KPI, of the chain's functions."""
    warnings: tuple[str, ...]
    first: Mapping[str, MeasuredFirst] = field(default_factory=dict)
    """By KPI, what says the chain of single instances."""
    limited: Mapping[str, LimitedByMeasured] = field(default_factory=dict)
    """By KPI, the same where the chain itself was measured to break the limit."""

    @classmethod
    def of(
        cls,
        order: Order,
        question: Question,
        profiles: Profiles,
        balancers: Mapping[str, Balancer],
    ) -> PredictedDeployments:
        if not order.spoken_for:
            return cls._measured(order, question, profiles)
        from workbench.chains.composition import ChainForecaster
        from workbench.chains.function_profiles import parts_of
        from workbench.sla.replicas import ChainPerformance, spread

        campaign = order.campaign
        kpis = tuple(dict.fromkeys(sla.kpi for sla in question.limits))
        found = {kpi: parts_from(_learned(order, profiles, kpi)) for kpi in kpis}

        def composed(graph: Node, kpi: str) -> ChainForecaster:
            ceiling = campaign.ceiling(kpi)
            return ChainForecaster(graph, parts_of(graph, found[kpi].parts), kpi, kpi_max=ceiling)

        single = spread(order.chain.graph, {}, balancers)
        rules = {kpi: composed(single, kpi) for kpi in kpis}
        told = {kpi: in_force(rules[kpi], order.accepted.get(kpi)) for kpi in kpis}
        carried = {k: of_several(one.forecaster, rules[k]) for k, one in told.items()}

        def resting(prediction: ChainForecaster, known: InForce, own: bool) -> MeasuredFirst:
            return measured_first(
                prediction,
                known,
                order.measured if own else (),
                order.chain.name,
                order.primary,
                risks={} if order.tried else None,
            )

        first = {kpi: resting(rules[kpi], told[kpi], True) for kpi in kpis}
        limited = _limited(order, question, first)

        def forecaster(graph: Node, kpi: str) -> Forecaster:
            if graph == single:
                return limited.get(kpi, first[kpi])
            several = composed(graph, kpi)
            learned = first[kpi].law or told[kpi].forecaster
            if (added := of_several(learned, several)) is None:
                return resting(several, InForce(several), False)
            return resting(several, InForce(added, max(told[kpi].version, 1)), False)

        performance = ChainPerformance(
            order.chain.graph,
            kpis,
            question.workload,
            forecaster,
            balancers,
            _usage(found[kpis[0]], told.values()),
        )
        methods = {kpi: rule.rule.name for kpi, rule in rules.items()}
        methods |= {k: a.version.proposal.model.method for k, a in order.accepted.items()}
        warnings = (
            *(text for one in found.values() for text in one.warnings),
            *(text for one in told.values() for text in one.warnings),
        )
        return cls(
            order,
            question,
            performance,
            methods,
            {kpi: one.version for kpi, one in told.items()},
            {kpi: one.version if carried[kpi] else 0 for kpi, one in told.items()},
            {kpi: parts_of(order.chain.graph, one.parts) for kpi, one in found.items()},
            warnings,
            first,
            limited,
        )

    @classmethod
    def _measured(
        cls, order: Order, question: Question, profiles: Profiles
    ) -> PredictedDeployments:
        from workbench.sla.performance import ProfilePerformance

        loaded = [load(stored) for stored in profiles.models]
        forecasters: dict[str, Forecaster] = {one.forecaster.kpi: one.forecaster for one in loaded}
        methods = {stored.model.kpi: stored.model.method for stored in profiles.models}
        warnings = tuple(one.warning for one in loaded if one.warning)
        limited = _limited(order, question, forecasters)
        performance = ProfilePerformance(
            {**forecasters, **limited}, question.workload, _measured_usage(order)
        )
        versions = {stored.model.kpi: stored.model.version for stored in profiles.models}
        return cls(
            order,
            question,
            performance,
            methods,
            versions,
            versions,
            {},
            warnings,
            limited=limited,
        )

    def too_slow(self, resources: tuple[Parameter, ...]) -> tuple[str, ...]:
        """Functions that must be had more than once, of those that can be.

        That are those which miss a limit on their own at their largest allotment; if none does and
        the chain still misses it, any of them may help.
        """
        from workbench.chains.base import visits_of
        from workbench.sla.costs import options_of
        from workbench.sla.replicas import size

        able: list[str] = []
        slow: list[str] = []
        visits = visits_of(self.order.chain.graph)
        for vnf in self.order.balancers:
            own = tuple(p for p in resources if p.key.rpartition(".")[0] == vnf)
            if not own:
                continue
            options = options_of(own, cost_in(self.order))[vnf]
            largest = max((option.resources for option in options), key=size)
            able.append(vnf)
            if self._misses(vnf, largest, self.question.wl * visits[vnf]):
                slow.append(vnf)
        return tuple(slow or able)

    def measured_to_fail(self, deployment: Deployment) -> bool:
        """Whether these very single instances were measured to break a limit at the asked load."""
        asked = Configuration(deployment.allocation, self.question.workload)
        return any(one.fails(asked, self.question.wl) for one in self.limited.values())

    def _misses(self, vnf: str, resources: Mapping[str, ParameterValue], wl: float) -> bool:
        chain = Configuration(resources, self.question.workload)

        def misses(sla: Sla) -> bool:
            part = self.parts[sla.kpi][vnf]
            said = part.forecasters[sla.kpi].forecast([(part.configuration(chain, vnf), wl)])
            return not sla.holds(math.exp(said.mean[0]))

        return any(map(misses, self.question.limits))

    def _reach(self) -> tuple[float, ...]:
        """The chain's load up to which each of its functions was profiled."""
        from workbench.chains.base import visits_of

        visits = visits_of(self.order.chain.graph)
        highest = {
            vnf: max(s.point.wl for s in self.order.of(target) if s.valid)
            for vnf, target in self.order.spoken_for.items()
        }
        return tuple(highest[vnf] / visits[vnf] for vnf in visits if vnf in highest)

    def curves(self, choice: Choice, known: Profiled) -> Iterator[Curve]:
        import numpy as np

        low, high = known.wl
        known_to = max(min(self._reach() or (high,)), self.question.wl)
        loads = np.geomspace(low, known_to, LOADS)
        loads = np.union1d(loads, [self.question.wl])
        deployments = [choice.deployment] * len(loads)
        for kpi, method in self.method.items():
            said = self.performance.forecast(kpi, deployments, loads)
            over = said.mean >= math.log(0.5 * UNBOUNDED)
            end = int(np.argmax(over)) if over.any() else len(loads)
            bounds = (np.exp(bound[:end]).tolist() for bound in (said.mean, said.low, said.high))
            mean, lowest, highest = map(tuple, bounds)
            beyond = float(loads[end]) if over.any() else None
            yield Curve(kpi, method, tuple(loads[:end].tolist()), mean, lowest, highest, beyond)

    @property
    def rests_on(self) -> int:
        """Samples of the chain itself that go before the profiles of its functions."""
        several = len(self.order.chain.vnfs) > 1
        return max((one.rests_on for one in self.first.values()), default=0) if several else 0

    def told_of_the_chain(self) -> Iterator[str]:
        """Why what the chain adds is not known, as a sentence."""
        if len(self.order.chain.vnfs) == 1 or not self.first:
            return
        name = self.order.chain.name
        if not self.order.tried and any(one.unmeasured for one in self.first.values()):
            from workbench.chains.handover import TELLING

            yield (
                f"Nobody has measured {name}: intervals hold what the hand-over of other chains "
                f"has added; {TELLING} canaries would tell (workbench canary)."
            )


def _limited(
    order: Order, question: Question, told: Mapping[str, Forecaster]
) -> dict[str, LimitedByMeasured]:
    """By KPI, of what was measured of the chain itself; not of a KPI whose limit nothing broke."""
    from workbench.chains.measured_limits import LimitedByMeasured, crossings

    terms, target = terms_of(order, order.primary), order.chain.name
    samples = (*order.measured, *order.samples)
    found = {}
    for sla in question.limits:
        if broken := crossings(target, samples, terms, sla):
            found[sla.kpi] = LimitedByMeasured(told[sla.kpi], sla, broken)
    return found


def _learned(order: Order, profiles: Profiles, kpi: str) -> Profiles:
    """The profiles as a question about `kpi` alone finds them: the same models as elsewhere."""
    chosen, besides = kpis_of_models(order, kpi)
    models = tuple(stored for stored in profiles.models if stored.model.kpi in chosen)
    return replace(profiles, models=models, besides=besides)


def _usage(
    found: AskableProfiles, told: Iterable[InForce]
) -> Callable[[Node], ExpectedUsage] | None:
    """What says the CPU of a chain's functions; None where it is not known of all of them.

    Models of two KPIs that learned from the same samples say the same of it: the first does."""
    from workbench.chains.function_profiles import parts_of
    from workbench.chains.usage import ExpectedUsage

    models = tuple(told)

    def usage(graph: Node) -> ExpectedUsage:
        scales = next(filter(None, (cpu_scales(one.forecaster, graph) for one in models)), {})
        return ExpectedUsage(graph, parts_of(graph, found.parts), found.demands, scales)

    known = all(
        part.target in found.demands and any(kpis.of(name).carried for name in part.forecasters)
        for part in found.parts
    )
    return usage if known else None


def _measured_usage(order: Order) -> MeasuredUsage | None:
    """The CPU of the functions of a target that was itself measured; None where no sample says."""
    from workbench.chains.demand import cores_measured
    from workbench.chains.usage import MeasuredUsage

    name, cores = order.chain.name, {}
    for vnf in order.chain.vnfs:
        with suppress(DataError):  # CPU is told where it is known
            cores[vnf.name] = cores_measured(name, vnf.name, order.samples, order.primary)
    return MeasuredUsage(cores) if cores else None
