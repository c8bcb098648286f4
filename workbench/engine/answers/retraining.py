"""`workbench canary`: the real chain is loaded carefully, what it adds to its prediction learned.

The engine opens the lab, measures and stores; canaries and models live in the worker
(`engine.canary_steps`). Which model is in force, `engine.chain_models` tells.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from typing import Protocol

from workbench import plugins
from workbench.domain.campaign import Campaign
from workbench.domain.errors import BudgetSpent, Stopped, UsageError, WorkbenchError
from workbench.domain.events import (
    CanaryEnded,
    CanaryStarted,
    CanaryStepped,
    DriftSeen,
    Fact,
    ModelProposed,
    ModelRolledBack,
    ProposalDecided,
)
from workbench.domain.load_words import load_words
from workbench.domain.messages import Done
from workbench.domain.parameters import Configuration
from workbench.domain.projection import SessionView
from workbench.domain.questions import (
    ChainQuery,
    ChainRetrained,
    DecideProposal,
    RetrainChain,
    RollBackModel,
)
from workbench.domain.retraining import (
    CanaryEnding,
    CanaryRun,
    CanaryState,
    ChainModels,
    Decision,
    Models,
    Proposal,
    RetrainingRecord,
    Rollback,
    after,
)
from workbench.domain.samples import Sample
from workbench.engine.answers.canary_asking import (
    CanaryRequest,
    campaign_of,
    deployed,
    kpi_of,
    must_be_judged,
    must_have_ended,
    sample_s,
    wanted_of,
)
from workbench.engine.answers.canary_steps import CanaryInputs, Proposed, Walk, proposed, walked
from workbench.engine.answers.chain_inputs import Basis, Subject, gather, subject_of
from workbench.engine.answers.chain_models import accepted_for
from workbench.engine.answers.chain_profiles import chain_of
from workbench.engine.learning.pool import Pool
from workbench.engine.learning.scoring import Say, patiently, short_list
from workbench.engine.runs.trials import TrialsRequest
from workbench.engine.sessions.clock import now
from workbench.engine.sessions.library import Library
from workbench.engine.sessions.recording import recorded


class PointMeasurer(Protocol):
    """Measures what it is asked for, one point after the other (`engine.runs.trials.Trials`)."""

    async def measure(self, target: str, configuration: Configuration, wl: float) -> Sample: ...


Trials = Callable[[TrialsRequest], AbstractAsyncContextManager[PointMeasurer]]
"""Opens the lab of a session: `Queue.trials`."""


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
    if request.decision == "reject":
        _must_say_why(request.why, "--reject")
    await library.resumable(request.session)
    view = await _view(library, request.session)
    wanted = wanted_of(view, request)
    chain = await asyncio.to_thread(chain_of, campaign_of(view), request.chain, library.workspace)
    if request.decision and (stored := _stored_proposal(view, chain.name, wanted.kpi)):
        accept = request.decision == "accept"
        decided = await _decide(library, request.session, stored.id, accept, request.why, by)
        told = ChainRetrained(stored.chain, stored.kpi, 0, None, stored, decided, None)
        return await _as_it_stands(library, request.session, told)

    if request.steps:
        must_have_ended(view)
    kpi = wanted.kpi or (wanted.sla.kpi if wanted.sla else campaign_of(view).kpi)
    question = ChainQuery(request.session, chain.name, kpi)
    subject = await subject_of(library, question)
    must_be_judged(subject, wanted.guards or ())
    configuration, plans = deployed(subject, request, wanted.sla)
    basis = await gather(library, pool, subject, question, say=say)
    case = _case(subject, basis, request, wanted, configuration)
    samples = case.samples
    canary: CanaryRun | None = None
    if request.steps:
        asked = TrialsRequest(
            request.session, "canary", plans, request.budget_s, 0, by, request.pace
        )
        canary, taken = await _walk(library, pool, trials, case, asked, say)
        samples = (*samples, *taken)
    say(f"{chain.name}: retraining the model of {kpi}")
    found = await patiently(pool, proposed, case, samples)
    notes = [*wanted.notes, *found.notes, *basis.profiles.unstored]
    if found.drift is not None and found.drift.direction:
        await _keep(library, request.session, DriftSeen(found.drift))
    if found.proposal is None:
        told = ChainRetrained(chain.name, kpi, 0, canary, None, None, found.drift, tuple(notes))
        return await _as_it_stands(library, request.session, told)
    await _propose(library, request.session, found.proposal, found)
    made = found.proposal
    decision, note = await _decided_unseen(library, request, made, by)
    told = ChainRetrained(
        made.chain, made.kpi, 0, canary, made, decision, found.drift, (*notes, note)
    )
    return await _as_it_stands(library, request.session, told)


async def _decided_unseen(
    library: Library, request: RetrainChain, proposal: Proposal, by: str
) -> tuple[Decision | None, str]:
    """What a request decides of a proposal that it has made itself, and why not, as a sentence."""
    if not request.decision:
        return None, ""
    accept = request.decision == "accept"
    if accept and not proposal.gain:
        return None, (
            f"Nothing is accepted: nobody has seen proposal {proposal.id} yet, and it is not "
            "better on held-out points. To accept it all the same, say so again."
        )
    return await _decide(library, request.session, proposal.id, accept, request.why, by), ""


async def decide(library: Library, request: DecideProposal, *, by: str) -> Done:
    """Accept or reject a stored proposal.

    Raises
    ------
    UsageError
        If there is none of that id, it is decided already, or nothing says why it is rejected.
    SessionError
        If the session cannot be written.
    """
    if not request.accept:
        _must_say_why(request.why, f"proposal {request.proposal}")
    await _decide(library, request.session, request.proposal, request.accept, request.why, by)
    verb = "accepted" if request.accept else "rejected"
    return Done(f"Proposal {request.proposal} is {verb}.")


def _must_say_why(why: str, where: str) -> None:
    if not why:
        raise UsageError(
            "does not say why", where=where, remedy='Add --why "…": it is stored with the decision'
        )


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
    kpi = kpi_of(request.kpi)
    said: list[str] = []

    def rolled(view: SessionView) -> ModelRolledBack:
        models = _versioned(view, request.session, request.chain, kpi)
        rollback = Rollback(models.chain, models.kpi, request.version, by, now(), request.why)
        after(_state(view), rollback)
        what = f"model {request.version}" if request.version else "the stand-alone profiles"
        said.append(f"{models.chain}: {models.kpi} is predicted by {what} again")
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


# ------------------------------------------------------------------- what it rests on


def _case(
    subject: Subject,
    basis: Basis,
    request: RetrainChain,
    wanted: CanaryRequest,
    configuration: Configuration,
) -> CanaryInputs:
    own = subject.own
    noise = own.view.noise
    return CanaryInputs(
        uuid.uuid4().hex,
        basis,
        accepted_for(subject),
        tuple(s for s in own.samples if s.point.target == subject.chain.name),
        subject.primary,
        configuration,
        wanted.sla,
        wanted.guards,
        request,
        _competing(own.campaign, subject.targets[0].name),
        None if noise is None else noise.restart_sd.get(own.kpi),
        sample_s(subject),
        own.view.seed,
    )


def _competing(campaign: Campaign, target: str) -> tuple[str, ...]:
    """All methods, the short list first: the time may be over before the last."""
    return tuple(dict.fromkeys((*short_list(campaign, target), *plugins.names("models"))))


# ------------------------------------------------------------------- on the lab


async def _walk(
    library: Library,
    pool: Pool,
    trials: Trials,
    case: CanaryInputs,
    asked: TrialsRequest,
    say: Say,
) -> tuple[CanaryRun, tuple[Sample, ...]]:
    """Measure step after step, each checked before the next; the lab stays shut without any.

    How many points are `asked` for is known once the steps are.
    """
    session, by = asked.session, asked.by
    walk = await patiently(pool, walked, case, ())
    if walk.ask is None:
        if walk.ending is not None and walk.ending.state == "budget":
            raise UsageError(
                f"does not reach for one step: {walk.ending.note}",
                where="--budget",
                remedy="Allow more time",
            )
        await _keep(library, session, CanaryEnded(walk.run, by))
        return walk.run, ()
    started = CanaryStarted(walk.plan, case.basis.kpi, walk.version, walk.learned, walk.ask, by)
    await _keep(library, session, started)
    taken: list[Sample] = []
    try:
        async with trials(replace(asked, points=len(walk.plan.loads))) as lab:
            while (ask := walk.ask) is not None:
                load = load_words(case.primary.name, f"{ask.point.wl:g}")
                say(f"{case.chain}: {ask.why}, {load}")
                try:
                    sample = await lab.measure(case.chain, ask.point.configuration, ask.point.wl)
                except BudgetSpent as spent:
                    walk = replace(walk, ask=None, ending=CanaryEnding("budget", str(spent)))
                    break
                taken.append(sample)
                walk = await patiently(pool, walked, case, tuple(taken))
                await _keep(library, session, _stepped(walk))
    except WorkbenchError as error:
        # A guard that has tripped stays why it ended, though the load was not gone back to.
        state: CanaryState = "stopped" if isinstance(error, Stopped) else "failed"
        walk = replace(walk, ending=walk.ending or CanaryEnding(state, error.what))
        with suppress(WorkbenchError):  # the session itself may be what cannot be written
            await _keep(library, session, CanaryEnded(walk.run, by))
        raise
    await _keep(library, session, CanaryEnded(walk.run, by))
    return walk.run, tuple(taken)


def _stepped(walk: Walk) -> CanaryStepped:
    return CanaryStepped(walk.steps[-1], walk.ask, walk.learned)


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


async def _keep(library: Library, session: str, fact: Fact) -> None:
    await recorded(library, session, lambda _: fact)


async def _propose(library: Library, session: str, proposal: Proposal, found: Proposed) -> None:
    def fact(view: SessionView) -> ModelProposed:
        after(_state(view), proposal)  # raises where it was decided already
        return ModelProposed(proposal, found.models, found.in_force, found.learned)

    await recorded(library, session, fact)


async def _decide(
    library: Library, session: str, proposal: str, accept: bool, why: str, by: str
) -> Decision:
    decision = Decision(proposal, accept, by, now(), why)

    def fact(view: SessionView) -> ProposalDecided:
        record: RetrainingRecord = decision
        after(_state(view), record)  # raises where somebody was faster
        return ProposalDecided(decision)

    await recorded(library, session, fact)
    return decision


async def _as_it_stands(library: Library, session: str, told: ChainRetrained) -> ChainRetrained:
    """What came of it, with the version that is in force now, and each note once."""
    models = (await _view(library, session)).chain_model(told.chain, told.kpi)
    version = models.current if models is not None else 0
    notes = tuple(dict.fromkeys(note for note in told.notes if note))
    return replace(told, version=version, notes=notes)
