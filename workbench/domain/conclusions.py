"""Models, influences, recommendations: how what was concluded folds into a session's view."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from workbench.domain.counts import counted
from workbench.domain.event_log import Line, because, by_whom
from workbench.domain.events import (
    GreedyScaled,
    InfluenceMeasured,
    RecommendationIssued,
    RecommendationVerified,
    TargetModelled,
)
from workbench.domain.profiles import ModelVersion, ParameterInfluence
from workbench.domain.recommendations import IssuedRecommendation, Recommendation, priced

Conclusion = (
    TargetModelled
    | InfluenceMeasured
    | RecommendationIssued
    | RecommendationVerified
    | GreedyScaled
)


class _View(Protocol):
    """What of a session's view is folded here."""

    models: list[ModelVersion]
    influences: list[ParameterInfluence]
    recommendations: list[IssuedRecommendation]

    def recommendation(self, id: str) -> IssuedRecommendation | None: ...


def fold(view: _View, fact: Conclusion, seq: int, at: float) -> Line:
    """Bring a view up to date; what the event log says of it."""
    match fact:
        case TargetModelled(model=model, note=note):
            view.models.append(ModelVersion.of(model, seq, at))
            text = (
                f"{model.target}: model {model.version} of {model.kpi} is {model.method}, "
                f"fitted to {counted(len(model.sample_ids), 'sample')}"
            )
            return "warning" if note else "info", text + (f"; {note}" if note else ""), ""
        case InfluenceMeasured(influence=measured):
            others = [i for i in view.influences if i.target != measured.target]
            view.influences = [*others, measured]
            text = f"{measured.target}: influence of {', '.join(measured.parameters)} measured"
            return "info", text, ""
        case RecommendationIssued(recommendation=issued):
            view.recommendations.append(IssuedRecommendation(issued, seq))
            return "info", _recommendation_line(issued), ""
        case RecommendationVerified(recommendation=id, verified=verified):
            _verify(view, fact)
            verdict = "holds" if verified.met else "does not hold"
            text = f"recommendation {id} {verdict} on the lab{by_whom(fact.by)}"
            return "info" if verified.met else "warning", text + because(verified.note), ""
        case GreedyScaled(recommendation=id, greedy=greedy):
            _amend(view, id, greedy=greedy)
            text = f"greedy scaling beside recommendation {id}{by_whom(fact.by)}: "
            text += f"{greedy.lab_iterations} allocations on the lab"
            return "info", text + (f"; {greedy.note}" if greedy.note else ""), ""


def _verify(view: _View, fact: RecommendationVerified) -> None:
    """Its verdict; allocations and seconds come on top of those that led to it."""
    before = view.recommendation(fact.recommendation)
    iterations, lab_s = fact.lab_iterations, fact.verified.lab_s
    if fact.lab_s is not None:
        lab_s = fact.lab_s
    if before is not None:
        iterations += before.recommendation.lab_iterations
        lab_s += before.recommendation.lab_s
    _amend(
        view, fact.recommendation, verified=fact.verified, lab_iterations=iterations, lab_s=lab_s
    )


def _amend(view: _View, id: str, **figures: Any) -> None:
    """A stored recommendation with what the lab said of it; it keeps its place."""
    view.recommendations = [
        replace(issued, recommendation=replace(issued.recommendation, **figures))
        if issued.recommendation.id == id
        else issued
        for issued in view.recommendations
    ]


def _recommendation_line(issued: Recommendation) -> str:
    asked = "; ".join(sla.text or f"{sla.kpi}{sla.direction}{sla.limit:g}" for sla in issued.slas)
    chosen = issued.chosen
    found = "nothing meets it" if chosen is None else priced(chosen.cost, chosen.cost_unit)
    return f"{issued.chain}: recommendation {issued.id} for {asked}: {found}"
