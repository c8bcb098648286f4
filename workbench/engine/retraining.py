"""`workbench canary`: the real chain is loaded carefully, what it adds to its prediction learned.

The engine opens the lab, measures and stores; canaries and models live in the worker
(`engine.canary_steps`). Which model is in force, `engine.chain_models` tells.
"""

from __future__ import annotations

import asyncio
import statistics
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from workbench.descriptors.allocation_text import parse_allocation
from workbench.descriptors.sla_text import kpi_name, parse_sla
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.chains import PartModel
from workbench.domain.errors import BudgetSpent, SessionError, UsageError
from workbench.domain.events import (
    CanaryEnded,
    ModelProposed,
    ModelRolledBack,
    ProposalDecided,
)
from workbench.domain.messages import Done
from workbench.domain.parameters import (
    Configuration,
    Parameter,
    ParameterValue,
    Sla,
    grid,
)
from workbench.domain.projection import SessionView
from workbench.domain.questions import ChainRetrained, CompareChain, RetrainChain, RollBackModel
from workbench.domain.retraining import (
    CanaryEnding,
    CanaryRun,
    ChainModels,
    Decision,
    Drift,
    Models,
    Proposal,
    RetrainingRecord,
    Rollback,
    after,
)
from workbench.domain.samples import Sample
from workbench.engine.canary_steps import Case, proposed, walked
from workbench.engine.chain_models import accepted_for
from workbench.engine.clock import now
from workbench.engine.composing import Basis, Subject, gather, subject_of
from workbench.engine.library import Library
from workbench.engine.parts import chain_of
from workbench.engine.pool import Pool
from workbench.engine.recording import recorded
from workbench.engine.scoring import Say, patiently, short_list


class Lab(Protocol):
    """Measures what it is asked for, one point after the other (`engine.trials.Trials`)."""

    async def measure(self, target: str, configuration: Configuration, wl: float) -> Sample: ...


Trials = Callable[..., AbstractAsyncContextManager[Lab]]
"""Opens the lab of a session: `Engine.trials`."""


# ------------------------------------------------------------------- retraining


async def retrain(
    library: Library,
    pool: Pool,
    trials: Trials,
    request: RetrainChain,
    *,
    by: str,
    say: Say = lambda _: None,
) -> ChainRetrained:
    """Measure canaries, propose what they teach, decide what was proposed.

    Raises
    ------
    UsageError
        If the question cannot be read, the chain or a profile of its functions is not there, the
        budget does not reach for one step, or what is to be decided is decided already.
    SessionError
        If the session is a recording, or cannot be written.
    LabError, Stopped
        From the lab; samples that were taken until then are stored.
    """
    if request.decision == "reject" and not request.why:
        raise UsageError(
            "does not say why", where="--reject", remedy='Add --why "…": the next one will ask'
        )
    await library.resumable(request.session)
    view = await _view(library, request.session)
    wanted = _wanted(view, request)
    chain = await asyncio.to_thread(chain_of, _campaign(view), request.chain, library.workspace)
    if request.decision and (stored := _stored_proposal(view, chain.name, wanted.kpi)):
        decided = await _decide(library, request, stored, by)
        return await _report(library, request.session, stored, decision=decided)

    kpi = wanted.kpi or (wanted.sla.kpi if wanted.sla else _campaign(view).kpi)
    question = CompareChain(request.session, chain.name, kpi)
    subject = await subject_of(library, question)
    _must_be_judged(subject, wanted.guards or ())
    configuration, plans = _deployed(subject, request, wanted.sla)
    basis = await gather(library, pool, subject, question, say=say)
    case = _case(subject, basis, request, wanted, configuration)
    samples = case.samples
    canary: CanaryRun | None = None
    if request.steps:
        canary, taken = await _walk(pool, trials, request, case, plans, by, say)
        samples = (*samples, *taken)
        ended = CanaryEnded(canary, by)
        await recorded(library, request.session, lambda _: ended)
    say(f"{chain.name}: retraining the model of {kpi}")
    found = await patiently(pool, proposed, case, samples)
    notes = [*wanted.notes, *found.notes, *basis.profiles.unstored]
    if found.proposal is None:
        return await _report(
            library, request.session, None, chain.name, kpi, canary, drift=found.drift, notes=notes
        )
    await _propose(library, request.session, found.proposal, found.models)
    decision: Decision | None = None
    if request.decision == "accept" and not found.proposal.gain:
        notes.append(
            f"Nothing is accepted: nobody has seen proposal {found.proposal.id} yet, and it is not "
            "better on held-out points. To accept it all the same, say so again."
        )
    elif request.decision:
        decision = await _decide(library, request, found.proposal, by)
    return await _report(
        library, request.session, found.proposal, canary=canary, decision=decision,
        drift=found.drift, notes=notes,
    )  # fmt: skip


