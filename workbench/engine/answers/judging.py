"""Allocations of a chain, judged against SLAs: what `recommend` asks its worker process.

All of this runs there; what crosses over to it can be pickled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from workbench import plugins
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.errors import NothingAllowed, OutsideProfile, PluginError, WorkbenchError
from workbench.domain.parameters import (
    Combination,
    Configuration,
    Parameter,
    ParameterValue,
    Sla,
)
from workbench.domain.profiles import Curve
from workbench.domain.recommendations import Choice, Deployment, GreedyRun, PriceTable, Trend
from workbench.domain.samples import Sample
from workbench.domain.topology import Node, Target, Vnf
from workbench.engine.answers.chain_models import (
    Accepted,
    InForce,
    cpu_scales,
    in_force,
    of_several,
)
from workbench.engine.answers.parts import Parts, Profiles, learned_for, parts_from
from workbench.engine.learning.refitting import load

if TYPE_CHECKING:  # their imports take seconds, and the engine only hands these values on
    from workbench.chains.parts import Part
    from workbench.chains.usage import ExpectedUsage
    from workbench.models.forecast import Forecaster
    from workbench.sla.costs import Cost
    from workbench.sla.greedy import GreedyScaling
    from workbench.sla.performance import Performance
    from workbench.sla.profiled import Profiled
    from workbench.sla.question import Question
    from workbench.sla.recommendation import Answer
    from workbench.sla.replicas import Balancer
    from workbench.sla.taught import TaughtPerformance, Tried

LOADS = 60
"""Points of a curve."""


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

    @property
    def plans(self) -> tuple[TargetPlan, ...]:
        """Of the targets that were measured, each once."""
        names = dict.fromkeys(self.spoken_for.values()) or (self.chain.name,)
        return tuple(self.campaign.target_plan(name) for name in names)

    def of(self, target: str) -> tuple[Sample, ...]:
        return tuple(s for s in self.samples if s.point.target == target)


@dataclass(frozen=True)
class Examined:
    """A question that can be answered, and the KPIs whose models are chosen by themselves."""

    question: Question
    kpis: tuple[str, ...]


@dataclass(frozen=True)
class Judged:
    """An answer with what is told beside it.

    `model_version` is that of the chain's model, 0 for its functions' profiles; `notes` are
    sentences on models, and on greedy scaling that could not be played.
    """

    answer: Answer
    trends: tuple[Trend, ...]
    greedy: GreedyRun | None
    model_version: int
    notes: tuple[str, ...]


def examine(order: Order) -> Examined:
    """The question that SLAs ask; what cannot be judged is refused before any model is made.

    Raises
    ------
    SlaError
        As `sla.question.asked`.
    UsageError
        If no rule composes a KPI, or if something has no price.
    """
    from workbench.sla.costs import options_of

    question = question_of(order)
    options_of(resources_of(order, functions_of(order)), cost_in(order))
    limited = dict.fromkeys(sla.kpi for sla in question.limits)
    if not order.spoken_for:
        return Examined(question, tuple(limited))
    chosen = dict.fromkeys(name for kpi in limited for name in _learned_for(order, kpi)[0])
    return Examined(question, tuple(chosen))


def _learned_for(order: Order, kpi: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return learned_for(kpi, order.campaign.load.key, len(order.chain.vnfs))


def question_of(order: Order) -> Question:
    """The question alone. Raises `SlaError` as `sla.question.asked`."""
    from workbench.models.selection import stated
    from workbench.sla.question import asked

    by_target = [
        {kpi for s in order.of(plan.target.name) for kpi in s.kpis if stated(s, kpi)}
        for plan in order.plans
    ]
    kpis = set.intersection(*by_target)
    return asked(order.slas, profiled(order), kpis, confidence=order.confidence)


def judge(
    order: Order, question: Question, profiles: Profiles, tried: tuple[Tried, ...] = ()
) -> Judged:
    """The cheapest allocation that holds, and greedy scaling beside it.

    What was `tried` on the lab moves the forecasts, and is recommended before what was not.

    Raises
    ------
    SlaError, DataError
        If nothing is known of any allowed allocation, or profiles do not belong together.
    """
    from workbench.sla.greedy import on_model

    offer = Offer.of(order, question, profiles)
    answer = offer.judged(offer.singles(), offer.several())
    doubted = False
    if tried:
        offer, answer, doubted = offer.settled(answer, tried)
    foretold = offer.foretold
    choices = [choice for choice in (answer.chosen or answer.closest,) if choice is not None]
    for found in tuple(choices):
        single = all(count == 1 for count in found.replicas.values())
        cheaper = _next_cheaper(found, offer.singles() if single else offer.several(), offer.cost)
        # Nothing is drawn of what nothing is known of.
        with suppress(OutsideProfile, NothingAllowed):
            beside = offer.judged(cheaper)
            choices += [c for c in (beside.chosen or beside.closest,) if c is not None]
    trends = tuple(Trend(choice, tuple(foretold.curves(choice, offer.known))) for choice in choices)
    greedy, notes = None, [*foretold.warnings]
    if doubted:
        notes.append("Its own samples held; what was tried later makes it less sure than that")
    version = max(foretold.versions.values())
    if version and order.spoken_for and any(max(c.replicas.values()) > 1 for c in choices[:1]):
        version = max(foretold.of_several.values())
        notes.append(
            "The accepted model of the chain was measured with single instances; "
            + (
                "several are taken to be added the same"
                if version
                else "several are judged by the stand-alone profiles"
            )
        )
    if order.greedy:
        try:
            greedy = on_model(scaling_of(order, question), foretold.performance)
        except WorkbenchError as error:
            notes.append(f"greedy scaling cannot be played: {error}")
    return Judged(answer, trends, greedy, version, tuple(notes))


def next_trial(
    order: Order, question: Question, profiles: Profiles, tried: tuple[Tried, ...], last: bool
) -> Deployment | None:
    """What another lab iteration is worth spending on; see `sla.trying.next_to_try`."""
    from workbench.sla.trying import next_to_try

    offer = Offer.of(order, question, profiles)
    answer = offer.judged(offer.singles(), offer.several())
    offer, performance, candidates = offer.taught(answer, tried)
    if tried:
        answer = offer.judged(offer.singles(), offer.several())
    return next_to_try(performance, candidates, offer.cost, answer, tried, last=last)


@dataclass(frozen=True)
class Offer:
    """The allowed deployments of a chain, and what is foretold of them.

    Attributes
    ----------
    needed : functions that may be had more than once, with what balances their load.
    combine : how allotments of single instances combine.
    """

    question: Question
    foretold: _Foretold
    known: Profiled
    cost: Cost
    resources: tuple[Parameter, ...]
    needed: Mapping[str, Balancer]
    combine: Combination

    @classmethod
    def of(cls, order: Order, question: Question, profiles: Profiles) -> Offer:
        resources, balancers = resources_of(order, functions_of(order)), balancers_in(order)
        foretold = _Foretold.of(order, question, profiles, balancers)
        needed = {vnf: balancers[vnf] for vnf in foretold.too_slow(resources)}
        # A target's stated pairs are the only ones allowed; of several functions none were stated.
        one_target = not order.spoken_for or len(order.chain.vnfs) == 1
        combine = order.plans[0].combine if one_target else "every"
        return cls(question, foretold, profiled(order), cost_in(order), resources, needed, combine)

    def singles(self) -> Iterator[Deployment]:
        from workbench.sla.costs import allowed

        return allowed(self.resources, self.cost, self.combine)

    def several(self) -> Iterator[Deployment]:
        from workbench.sla.replicas import replicated

        return replicated(self.resources, self.needed, self.cost) if self.needed else iter(())

    def judged(
        self, candidates: Iterable[Deployment], fallback: Iterable[Deployment] = ()
    ) -> Answer:
        from workbench.sla.recommendation import recommend

        return recommend(
            self.question,
            self.foretold.performance,
            candidates,
            self.known,
            self.cost,
            fallback=fallback,
        )

    def taught(
        self, answer: Answer, tried: Sequence[Tried]
    ) -> tuple[Offer, TaughtPerformance, tuple[Deployment, ...]]:
        """The same with what was tried, and the deployments around the answer that it moves."""
        from workbench.sla.recommendation import MOST_JUDGED
        from workbench.sla.taught import TaughtPerformance
        from workbench.sla.trying import around

        every = (*islice(self.singles(), MOST_JUDGED), *islice(self.several(), MOST_JUDGED))
        candidates = around(every, answer, self.cost)
        moved = TaughtPerformance(self.foretold.performance, self.question, candidates, tried)
        offer = replace(self, foretold=replace(self.foretold, performance=moved))
        return offer, moved, candidates

    def settled(self, answer: Answer, tried: Sequence[Tried]) -> tuple[Offer, Answer, bool]:
        """The cheapest that was tried and surely holds; where none does, of all.

        With the forecasts that it rests on, and whether what was tried later makes it doubtful.
        """
        from workbench.sla.trying import confirmed

        def judged(until: Sequence[Tried], own: Sequence[Deployment]) -> Answer:
            return self.taught(answer, until)[0].judged(own)

        if (found := confirmed(self.question, tried, self.cost, judged)) is not None:
            count, sure = found
            return self.taught(answer, tried[:count])[0], sure, count < len(tried)
        offer = self.taught(answer, tried)[0]
        return offer, offer.judged(offer.singles(), offer.several()), False


def scaling_of(order: Order, question: Question) -> GreedyScaling:
    """Greedy scaling that has not begun yet, from the smallest allotments of the chain."""
    from workbench.sla.greedy import GreedyScaling, ladders

    return GreedyScaling(
        question.limits,
        [question.wl],
        ladders(resources_of(order, functions_of(order))),
        cost_in(order),
        balancers_in(order),
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
                    configuration.workload,
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
    made = plugins.load("costs", order.cost)
    try:
        cost: Cost = made()
    except Exception as error:  # a plugin may fail in any way
        raise PluginError(
            f"{order.cost!r} cannot be made: {type(error).__name__}: {error}",
            where="workbench.costs",
        ) from error
    return cost


# ------------------------------------------------------------------- what is foretold


@dataclass(frozen=True)
class _Foretold:
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

    @classmethod
    def of(
        cls,
        order: Order,
        question: Question,
        profiles: Profiles,
        balancers: Mapping[str, Balancer],
    ) -> _Foretold:
        if not order.spoken_for:
            return cls._measured(order, question, profiles)
        from workbench.chains.composition import ChainForecaster
        from workbench.chains.parts import parts_of
        from workbench.sla.replicas import ChainPerformance, spread

        campaign = order.campaign
        kpis = tuple(dict.fromkeys(sla.kpi for sla in question.limits))
        found = {kpi: parts_from(_learned(order, profiles, kpi)) for kpi in kpis}

        def composed(graph: Node, kpi: str) -> ChainForecaster:
            ceiling = campaign.kpi_max if kpi == campaign.kpi else math.inf
            return ChainForecaster(graph, parts_of(graph, found[kpi].parts), kpi, kpi_max=ceiling)

        single = spread(order.chain.graph, {}, balancers)
        rules = {kpi: composed(single, kpi) for kpi in kpis}
        told = {kpi: in_force(rules[kpi], order.accepted.get(kpi)) for kpi in kpis}

        carried = {k: of_several(one.forecaster, rules[k]) for k, one in told.items()}

        def forecaster(graph: Node, kpi: str) -> Forecaster:
            if graph == single:
                return told[kpi].forecaster
            several = composed(graph, kpi)
            return of_several(told[kpi].forecaster, several) or several

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
        )

    @classmethod
    def _measured(cls, order: Order, question: Question, profiles: Profiles) -> _Foretold:
        from workbench.sla.performance import ProfilePerformance

        loaded = [load(stored) for stored in profiles.models]
        forecasters: dict[str, Forecaster] = {one.forecaster.kpi: one.forecaster for one in loaded}
        methods = {stored.model.kpi: stored.model.method for stored in profiles.models}
        warnings = tuple(one.warning for one in loaded if one.warning)
        performance = ProfilePerformance(forecasters, question.workload)
        versions = {stored.model.kpi: stored.model.version for stored in profiles.models}
        return cls(order, question, performance, methods, versions, versions, {}, warnings)

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
            bounds = (np.exp(bound).tolist() for bound in (said.mean, said.low, said.high))
            mean, lowest, highest = map(tuple, bounds)
            yield Curve(kpi, method, tuple(loads.tolist()), mean, lowest, highest)


def _learned(order: Order, profiles: Profiles, kpi: str) -> Profiles:
    """The profiles as a question about `kpi` alone finds them: the same models as elsewhere."""
    chosen, besides = _learned_for(order, kpi)
    models = tuple(stored for stored in profiles.models if stored.model.kpi in chosen)
    return replace(profiles, models=models, besides=besides)


def _usage(found: Parts, told: Iterable[InForce]) -> Callable[[Node], ExpectedUsage] | None:
    """What says the CPU of a chain's functions; None where it is not known of all of them.

    Models of two KPIs that learned from the same samples say the same of it: the first does."""
    from workbench.chains.parts import parts_of
    from workbench.chains.usage import ExpectedUsage
    from workbench.models.selection import RATE_KPIS

    models = tuple(told)

    def usage(graph: Node) -> ExpectedUsage:
        scales = next(filter(None, (cpu_scales(one.forecaster, graph) for one in models)), {})
        return ExpectedUsage(graph, parts_of(graph, found.parts), found.demands, scales)

    known = all(
        part.target in found.demands and any(rate in part.forecasters for rate in RATE_KPIS)
        for part in found.parts
    )
    return usage if known else None


def _next_cheaper(
    found: Choice, candidates: Iterable[Deployment], cost: Cost
) -> tuple[Deployment, ...]:
    """The last one that costs less, if any does; candidates come by rising cost."""
    from workbench.sla.costs import cost_of
    from workbench.sla.recommendation import MOST_JUDGED

    cheaper: tuple[Deployment, ...] = ()
    for deployment in islice(candidates, MOST_JUDGED):
        if cost_of(deployment, cost) >= found.cost:
            break
        cheaper = (deployment,)
    return cheaper
