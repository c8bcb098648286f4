"""Which allocation to try on the lab next: that by which the answer is expected to cost least."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from workbench.domain.recommendations import Deployment
from workbench.sla.costs import Cost, cost_of
from workbench.sla.question import Question
from workbench.sla.recommendation import Answer
from workbench.sla.taught import TaughtPerformance, Tried

LEAST_SAVING = 0.01
"""Expected saving, as a share of the cost, that a lab iteration is worth."""
NEIGHBOURS = 200
"""Deployments on either side of the answer, by cost, that are thought about."""


def around(candidates: Iterable[Deployment], answer: Answer, cost: Cost) -> tuple[Deployment, ...]:
    """The candidates whose cost is next to that of the answer, below and above."""
    found = answer.chosen or answer.closest
    if found is None:
        return ()
    priced = [(cost_of(one, cost), one) for one in candidates]
    below = [one for price, one in priced if price < found.cost]
    above = [one for price, one in priced if price >= found.cost]
    return (*below[-NEIGHBOURS:], *above[:NEIGHBOURS])


def next_to_try(
    performance: TaughtPerformance,
    candidates: Sequence[Deployment],
    cost: Cost,
    answer: Answer,
    tried: Sequence[Tried],
    *,
    last: bool,
) -> Deployment | None:
    """What another lab iteration is worth spending on; None: on nothing.

    An answer that the lab has not seen must be tried at last. Before that, and where it was tried,
    it is the allocation for which P(confirmed)·cost + P(not)·cost of the answer is the least, if
    that saves anything. Where nothing is sure to hold it is what comes closest.

    Parameters
    ----------
    performance : with what was tried.
    candidates : of which `performance` knows.
    answer : of `performance`.
    last : whether no other iteration follows.
    """
    known = {one.deployment.key for one in tried}
    sure = answer.chosen
    if sure is None:
        closest = None if answer.closest is None else answer.closest.deployment
        return None if closest is None or closest.key in known else closest
    seen = sure.deployment.key in known
    if last and not seen:
        return sure.deployment
    cheaper = [one for one in candidates if cost_of(one, cost) < sure.cost and one.key not in known]
    if cheaper:
        saved = np.array([sure.cost - cost_of(one, cost) for one in cheaper])
        expected = performance.confirmed(cheaper) * saved
        best = int(np.argmax(expected))
        if expected[best] > LEAST_SAVING * sure.cost:
            return cheaper[best]
    return None if seen else sure.deployment


def holding(question: Question, tried: Sequence[Tried], cost: Cost) -> tuple[Deployment, ...]:
    """The deployments whose samples held all limits, by rising cost."""
    held = [
        one.deployment
        for one in tried
        if all(
            sla.kpi in one.kpis and sla.kpi not in one.bounds and sla.holds(one.kpis[sla.kpi].value)
            for sla in question.limits
        )
    ]
    return tuple(sorted(held, key=lambda one: cost_of(one, cost)))


def confirmed(
    question: Question,
    tried: Sequence[Tried],
    cost: Cost,
    judged: Callable[[Sequence[Tried], Sequence[Deployment]], Answer],
) -> tuple[int, Answer] | None:
    """The cheapest that was tried and surely holds, and by how many of the trials it does.

    Where a later trial, which failed, has made all that held before doubtful, it is what was sure
    before that: its own samples held.

    Parameters
    ----------
    judged : the answer among deployments, by what was tried until then.
    """
    for count in range(len(tried), 0, -1):
        if own := holding(question, tried[:count], cost):
            answer = judged(tried[:count], own)
            if answer.chosen is not None:
                return count, answer
    return None
