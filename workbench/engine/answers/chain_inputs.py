"""What a question about a chain rests on: the chain, its functions' profiles, where they were made.

Gathered by the engine, composed in the worker process: `compose` makes of it what predicts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

from workbench import plugins
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.chains import PartModel
from workbench.domain.errors import PROFILE_FARTHER, OutsideProfile, UsageError
from workbench.domain.lab import HostFacts
from workbench.domain.load_words import (
    load_words,
    outside_words,
    profiled_words,
    unsaid_words,
)
from workbench.domain.parameters import Parameter, ParameterValue, PrimaryWorkload
from workbench.domain.questions import ChainQuery
from workbench.domain.samples import Sample
from workbench.domain.topology import Node, Target, Vnf
from workbench.engine.answers.chain_profiles import (
    Profiles,
    chain_of,
    learned_for,
    parts_from,
    profiles_of,
)
from workbench.engine.answers.parties import Parties, host_of, parties_for, sessions_asked
from workbench.engine.answers.plugin_guards import CheckedRule
from workbench.engine.learning.pool import Pool
from workbench.engine.learning.scoring import Material, Say, material, patiently
from workbench.engine.sessions.library import Library

if TYPE_CHECKING:  # their imports take time, and the engine only hands these values on
    from workbench.chains.base import ChainRule, LoadFamily
    from workbench.chains.composition import ChainForecaster
    from workbench.chains.function_profiles import Part
    from workbench.chains.neighbours import ChainOnSharedCores
    from workbench.models.forecast import Forecaster


# ------------------------------------------------------------------- what is asked about


@dataclass(frozen=True)
class Subject:
    """A chain, and the stand-alone targets that speak for its functions.

    Attributes
    ----------
    own : the session that the question is about.
    parties : those that have profiled the functions.
    plan : of the chain, where it is a target of the campaign.
    """

    own: Material
    parties: Parties
    chain: Target
    plan: TargetPlan | None

    @property
    def targets(self) -> tuple[Target, ...]:
        """One for each kind of function."""
        return self.parties.targets

    def plan_of(self, vnf: Vnf) -> TargetPlan:
        """How a function was profiled alone."""
        return self.parties.plan_of(vnf.template)

    @property
    def given(self) -> tuple[Parameter, ...]:
        """Workload parameters, and the settings of the chain's functions: the chain's own where
        it is a target, else those that its functions were profiled with."""
        if self.plan is not None:
            return self.own.campaign.given(self.plan)
        settings = tuple(
            replace(parameter, key=f"{vnf.name}.{parameter.key.rpartition('.')[2]}")
            for vnf in self.chain.vnfs
            for parameter in self.plan_of(vnf).settings
        )
        return (*self.parties.workload, *settings)

    @property
    def primary(self) -> PrimaryWorkload:
        """The loads of the chain: of a template, those that its functions were planned for."""
        return self.parties.primary if self.plan is None else self.plan.primary

    @property
    def hosts(self) -> dict[str, HostFacts]:
        """Where the session was measured that is asked about, and where the functions were."""
        return {f"session {self.own.session}": host_of(self.own), **self.parties.hosts}

    @property
    def reach(self) -> dict[str, tuple[float, float]]:
        """By function, the loads of its valid samples, whether or not they state the KPI."""
        found = {}
        for vnf in self.chain.vnfs:
            target = self.plan_of(vnf).target.name
            loads = [s.point.wl for s in self.parties.samples_of(target) if s.valid]
            found[vnf.name] = min(loads), max(loads)
        return found

    def profiled_at(self, parameter: Parameter) -> dict[str, tuple[ParameterValue, ...]]:
        """By function, the values at which a workload parameter or a setting was profiled."""
        owner = parameter.key.rpartition(".")[0]
        if owner:
            return {owner: parameter.values}
        return {
            vnf.name: own.values
            for vnf in self.chain.vnfs
            for own in self.parties.whose[self.plan_of(vnf).target.name].campaign.workload
            if own.key == parameter.key
        }

    @property
    def measured(self) -> tuple[Sample, ...]:
        """What the session has measured of the chain; nothing where that is one function."""
        if len(self.chain.vnfs) == 1:
            return ()
        return tuple(s for s in self.own.samples if s.point.target == self.chain.name)

    @property
    def kpi_max(self) -> float:
        """Ceiling of the KPI: the campaign's for its own KPI, none for another."""
        return self.own.campaign.ceiling(self.own.kpi)

    @property
    def superseded(self) -> str:
        """That a retrained model is in force, as a sentence; empty where the profiles are."""
        models = self.own.view.chain_model(self.chain.name, self.own.kpi)
        if models is None or not models.current:
            return ""
        return (
            f"model {models.current} of {self.chain.name}, {self.own.kpi}, is in force; this is "
            "what the profiles alone say"
        )


