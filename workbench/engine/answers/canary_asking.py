"""What a canary is asked to do, read and refused before a model is made or the lab is opened."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from workbench import plugins
from workbench.descriptors.allocation_text import parse_allocation
from workbench.descriptors.sla_text import kpi_name, parse_sla
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.errors import DataError, SessionError, UsageError
from workbench.domain.limits import check
from workbench.domain.parameters import (
    Configuration,
    Parameter,
    ParameterValue,
    PrimaryWorkload,
    Sla,
    grid,
)
from workbench.domain.projection import SessionView
from workbench.domain.questions import CanaryPlanned, ChainQuery, PlanCanary, RetrainChain
from workbench.domain.retraining import CanaryPlan
from workbench.engine.answers.canary_steps import TREND, plan_of, terms_of_canary
from workbench.engine.answers.chain_inputs import Subject, must_be_within, subject_of, workload_of
from workbench.engine.answers.chain_models import CORRECTIONS
from workbench.engine.answers.chain_profiles import chain_of
from workbench.engine.learning.pool import Pool
from workbench.engine.learning.scoring import patiently
from workbench.engine.runs.starting import ENDED
from workbench.engine.sessions.library import Library


async def plan_canary(library: Library, pool: Pool, request: PlanCanary) -> CanaryPlanned:
    """The loads of a canary and what they cost. Raises as `engine.retraining.retrain` does."""
    canary = request.canary
    await library.resumable(canary.session)
    async with library.borrow(canary.session) as channel:
        view = channel.snapshot()
    if canary.steps:
        must_have_ended(view)
    wanted = wanted_of(view, canary)
    campaign = campaign_of(view)
    try:
        chain = await asyncio.to_thread(chain_of, campaign, canary.chain, library.workspace)
    except UsageError as error:
        raise UsageError(error.what, where="--chain", remedy=error.remedy) from None
    kpi = wanted.kpi or (wanted.sla.kpi if wanted.sla else campaign.kpi)
    subject = await subject_of(library, ChainQuery(canary.session, chain.name, kpi))
    must_be_judged(subject, wanted.guards or ())
    configuration, _ = deployed(subject, canary, wanted.sla)
    cost = sample_s(subject)
    plan = CanaryPlan(chain.name, configuration, ())
    if canary.steps:
        terms = terms_of_canary(canary, wanted.sla, wanted.guards, cost, view.seed)
        plan = await patiently(pool, plan_of, chain.name, configuration, subject.primary, terms)
    primary, lab_s = subject.primary, len(plan.loads) * cost
    notes = (*wanted.notes, *_why_there(subject, canary))
    return CanaryPlanned(plan, kpi, primary.name, primary.unit, lab_s, notes)


WHY_LARGEST = (
    "it is the largest allocation: a load does the least harm there, and what the chain adds is "
    "taken to hold for the others; where a smaller one saturates, a canary at that one tells more"
)


@dataclass(frozen=True)
class CanaryRequest:
    """A request as far as it can be read without looking at samples; `kpi` is None if not named."""

    kpi: str | None
    sla: Sla | None
    guards: tuple[Sla, ...] | None
    notes: tuple[str, ...]


def wanted_of(view: SessionView, request: RetrainChain) -> CanaryRequest:
    campaign = campaign_of(view)
    primary = campaign.targets[0].primary.name
    if not 0.0 < request.share <= 1.0:
        raise UsageError(
            f"is {request.share:g}, must be above 0 and at most 1",
            where="--share",
            remedy="Give one, such as 0.5",
        )
    check("steps", request.steps, "--steps")
    _must_be_a_method(request.method)
    _must_align(request.align)
    notes: list[str] = []
    sla = _limit(request.sla, primary, "--sla") if request.sla else campaign.sla
    if sla is not None and not request.sla:
        notes.append(f"The SLA is the campaign's: {sla.text or f'{sla.kpi}<={sla.limit:g}'}.")
    guards = tuple(_guard(text, primary) for text in request.guards) or None
    if sla is None and guards is None and request.steps:
        notes.append("There is neither an SLA nor a guard: nothing stops the canary.")
    kpi = kpi_of(request.kpi)
    if kpi is None and request.sla and sla is not None:
        kpi = sla.kpi
    return CanaryRequest(kpi, sla, guards, tuple(notes))


def _must_be_a_method(name: str) -> None:
    """Raises `UsageError` before the lab is asked: the method is needed only after that."""
    known = (TREND, *CORRECTIONS, *plugins.names("models"))
    if name and name not in known:
        raise UsageError(
            f"no method is called {name!r}",
            where="--method",
            remedy=f"Choose one of: {', '.join(known)}",
        )


def _must_align(rules: Sequence[str]) -> None:
    """Raises `UsageError`, as `_must_be_a_method` does."""
    if not rules:
        return
    from workbench.chains.alignment import must_be_rules  # imports numpy

    try:
        must_be_rules(rules)
    except DataError as error:
        raise UsageError(error.what, where="--align", remedy=error.remedy) from None


def _limit(text: str, primary: str, where: str) -> Sla:
    try:
        return parse_sla(text, primary)
    except UsageError as error:
        raise UsageError(error.what, where=where, remedy=error.remedy) from None


def _guard(text: str, primary: str) -> Sla:
    guard = _limit(text, primary, "--guard")
    if guard.wl is not None or guard.workload:
        raise UsageError(
            f"{text!r} names a load, but a guard holds at every step",
            where="--guard",
            remedy="Leave out what follows the @",
        )
    return guard


def kpi_of(name: str | None) -> str | None:
    try:
        return kpi_name(name) if name else None
    except ValueError as error:
        raise UsageError(str(error), where="--kpi") from None


def must_be_judged(subject: Subject, guards: Sequence[Sla]) -> None:
    """Raises `UsageError` where a guard limits what no sample of a function has stated: none of the
    chain would count."""
    for target in subject.targets:
        stated = {kpi for s in subject.parties.samples_of(target.name) if s.valid for kpi in s.kpis}
        for guard in guards:
            if guard.kpi not in stated:
                raise UsageError(
                    f"limits {guard.kpi}, which no sample of {target.name} states",
                    where="--guard",
                    remedy=f"Choose one of: {', '.join(sorted(stated))}",
                )


def deployed(
    subject: Subject, request: RetrainChain, sla: Sla | None
) -> tuple[Configuration, tuple[TargetPlan, ...]]:
    """Where the chain is measured, and a plan for it where the campaign has none.

    The allocation that was asked for, else the largest of the campaign's: what a canary teaches
    costs the fewest requests there.

    Raises
    ------
    OutsideProfile
        If the SLA asks for a load or a workload outside of everything that was profiled.
    UsageError
        If it does not say a workload value, or the allocation cannot be read.
    """
    if request.sla and sla is not None and sla.wl is not None:
        _must_be_profiled(subject, sla.wl)
    plan, campaign = subject.plan, subject.own.campaign
    resources = _resources(subject)
    if request.allocation:
        allotted: Mapping[str, ParameterValue] = parse_allocation(request.allocation, resources)
    else:
        functions = [vnf.name for vnf in subject.chain.vnfs]
        size = max(_allocations(subject), key=lambda one: sum(map(one.vcpu, functions)))
        allotted = size.resources
    workload = workload_of(subject, sla.workload if sla is not None else {}, "--sla")
    configuration = Configuration(dict(allotted), workload)
    if plan is not None and configuration in campaign.configurations(plan):
        return configuration, ()
    chosen = tuple(_only(parameter, allotted) for parameter in resources)
    return configuration, (TargetPlan(subject.chain, chosen, subject.primary),)


def _resources(subject: Subject) -> tuple[Parameter, ...]:
    """What the chain may be given: by the campaign's plan, else as its functions were profiled."""
    if subject.plan is not None:
        return subject.plan.resources
    return tuple(
        replace(parameter, key=f"{vnf.name}.{parameter.key.rpartition('.')[2]}")
        for vnf in subject.chain.vnfs
        for parameter in subject.plan_of(vnf).resources
    )


