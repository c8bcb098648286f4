"""Greedy scaling says what the lab said against the allocation that it came to."""

from __future__ import annotations

from workbench.domain.parameters import Sla
from workbench.domain.recommendations import Deployment, GreedyRun, GreedyStep
from workbench.domain.samples import Estimate
from workbench.engine.answers.recommend_worker import _refuted
from workbench.sla.sla_query import Question
from workbench.sla.updated_by_trials import Tried

LIMIT = Sla("p95_ms", 100.0, "<=", 400.0)
QUESTION = Question((LIMIT,), (LIMIT,), 400.0, {})
SMALL, LARGE = Deployment({"proxy.vcpu": 0.25}), Deployment({"proxy.vcpu": 0.5})
STEP = GreedyStep(SMALL.allocation, {}, 400.0, {"p95_ms": 80.0}, {}, True, ())
RUN = GreedyRun((STEP,), True, 0.25, "vCPU", 0, 0.0)


def seen(deployment: Deployment, p95_ms: float, *, bound: bool = False) -> tuple[Tried, ...]:
    told = {"p95_ms": Estimate(p95_ms, p95_ms, p95_ms)}
    return (Tried(deployment, told, frozenset({"p95_ms"} if bound else ())),)


def test_a_trial_that_misses_the_limit_refutes_it() -> None:
    assert _refuted(RUN, QUESTION, seen(SMALL, 132.4)) == (
        "The lab refuted it: p95_ms of 132.4 ms."
    )
    assert _refuted(RUN, QUESTION, seen(SMALL, 100.0, bound=True)) == (
        "The lab refuted it: p95_ms beyond 100 ms."
    )


def test_nothing_is_said_where_the_lab_held_it_or_tried_another() -> None:
    assert _refuted(RUN, QUESTION, seen(SMALL, 80.0)) == ""
    assert _refuted(RUN, QUESTION, seen(LARGE, 500.0)) == ""
    assert _refuted(RUN, QUESTION, ()) == ""