async def subject_of(library: Library, question: ChainQuery) -> Subject:
    """What a question is about.

    Raises
    ------
    SessionError, DescriptorError
        If a session or a descriptor cannot be read.
    UsageError
        If there is no such chain or KPI, or no profile of one of its functions.
    """
    own = await material(library, question.session, question.kpi)
    sessions = await sessions_asked(library, question, own)
    chain = await asyncio.to_thread(chain_of, own.campaign, question.chain, library.workspace)
    if chain.copies:
        passive = ", ".join(vnf.name for vnf, _ in chain.copies)
        raise UsageError(
            f"has a passive function ({passive}): what a copy costs the others is measured, and "
            "no profile predicts it",
            where=f"chain {chain.name}",
            remedy="Profile the chain with and without it in one campaign, as campaign mirror does",
        )
    plan = next((p for p in own.campaign.targets if p.target == chain), None)
    parties = parties_for(sessions, chain)
    for target, party in parties.whose.items():
        _must_state(party, target, party.of(target))
    return Subject(own, parties, chain, plan)


def _must_state(given: Material, target: str, samples: Sequence[Sample]) -> None:
    """Raises `UsageError` where nothing was measured, or not this KPI."""
    valid = [sample for sample in samples if sample.valid]
    if not valid:
        raise UsageError(
            f"has no valid samples of {target}",
            where=given.session,
            remedy="Profile it first, or name the session that has it (--profiles)",
        )
    if not any(given.kpi in sample.kpis for sample in valid):
        raise UsageError(
            f"no sample of {target} states {given.kpi}",
            where=given.session,
            remedy=f"Choose one of: {', '.join(sorted({k for s in valid for k in s.kpis}))}",
        )


# ------------------------------------------------------------------- what it rests on


@dataclass(frozen=True)
class Basis:
    """Everything that `compose` takes; it crosses to the worker."""

    chain: Target
    kpi: str
    rule: str
    kpi_max: float
    profiles: Profiles
    warnings: tuple[str, ...]
    whose: Mapping[str, str] = field(default_factory=dict)
    """By target, the session that has profiled it, where another than the one asked was named."""
    cores: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """By function, those that it is pinned to, where it is asked what sharing them costs."""


async def gather(
    library: Library,
    pool: Pool,
    subject: Subject,
    question: ChainQuery,
    *,
    wl: float | None = None,
    store: bool = True,
    say: Say = lambda _: None,
) -> Basis:
    """The models of a chain's functions, made where there are none.

    What can be refused is refused before that: a rule that does not apply, profiles of another
    host, a load `wl` outside of everything that was profiled.

    Raises
    ------
    UsageError, OutsideProfile, PluginError
        As said; if no rule has that name.
    DataError
        If a function's samples cannot make a table, or no model can be fitted to them.
    """
    own, graph = subject.own, subject.chain.graph
    cores = _cores_shared(subject) if question.shared_cores else {}
    load_model = own.campaign.load.key
    say(f"{subject.chain.name}: looking at the profiles")
    terms = await patiently(
        pool, terms_of, graph, own.kpi, question.rule, load_model, subject.hosts, question.insist
    )
    if wl is not None:
        _must_be_reached(wl, subject.primary.name, subject.reach, terms.visits)
    profiles = await profiles_by(
        library, pool, subject.parties, (terms.chosen, terms.besides), store=store, say=say
    )
    warnings = (*terms.warnings, *subject.parties.warnings(own, subject.chain))
    if not cores:
        warnings += sharing_untold(own.campaign, subject.chain)
    several = len(subject.parties.sessions) > 1
    whose = {t: p.session for t, p in subject.parties.whose.items() if several or p is not own}
    kpi, kpi_max = own.kpi, subject.kpi_max
    return Basis(
        subject.chain, kpi, question.rule, kpi_max, profiles, warnings, whose, cores
    )  # fmt: skip