def _allocations(subject: Subject) -> list[Configuration]:
    """Every one that the chain may be given."""
    combine = subject.plan.combine if subject.plan is not None else "every"
    return list(grid(_resources(subject), (), combine))


def _why_there(subject: Subject, canary: RetrainChain) -> tuple[str, ...]:
    """Why this allocation, where nobody chose it and there are others."""
    if canary.allocation or not canary.steps or len(_allocations(subject)) < 2:
        return ()
    return (WHY_LARGEST,)


def _must_be_profiled(subject: Subject, wl: float) -> None:
    """Raises `OutsideProfile` for a load that the chain and its functions were not to have."""
    loads = {vnf.name: _range(subject.plan_of(vnf).primary) for vnf in subject.chain.vnfs}
    loads[subject.chain.name] = _range(subject.primary)
    must_be_within(wl, subject.primary.name, loads, "--sla")


def _range(primary: PrimaryWorkload) -> tuple[float, float]:
    return primary.low, primary.high


def _only(parameter: Parameter, allotted: Mapping[str, ParameterValue]) -> Parameter:
    return replace(parameter, values=(allotted[parameter.key],))


def campaign_of(view: SessionView) -> Campaign:
    if view.campaign is None:
        raise SessionError("does not hold its campaign", where=view.session)
    return view.campaign


def must_have_ended(view: SessionView) -> None:
    """Raises `UsageError` where the campaign has not ended: nothing else is measured before."""
    if view.state not in ENDED:
        raise UsageError(
            f"is {view.state}: its campaign has not ended",
            where=view.session,
            remedy=f"Resume it and let it end (workbench resume {view.session})",
        )


def sample_s(subject: Subject) -> float:
    """Lab seconds that a sample of this session has cost, or else will."""
    costs = [sample.lab_s for sample in subject.own.samples if sample.lab_s > 0.0]
    windows = subject.own.campaign.windows
    return statistics.median(costs) if costs else windows.warmup_s + windows.window_s
