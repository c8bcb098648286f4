"""Canaries, what they taught, and what was decided: how their events fold into a session's view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from workbench.domain.counts import counted
from workbench.domain.event_log import Line, because, by_whom
from workbench.domain.events import (
    CanaryEnded,
    CanaryStarted,
    CanaryStepped,
    DriftSeen,
    ModelProposed,
    ModelRolledBack,
    ProposalDecided,
)
from workbench.domain.profiles import Curve
from workbench.domain.retraining import (
    CanaryAsk,
    CanaryEnding,
    CanaryPlan,
    CanaryStep,
    ChainModels,
    Decision,
    Drift,
    Proposal,
    RetrainingRecord,
    after,
)

Retraining = (
    CanaryStarted
    | CanaryStepped
    | CanaryEnded
    | ModelProposed
    | DriftSeen
    | ProposalDecided
    | ModelRolledBack
)

TRIPPED = ("guard", "foreseen", "failed")
"""Ends of a canary that somebody should look at."""


@dataclass
class CanaryView:
    """A canary as far as it has come; its curves are of the KPI over the same loads."""

    plan: CanaryPlan
    kpi: str
    """What its model says; empty where a session of before does not tell."""
    by: str
    at: float
    """When it was started, in seconds since the epoch."""
    version: int = 0
    """Of the model in force then; 0: the profiles."""
    in_force: Curve | None = None
    learned: Curve | None = None
    """By the model of what was kept so far."""
    steps: list[CanaryStep] = field(default_factory=list)
    ask: CanaryAsk | None = None
    """What is being measured."""
    ending: CanaryEnding | None = None
    interrupted: bool = False
    """Its engine died."""

    @property
    def under_way(self) -> bool:
        return self.ending is None and not self.interrupted


@dataclass(frozen=True)
class ProposalView:
    """A proposal with what became of it; `canary` is the place of the one that made it."""

    proposal: Proposal
    at: float
    canary: int | None
    in_force: Curve | None = None
    learned: Curve | None = None
    decision: Decision | None = None


class _View(Protocol):
    """What of a session's view is folded here."""

    canaries: list[CanaryView]
    proposals: list[ProposalView]
    drifts: list[Drift]
    chain_models: list[ChainModels]


def under_way(canaries: Sequence[CanaryView]) -> CanaryView | None:
    """The canary that is under way; it may wait for the lab."""
    return next((canary for canary in canaries[-1:] if canary.under_way), None)


def cut_off(canaries: Sequence[CanaryView]) -> None:
    """A canary without an end: its engine died."""
    if (canary := under_way(canaries)) is not None:
        canary.interrupted, canary.ask = True, None


def fold(view: _View, fact: Retraining, at: float) -> Line:
    """Bring a view up to date; what the event log says of it."""
    match fact:
        case CanaryStarted(plan=plan):
            cut_off(view.canaries)
            view.canaries.append(
                CanaryView(plan, fact.kpi, fact.by, at, fact.version, fact.in_force, ask=fact.ask)
            )
            loads = counted(len(plan.loads), "load")
            text = f"{plan.chain}: canary of {loads} up to {max(plan.loads):g}"
            return "info", text + by_whom(fact.by), ""
        case CanaryStepped(step=step):
            return _stepped(view.canaries, fact, step)
        case CanaryEnded(canary=run, by=by):
            if (canary := _open(view.canaries)) is None:  # a session of before
                canary = CanaryView(run.plan, "", by, at)
                view.canaries.append(canary)
            canary.steps, canary.ask, canary.ending = [*run.steps], None, run.ending
            canary.interrupted = False
            level = "warning" if run.ending.state in TRIPPED else "info"
            return level, f"{run.plan.chain}: canary ended{by_whom(by)}: {run.ending.note}", ""
        case ModelProposed(proposal=proposal):
            _retrain(view, proposal)
            others = [p for p in view.proposals if p.proposal.id != proposal.id]
            place = _made_by(view.canaries, proposal, others)
            made = ProposalView(proposal, at, place, fact.in_force, fact.learned)
            view.proposals = [*others, made]
            text = f"{proposal.chain}: proposal {proposal.id} for {proposal.kpi}: "
            return "info", text + proposal.statement, ""
        case DriftSeen(drift=drift):
            _forget_drift(view, drift.chain, drift.kpi)
            view.drifts.append(drift)
            return "warning", f"{drift.chain}: {drift.kpi} drifts: {drift.note}", ""
        case ProposalDecided(decision=decision):
            _retrain(view, decision)
            _decide(view, decision)
            verb = "accepted" if decision.accepted else "rejected"
            text = f"proposal {decision.proposal} {verb}{by_whom(decision.by)}"
            return "info", text + because(decision.why), ""
        case ModelRolledBack(rollback=rollback):
            _retrain(view, rollback)
            _forget_drift(view, rollback.chain, rollback.kpi)
            text = f"{rollback.chain}: back to model {rollback.version} of {rollback.kpi}"
            return "info", text + by_whom(rollback.by) + because(rollback.why), ""


def _stepped(canaries: Sequence[CanaryView], fact: CanaryStepped, step: CanaryStep) -> Line:
    canary = _open(canaries)
    if canary is None:
        return "info", "", ""
    canary.steps.append(step)
    canary.ask, canary.interrupted = fact.ask, False
    canary.learned = fact.learned or canary.learned
    if step.verdict not in ("guard", "invalid"):
        return "info", "", ""  # the sample has a line of its own
    text = f"{canary.plan.chain}: canary step {step.number} at {step.wl:g}: {step.note}"
    return "warning", text, step.sample_id


def _open(canaries: Sequence[CanaryView]) -> CanaryView | None:
    """The last one, while it has no end; who looked before its lab was open took it for cut off."""
    return next((canary for canary in canaries[-1:] if canary.ending is None), None)


def _made_by(
    canaries: Sequence[CanaryView], proposal: Proposal, others: Sequence[ProposalView]
) -> int | None:
    """The place of the last canary, if that has made the proposal and no other before."""
    place = len(canaries) - 1
    if place < 0 or canaries[place].plan.chain != proposal.chain:
        return None
    measured = {step.sample_id for step in canaries[place].steps}
    if not measured & set(proposal.model.sample_ids) or any(p.canary == place for p in others):
        return None
    return place


def _retrain(view: _View, record: RetrainingRecord) -> None:
    state = {(models.chain, models.kpi): models for models in view.chain_models}
    view.chain_models = list(after(state, record).values())


def _decide(view: _View, decision: Decision) -> None:
    own = decision.proposal
    view.proposals = [
        replace(p, decision=decision) if p.proposal.id == own else p for p in view.proposals
    ]
    if decision.accepted:
        for made in view.proposals:
            if made.proposal.id == own:
                _forget_drift(view, made.proposal.chain, made.proposal.kpi)


def _forget_drift(view: _View, chain: str, kpi: str) -> None:
    view.drifts = [d for d in view.drifts if (d.chain, d.kpi) != (chain, kpi)]