def _cores_shared(subject: Subject) -> Mapping[str, frozenset[int]]:
    """The cores of the chain's functions, by the campaign of the session that is asked about.

    Raises
    ------
    UsageError
        If no two functions share any, and as `cores_of_chain`.
    """
    cores = cores_of_chain(subject.own.campaign, subject.chain)
    if not _sharing(cores):
        raise UsageError(
            "no two of its functions are pinned to the same cores (managers.NAME.cpuset)",
            where=f"chain {subject.chain.name}",
            remedy="Leave out --shared-cores: each has cores of its own, or none is pinned",
        )
    return cores


def cores_of_chain(campaign: Campaign, chain: Target) -> Mapping[str, frozenset[int]]:
    """By function of a chain, the cores that it is pinned to.

    Raises
    ------
    UsageError
        If two share some and not all: how much of its CPU a function uses on which of its cores is
        not known.
    """
    cores = campaign.cores_of(chain)
    for one, other in _sharing(cores):
        if cores[one] != cores[other]:
            raise UsageError(
                f"{one} and {other} share some of their cores and not all: how much they use on "
                "which is not known",
                where=f"chain {chain.name}",
                remedy="Pin both to the same cores (managers.NAME.cpuset)",
            )
    return cores


def _sharing(cores: Mapping[str, frozenset[int]]) -> list[tuple[str, str]]:
    return [(a, b) for a, b in combinations(cores, 2) if cores[a] & cores[b]]


def sharing_untold(campaign: Campaign, chain: Target) -> tuple[str, ...]:
    """A sentence where functions of a chain are pinned to the same cores, for answers that do not
    account for it; nothing where each has its own, or none is pinned."""
    names = dict.fromkeys(name for pair in _sharing(campaign.cores_of(chain)) for name in pair)
    if not names:
        return ()
    return (
        f"{' and '.join(names)} are pinned to the same cores: what they cost each other there is "
        "in samples of the chain itself alone, not in profiles of its functions "
        "(workbench predict --shared-cores tells it)",
    )


async def profiles_by(
    library: Library,
    pool: Pool,
    parties: Parties,
    learned: tuple[Sequence[str], Sequence[str]],
    *,
    store: bool,
    say: Say,
) -> Profiles:
    """The profiles of all parties as one, of what is `learned` (`learned_for`). Raises as
    `profiles_of`."""
    kpis, besides = learned
    asked = [
        await profiles_of(
            library,
            pool,
            party,
            [t for t in parties.targets if parties.whose[t.name] is party],
            kpis,
            besides=besides,
            store=store,
            say=say,
        )
        for party in parties.speaking
    ]
    return Profiles(
        parties.campaign,
        parties.targets,
        tuple(sample for one in asked for sample in one.samples),
        tuple(model for one in asked for model in one.models),
        asked[0].besides,
    )


def _must_be_reached(
    wl: float,
    name: str,
    reach: Mapping[str, tuple[float, float]],
    visits: Mapping[str, float],
) -> None:
    loads = {vnf: (low / visits[vnf], high / visits[vnf]) for vnf, (low, high) in reach.items()}
    must_be_within(wl, name, loads, "at")


def workload_of(
    subject: Subject, given: Mapping[str, ParameterValue], where: str
) -> dict[str, ParameterValue]:
    """A value for every workload parameter that the functions were profiled at.

    Raises
    ------
    OutsideProfile
        For a value outside of everything that was profiled.
    UsageError
        Where one was profiled at several values, and none is given.
    """
    from workbench.sla.profiled import within  # imports numpy

    known = {parameter.key: parameter for parameter in subject.given}
    for key, value in given.items():
        if key not in known or not within(value, known[key].values):
            by_function = subject.profiled_at(known[key]) if key in known else {}
            what, remedy = outside_words(key, value, by_function)
            raise OutsideProfile(what, where=where, remedy=remedy)
    for key, parameter in known.items():
        if key not in given and len(parameter.values) > 1:
            what, remedy = unsaid_words(key, parameter.values)
            raise UsageError(what, where=where, remedy=remedy)
    return {key: given.get(key, parameter.values[0]) for key, parameter in known.items()}


def must_be_within(
    wl: float, name: str, loads: Mapping[str, tuple[float, float]], where: str
) -> None:
    """Raises `OutsideProfile` for a load outside of those that were profiled, by what they are
    of."""
    low, high = min(low for low, _ in loads.values()), max(high for _, high in loads.values())
    if not low * (1.0 - 1e-9) <= wl <= high * (1.0 + 1e-9):
        raise OutsideProfile(
            f"a load of {load_words(name, f'{wl:.6g}')} lies outside everything that was profiled, "
            f"which is {profiled_words(name, loads)}",
            where=where,
            remedy=PROFILE_FARTHER,
        )