async def roll_back(library: Library, request: RollBackModel, *, by: str) -> Done:
    """Put another version in force.

    Raises
    ------
    UsageError
        If there is no such version, it is in force already, or several models have versions and
        nothing says which is meant.
    SessionError
        If the session cannot be written.
    """
    kpi = _kpi(request.kpi)
    said: list[str] = []

    def rolled(view: SessionView) -> ModelRolledBack:
        models = _versioned(view, request.session, request.chain, kpi)
        rollback = Rollback(models.chain, models.kpi, request.version, by, now(), request.why)
        after(_state(view), rollback)
        what = f"model {request.version}" if request.version else "the stand-alone profiles"
        said.append(f"{models.chain}: {models.kpi} is said by {what} again")
        return ModelRolledBack(rollback)

    await recorded(library, request.session, rolled)
    return Done(said[-1])


def _versioned(view: SessionView, session: str, chain: str | None, kpi: str | None) -> ChainModels:
    found = [
        models
        for models in view.chain_models
        if models.versions and chain in (None, models.chain) and kpi in (None, models.kpi)
    ]
    if len(found) == 1:
        return found[0]
    if found:
        names = "; ".join(f"--chain {m.chain} --kpi {m.kpi}" for m in found)
        raise UsageError(
            "several retrained models have versions, and nothing says which is meant",
            where=session,
            remedy=f"Add one of: {names}",
        )
    raise UsageError(
        "has no retrained model to go back from" + (f" of {chain}" if chain else ""),
        where=session,
        remedy="Accept one first: workbench canary SESSION --chain C --accept",
    )


# ------------------------------------------------------------------- what is asked for


@dataclass(frozen=True)
class _Wanted:
    """A request as far as it can be read without looking at samples; `kpi` is None if not named."""

    kpi: str | None
    sla: Sla | None
    guards: tuple[Sla, ...] | None
    notes: tuple[str, ...]


def _wanted(view: SessionView, request: RetrainChain) -> _Wanted:
    campaign = _campaign(view)
    primary = campaign.targets[0].primary.name
    if not 0.0 < request.share <= 1.0:
        raise UsageError(
            f"is {request.share:g}, must be above 0 and at most 1",
            where="--share",
            remedy="Give one, such as 0.5",
        )
    if request.steps < 0:
        raise UsageError(f"is {request.steps}, must not be below 0", where="--steps")
    notes: list[str] = []
    sla = _limit(request.sla, primary, "--sla") if request.sla else campaign.sla
    if sla is not None and not request.sla:
        notes.append(f"The SLA is the campaign's: {sla.text or f'{sla.kpi}<={sla.limit:g}'}.")
    guards = tuple(_limit(text, primary, "--guard") for text in request.guards) or None
    if sla is None and guards is None and request.steps:
        notes.append("There is neither an SLA nor a guard: nothing stops the canary.")
    kpi = _kpi(request.kpi)
    if kpi is None and request.sla and sla is not None:
        kpi = sla.kpi
    return _Wanted(kpi, sla, guards, tuple(notes))


