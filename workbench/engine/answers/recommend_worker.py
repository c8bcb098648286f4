"""Allocations of a chain, judged against SLAs: what `recommend` has its worker process answer.

All of this runs there; what crosses over to it can be pickled.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.domain import kpis
from workbench.domain.errors import NothingAllowed, OutsideProfile, WorkbenchError
from workbench.domain.recommendations import Deployment, GreedyRun, Trend
from workbench.engine.answers.candidates import Candidates
from workbench.engine.answers.chain_profiles import Profiles
from workbench.engine.answers.recommend_request import (
    Order,
    balancers_in,
    cost_in,
    functions_of,
    kpis_of_models,
    question_of,
    resources_of,
)

if TYPE_CHECKING:  # their imports take seconds, and the engine only hands these values on
    from workbench.sla.greedy import GreedyScaling
    from workbench.sla.recommendation import Answer
    from workbench.sla.sla_query import Question
    from workbench.sla.updated_by_trials import Tried


@dataclass(frozen=True)
class AnswerableQuestion:
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


def examine(order: Order) -> AnswerableQuestion:
    """The question that SLAs ask; what cannot be judged is refused before any model is made.

    Raises
    ------
    SlaError
        As `sla.sla_query.asked`.
    UsageError
        If no rule composes a KPI, or if something has no price.
    """
    from workbench.sla.costs import options_of

    question = question_of(order)
    options_of(resources_of(order, functions_of(order)), cost_in(order))
    limited = dict.fromkeys(sla.kpi for sla in question.limits)
    if not order.spoken_for:
        return AnswerableQuestion(question, tuple(limited))
    chosen = dict.fromkeys(name for kpi in limited for name in kpis_of_models(order, kpi)[0])
    return AnswerableQuestion(question, tuple(chosen))


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

    candidates = Candidates.of(order, question, profiles)
    answer = candidates.judge_all()
    doubted = False
    if tried:
        candidates, answer, doubted = candidates.settled(answer, tried)
    predicted = candidates.predicted
    choices = [choice for choice in (answer.chosen or answer.closest,) if choice is not None]
    for found in tuple(choices):
        cheaper = candidates.next_cheaper(found)
        # Nothing is drawn of what nothing is known of.
        with suppress(OutsideProfile, NothingAllowed):
            beside = candidates.judge(cheaper)
            choices += [c for c in (beside.chosen or beside.closest,) if c is not None]
    sentences = (
        answer.note,
        candidates.told_of_failed(answer.chosen),
        candidates.told_of_unjudged(answer),
        candidates.told_of_unreached(answer.chosen),
    )
    told = " ".join(filter(None, (*sentences, *predicted.told_of_the_chain())))
    # Thousands of deployments need not cross to the engine, which tells what is said of them.
    answer = replace(answer, note=told, rests_on=predicted.rests_on, unjudged=())
    trends = tuple(
        Trend(choice, tuple(predicted.curves(choice, candidates.known))) for choice in choices
    )
    greedy, notes = None, [*predicted.warnings]
    if doubted:
        notes.append("Its own samples held; what was tried later makes it less sure than that")
    version = max(predicted.versions.values())
    if version and order.spoken_for and any(max(c.replicas.values()) > 1 for c in choices[:1]):
        version = max(predicted.of_several.values())
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
            greedy = on_model(scaling_of(order, question), predicted.performance)
            told = f"{greedy.note} {_refuted(greedy, question, tried)}".strip()
            greedy = replace(greedy, probability=_probability(candidates, greedy), note=told)
        except WorkbenchError as error:
            notes.append(f"greedy scaling cannot be played: {error}")
    return Judged(answer, trends, greedy, version, tuple(notes))


def _refuted(run: GreedyRun, question: Question, tried: tuple[Tried, ...]) -> str:
    """What the lab said against the allocation that greedy scaling came to; empty without that."""
    if not run.met or not run.steps:
        return ""
    key = run.steps[-1].deployment.key
    for one in (seen for seen in tried if seen.deployment.key == key):
        for sla in question.limits:
            value, unit = one.kpis.get(sla.kpi), kpis.of(sla.kpi).unit
            if value is None:
                continue
            if sla.kpi in one.bounds:
                return (
                    f"The lab refuted it: {sla.kpi} beyond {value.value:.4g} {unit}".strip() + "."
                )
            if not sla.holds(value.value):
                return f"The lab refuted it: {sla.kpi} of {value.value:.4g} {unit}".strip() + "."
    return ""


def _probability(candidates: Candidates, run: GreedyRun) -> float | None:
    """Of what greedy scaling came to, by the same measure as of what is recommended."""
    with suppress(OutsideProfile, NothingAllowed):
        if run.steps and run.met:
            alone = candidates.judge((run.steps[-1].deployment,))
            choice = alone.chosen or alone.closest
            return choice.probability if choice is not None else None
    return None


def next_trial(
    order: Order, question: Question, profiles: Profiles, tried: tuple[Tried, ...], last: bool
) -> Deployment | None:
    """What another lab iteration is worth spending on; see `sla.trial_selection.next_to_try`."""
    from workbench.sla.trial_selection import next_to_try

    candidates = Candidates.of(order, question, profiles)
    answer = candidates.judge_all()
    candidates, performance, near = candidates.taught(answer, tried)
    if tried:
        answer = candidates.judge_all()
    return next_to_try(performance, near, candidates.cost, answer, tried, last=last)


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