# ------------------------------------------------------------------- in the worker


@dataclass(frozen=True)
class ChainRuleNeeds:
    """What a chain rule asks for.

    Attributes
    ----------
    chosen : KPIs whose models are chosen by themselves: the one that is asked for, and what a
        function carries where that is what reaches the next.
    besides : others, which are fitted by the method of the first.
    visits : by function, the share of the chain's load that reaches it.
    warnings : where profiles of another host are insisted on.
    """

    chosen: tuple[str, ...]
    besides: tuple[str, ...]
    visits: Mapping[str, float]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Composed:
    """The functions of a chain, by instance name, and the models that speak for them.

    `demands` are CPU time per request, by profiled target, as far as samples say it.
    """

    basis: Basis
    parts: Mapping[str, Part]
    demands: Mapping[str, Forecaster]
    models: tuple[PartModel, ...]
    warnings: tuple[str, ...]

    def by(self, rule: str) -> ChainForecaster:
        """The chain by a rule, empty for the default. Raises as `ChainForecaster` and `rule_of`."""
        from workbench.chains.base import family_of
        from workbench.chains.composition import ChainForecaster

        graph, kpi = self.basis.chain.graph, self.basis.kpi
        family = family_of(next(iter(self.parts.values())).load_model)
        chosen = rule_of(rule, kpi, family)
        return ChainForecaster(graph, self.parts, kpi, chosen, kpi_max=self.basis.kpi_max)

    def on_shared_cores(self, chain: ChainForecaster) -> ChainOnSharedCores:
        """A chain of these parts, on the cores of the basis. Raises as `ExpectedUsage`."""
        from workbench.chains.neighbours import ChainOnSharedCores
        from workbench.chains.usage import ExpectedUsage

        usage = ExpectedUsage(chain.graph, self.parts, self.demands)
        samples = self.basis.profiles.samples
        return ChainOnSharedCores(chain, usage, self.basis.cores, samples)


def terms_of(
    graph: Node,
    kpi: str,
    rule: str,
    load_model: str,
    hosts: Mapping[str, HostFacts],
    insisted: bool,
) -> ChainRuleNeeds:
    """What a rule asks for, before any model is made. Raises `UsageError`, `PluginError`."""
    from workbench.chains.base import family_of, visits_of

    warnings = one_host(hosts, insisted)
    family, visits = family_of(load_model), visits_of(graph)
    chosen, besides = learned_for(kpi, load_model, len(visits), rule_of(rule, kpi, family))
    return ChainRuleNeeds(chosen, besides, visits, warnings)


def one_host(hosts: Mapping[str, HostFacts], insisted: bool) -> tuple[str, ...]:
    """Warnings where profiles of another host are insisted on. Raises `UsageError`."""
    from workbench.chains.function_profiles import must_be_of_one_host

    return must_be_of_one_host(hosts, insisted)


def rule_of(name: str, kpi: str, family: LoadFamily) -> ChainRule:
    """The rule of that name, or the default. Raises `UsageError` if it does not apply."""
    from workbench.chains.rules import default_rule, must_apply

    if not name:
        return default_rule(kpi, family)
    rule = CheckedRule(name, plugins.make("chain_rules", name))
    must_apply(rule, kpi, family)
    return rule


def compose(basis: Basis) -> Composed:
    """Fit the models that the basis holds.

    Raises
    ------
    WorkbenchError
        If a model cannot be fitted, or if profiles do not belong together.
    """
    from workbench.chains.function_profiles import parts_of

    made = parts_from(basis.profiles)
    chosen = [stored.model for stored in basis.profiles.models]
    models = []
    for model in chosen:
        also: tuple[str, ...] = ()
        if model.kpi == basis.kpi:
            part = next(part for part in made.parts if part.target == model.target)
            own = {m.kpi for m in chosen}
            also = tuple(kpi for kpi in part.forecasters if kpi not in own)
        learned = len(model.sample_ids)
        models.append(
            PartModel(
                model.target,
                model.kpi,
                model.method,
                model.version,
                learned,
                also,
                basis.whose.get(model.target, ""),
            )
        )
    parts = parts_of(basis.chain.graph, made.parts)
    warnings = (*basis.warnings, *made.warnings)
    return Composed(basis, parts, made.demands, tuple(models), warnings)