def _limit(text: str, primary: str, where: str) -> Sla:
    try:
        return parse_sla(text, primary)
    except UsageError as error:
        raise UsageError(error.what, where=where, remedy=error.remedy) from None


def _kpi(name: str | None) -> str | None:
    try:
        return kpi_name(name) if name else None
    except ValueError as error:
        raise UsageError(str(error), where="--kpi") from None


def _must_be_judged(subject: Subject, guards: Sequence[Sla]) -> None:
    """Raises `UsageError` where a guard limits what no sample of a function has stated: none of the
    chain would count."""
    for target in subject.targets:
        stated = {kpi for s in subject.profiles.of(target.name) if s.valid for kpi in s.kpis}
        for guard in guards:
            if guard.kpi not in stated:
                raise UsageError(
                    f"limits {guard.kpi}, which no sample of {target.name} states",
                    where="--guard",
                    remedy=f"Choose one of: {', '.join(sorted(stated))}",
                )


def _deployed(
    subject: Subject, request: RetrainChain, sla: Sla | None
) -> tuple[Configuration, tuple[TargetPlan, ...]]:
    """Where the chain is measured, and a plan for it where the campaign has none.

    The allocation that was asked for, else the largest of the campaign's: what a canary teaches
    costs the fewest requests there.
    """
    from workbench.sla.profiled import within  # imports numpy

    plan, campaign = subject.plan, subject.own.campaign
    if plan is not None:
        resources = plan.resources
    else:
        resources = tuple(
            replace(parameter, key=f"{vnf.name}.{parameter.key.rpartition('.')[2]}")
            for vnf in subject.chain.vnfs
            for parameter in subject.plan_of(vnf).resources
        )
    if request.allocation:
        allotted: Mapping[str, ParameterValue] = parse_allocation(request.allocation, resources)
    else:
        combine = plan.combine if plan is not None else "every"
        every = list(grid(resources, (), combine))
        functions = [vnf.name for vnf in subject.chain.vnfs]
        allotted = max(every, key=lambda one: sum(map(one.vcpu, functions))).resources
    offered = sla.workload if sla is not None else {}
    workload: dict[str, ParameterValue] = {}
    for parameter in campaign.workload:
        if parameter.key not in offered and len(parameter.values) > 1:
            raise UsageError(
                f"does not say {parameter.key}, which was profiled at "
                f"{', '.join(map(str, parameter.values))}",
                where="--sla",
                remedy="Name it behind the @ of the SLA",
            )
        value = offered.get(parameter.key, parameter.values[0])
        if not within(value, parameter.values):
            raise UsageError(
                f"{parameter.key}={value} lies outside everything that was profiled, which is "
                f"{', '.join(map(str, parameter.values))}",
                where="--sla",
                remedy="Ask for a value within, or profile that far",
            )
        workload[parameter.key] = value
    if strange := offered.keys() - workload.keys():
        raise UsageError(f"{', '.join(sorted(strange))} was not set in any profile", where="--sla")
    configuration = Configuration(dict(allotted), workload)
    if plan is not None and configuration in campaign.configurations(plan):
        return configuration, ()
    chosen = tuple(_only(parameter, allotted) for parameter in resources)
    return configuration, (TargetPlan(subject.chain, chosen, subject.primary),)


def _only(parameter: Parameter, allotted: Mapping[str, ParameterValue]) -> Parameter:
    return replace(parameter, values=(allotted[parameter.key],))


def _case(
    subject: Subject,
    basis: Basis,
    request: RetrainChain,
    wanted: _Wanted,
    configuration: Configuration,
) -> Case:
    own = subject.own
    noise, costs = own.view.noise, [sample.lab_s for sample in own.samples if sample.lab_s > 0.0]
    windows = own.campaign.windows
    return Case(
        uuid.uuid4().hex,
        basis,
        accepted_for(subject),
        tuple(s for s in own.samples if s.point.target == subject.chain.name),
        subject.primary,
        configuration,
        wanted.sla,
        wanted.guards,
        request,
        short_list(own.campaign, subject.targets[0].name),
        None if noise is None else noise.restart_sd.get(own.kpi),
        statistics.median(costs) if costs else windows.warmup_s + windows.window_s,
        own.view.seed,
    )


