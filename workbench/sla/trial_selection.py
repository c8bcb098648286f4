"""Which allocation to try on the lab next: that by which the answer is expected to cost least."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np

from workbench.domain.recommendations import Deployment
from workbench.models.base import Floats
from workbench.sla.costs import Cost, cost_of
from workbench.sla.recommendation import Answer
from workbench.sla.sla_query import Question
from workbench.sla.updated_by_trials import TrialOutlook, Tried

LEAST_SAVING = 0.01
"""Expected saving, as a share of the cost, that a lab iteration is worth."""
LIKELY = 0.75
"""P(confirmed) with which the last iteration goes to an allocation that is cheaper than what is
sure: where it fails, what is recommended was not tried."""
NEIGHBOURS = 200
"""Deployments on either side of the answer, by cost, that are thought about."""


class Foresight(Protocol):
    """Who says what trials would show: `taught.PerformanceUpdatedByTrials`."""

    def outlook(self, deployments: Sequence[Deployment]) -> TrialOutlook: ...


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
    performance: Foresight,
    candidates: Sequence[Deployment],
    cost: Cost,
    answer: Answer,
    tried: Sequence[Tried],
    *,
    last: bool,
) -> Deployment | None:
    """What another lab iteration is worth spending on; None: on nothing.

    What is expected to save most. With another iteration to come that is what both save together
    (`_saved_by_two`); at last it is P(confirmed) times what a cheaper allocation saves, and where
    the lab has not seen the answer, only one that is likely confirmed, else the answer itself.
    Where nothing is sure to hold it is what comes closest.

    Parameters
    ----------
    performance : with what was tried.
    candidates : of which `performance` knows.
    answer : of `performance`.
    last : whether no other iteration follows; else one does.
    """
    known = {one.deployment.key for one in tried}
    sure = answer.chosen
    if sure is None:
        closest = None if answer.closest is None else answer.closest.deployment
        return None if closest is None or closest.key in known else closest
    seen = sure.deployment.key in known
    costs = np.array([cost_of(one, cost) for one in candidates])
    untried = np.array([one.key not in known for one in candidates], dtype=bool)
    worth = untried & (costs < sure.cost)
    if worth.any():
        outlook = performance.outlook(candidates)
        saved = sure.cost - costs
        if last:
            expected = outlook.confirmed * saved
            worth &= seen | (outlook.confirmed >= LIKELY)
        else:
            expected = _saved_by_two(outlook, saved)
            worth |= untried & np.array([one.key == sure.deployment.key for one in candidates])
        best = int(np.argmax(np.where(worth, expected, -np.inf)))
        if worth[best] and expected[best] > LEAST_SAVING * sure.cost:
            return candidates[best]
    return None if seen else sure.deployment


def _saved_by_two(outlook: TrialOutlook, saved: Floats) -> Floats:
    """What trying one allocation and then another is expected to save, by the first, shape (m,).

    Confirmed, it saves what it costs less, and the second iteration goes to an allocation that is
    cheaper still. If it fails, the second goes to the cheapest that is likely confirmed then, or
    most likely where none is; that may be dearer than what is sure now: a bold first trial that
    fails is the last that could save anything.
    """
    more = np.maximum(saved[None, :] - saved[:, None], 0.0)
    then = (outlook.both * more).max(axis=1)
    failed = 1.0 - outlook.confirmed
    instead = (outlook.confirmed[None, :] - outlook.both) / np.maximum(failed, 1e-9)[:, None]
    np.fill_diagonal(instead, 0.0)  # what has failed is not tried again
    likely = instead >= LIKELY
    fallback = np.where(
        likely.any(axis=1),
        np.where(likely, saved[None, :], -np.inf).max(axis=1),
        saved[instead.argmax(axis=1)],
    )
    return np.asarray(outlook.confirmed * saved + then + failed * fallback)


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