def _campaign(view: SessionView) -> Campaign:
    if view.campaign is None:
        raise SessionError("does not hold its campaign", where=view.session)
    return view.campaign


# ------------------------------------------------------------------- on the lab


async def _walk(
    pool: Pool,
    trials: Trials,
    request: RetrainChain,
    case: Case,
    plans: tuple[TargetPlan, ...],
    by: str,
    say: Say,
) -> tuple[CanaryRun, tuple[Sample, ...]]:
    """Measure step after step, each checked before the next; the lab stays shut without any."""
    taken: list[Sample] = []
    walk = await patiently(pool, walked, case, ())
    if walk.ask is None:
        if walk.ending is not None and walk.ending.state == "budget":
            raise UsageError(
                f"does not reach for one step: {walk.ending.note}",
                where="--budget",
                remedy="Allow more lab time",
            )
        return walk.run, ()
    opened = trials(
        request.session,
        "canary",
        plans=plans,
        budget_s=request.budget_s,
        points=len(walk.plan.loads),
        by=by,
    )
    async with opened as lab:
        while (ask := walk.ask) is not None:
            say(f"{case.chain}: {ask.why}, {case.primary.name}={ask.point.wl:g}")
            try:
                sample = await lab.measure(case.chain, ask.point.configuration, ask.point.wl)
            except BudgetSpent as spent:
                walk = replace(walk, ask=None, ending=CanaryEnding("budget", str(spent)))
                break
            taken.append(sample)
            walk = await patiently(pool, walked, case, tuple(taken))
    return walk.run, tuple(taken)


# ------------------------------------------------------------------- what is stored


async def _view(library: Library, session: str) -> SessionView:
    async with library.borrow(session) as channel:
        return channel.snapshot()


def _state(view: SessionView) -> Models:
    return {(models.chain, models.kpi): models for models in view.chain_models}


def _stored_proposal(view: SessionView, chain: str, kpi: str | None) -> Proposal | None:
    """The latest that waits for a decision; of any KPI where none is named."""
    found = [
        models.pending[-1]
        for models in view.chain_models
        if models.chain == chain and models.pending and kpi in (None, models.kpi)
    ]
    if len(found) > 1:
        raise UsageError(
            "has proposals of several KPIs, and nothing says which is meant",
            where=f"{view.session}, {chain}",
            remedy=f"Add --kpi with one of: {', '.join(p.kpi for p in found)}",
        )
    return found[0] if found else None


async def _propose(
    library: Library, session: str, proposal: Proposal, profiles: tuple[PartModel, ...]
) -> None:
    def fact(view: SessionView) -> ModelProposed:
        after(_state(view), proposal)  # raises where it was decided already
        return ModelProposed(proposal, profiles)

    await recorded(library, session, fact)


async def _decide(library: Library, request: RetrainChain, proposal: Proposal, by: str) -> Decision:
    decision = Decision(proposal.id, request.decision == "accept", by, now(), request.why)

    def fact(view: SessionView) -> ProposalDecided:
        record: RetrainingRecord = decision
        after(_state(view), record)  # raises where somebody was faster
        return ProposalDecided(decision)

    await recorded(library, request.session, fact)
    return decision


async def _report(
    library: Library,
    session: str,
    proposal: Proposal | None,
    chain: str = "",
    kpi: str = "",
    canary: CanaryRun | None = None,
    *,
    decision: Decision | None = None,
    drift: Drift | None = None,
    notes: Sequence[str] = (),
) -> ChainRetrained:
    if proposal is not None:
        chain, kpi = proposal.chain, proposal.kpi
    models = (await _view(library, session)).chain_model(chain, kpi)
    version = models.current if models is not None else 0
    every = tuple(dict.fromkeys(note for note in notes if note))
    return ChainRetrained(chain, kpi, version, canary, proposal, decision, drift, every)
