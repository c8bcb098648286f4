"""The allowed deployments of a chain, judged by what is predicted of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from workbench.domain.counts import counted
from workbench.domain.parameters import Combination, Parameter
from workbench.domain.recommendations import Choice, Deployment
from workbench.domain.resources import allotted_words
from workbench.engine.answers.chain_profiles import Profiles
from workbench.engine.answers.performance import PredictedDeployments
from workbench.engine.answers.recommend_request import (
    Order,
    balancers_in,
    cost_in,
    functions_of,
    profiled,
    resources_of,
)
from workbench.engine.answers.unjudged import told_of_unjudged

if TYPE_CHECKING:  # their imports take seconds, and the engine only hands these values on
    from workbench.sla.costs import Cost
    from workbench.sla.profiled import Profiled
    from workbench.sla.recommendation import Answer
    from workbench.sla.replicas import Balancer
    from workbench.sla.sla_query import Question
    from workbench.sla.updated_by_trials import PerformanceUpdatedByTrials, Tried


@dataclass(frozen=True)
class Candidates:
    """The allowed deployments of a chain, and what is predicted of them.

    Attributes
    ----------
    known : what was profiled.
    needed : functions that may be had more than once, with what balances their load.
    combine : how allotments of single instances combine.
    """

    question: Question
    predicted: PredictedDeployments
    known: Profiled
    cost: Cost
    resources: tuple[Parameter, ...]
    needed: Mapping[str, Balancer]
    combine: Combination

    @classmethod
    def of(cls, order: Order, question: Question, profiles: Profiles) -> Candidates:
        resources, balancers = resources_of(order, functions_of(order)), balancers_in(order)
        predicted = PredictedDeployments.of(order, question, profiles, balancers)
        needed = {vnf: balancers[vnf] for vnf in predicted.too_slow(resources)}
        # A target's stated pairs are the only ones allowed; of several functions none were stated.
        one_target = not order.spoken_for or len(order.chain.vnfs) == 1
        combine = order.plans[0].combine if one_target else "every"
        return cls(question, predicted, profiled(order), cost_in(order), resources, needed, combine)

    def singles(self) -> Iterator[Deployment]:
        from workbench.sla.costs import allowed

        return allowed(self.resources, self.cost, self.combine)

    def several(self) -> Iterator[Deployment]:
        from workbench.sla.replicas import replicated

        return replicated(self.resources, self.needed, self.cost) if self.needed else iter(())

    def next_cheaper(self, found: Choice) -> tuple[Deployment, ...]:
        """The last one of its kind that costs less, if any does."""
        from workbench.sla.costs import cost_of
        from workbench.sla.recommendation import MOST_JUDGED

        single = all(count == 1 for count in found.replicas.values())
        cheaper: tuple[Deployment, ...] = ()
        for deployment in islice(self.singles() if single else self.several(), MOST_JUDGED):
            if cost_of(deployment, self.cost) >= found.cost:
                break
            cheaper = (deployment,)
        return cheaper

    def told_of_failed(self, found: Choice | None) -> str:
        """How many cheaper single instances were measured not to hold; empty where none was."""
        from workbench.sla.costs import cost_of
        from workbench.sla.recommendation import MOST_JUDGED

        failed = 0
        for deployment in islice(self.singles(), MOST_JUDGED if self.predicted.limited else 0):
            if found is not None and cost_of(deployment, self.cost) >= found.cost:
                break
            failed += self.predicted.measured_to_fail(deployment)
        which = counted(failed, "cheaper allocation" if found else "allocation")
        told = "was measured and does not hold" if failed == 1 else "were measured and do not hold"
        return f"{which} {told}." if failed else ""

    def told_of_unreached(self, found: Choice | None) -> str:
        """What the chain is measured with and no function alone is, where that costs less than what
        was found; else empty."""
        from workbench.sla.costs import allowed, cost_of
        from workbench.sla.recommendation import MOST_JUDGED

        order = self.predicted.order
        plan = order.campaign.find_target(order.chain.name) if order.spoken_for else None
        beyond = order.campaign.beyond_alone(order.chain.name)
        if plan is None or not beyond:
            return ""
        kinds = {vnf.name: vnf.template for vnf in plan.target.vnfs}
        for one in islice(allowed(plan.resources, self.cost, plan.combine), MOST_JUDGED):
            if found is not None and cost_of(one, self.cost) >= found.cost:
                break
            for key, amount in one.allocation.items():
                owner, _, resource = key.rpartition(".")
                if amount in beyond.get(f"{kinds[owner]}.{resource}", ()):
                    return f"Not judged, because never measured alone: {allotted_words(beyond)}."
        return ""

    def told_of_unjudged(self, answer: Answer) -> str:
        """Why cheaper ones were not judged, and which of them fail all the same; else empty."""
        thing = "cheaper allocation" if answer.chosen else "allocation"
        return " ".join(told_of_unjudged(self.predicted, answer.unjudged, thing))

    def judge_all(self) -> Answer:
        """The cheapest that holds; of several instances only where no single ones do."""
        answer = self.judge(self.singles(), self.several())
        if not answer.is_first:
            return answer
        smaller = "A smaller allocation may do as well; none is among the allowed ones."
        return replace(answer, note=f"{smaller} {answer.note}".strip())

    def judge(self, *sources: Iterable[Deployment]) -> Answer:
        """The cheapest of these that holds; see `sla.recommendation.recommend`."""
        from workbench.sla.recommendation import recommend

        return recommend(
            self.question,
            self.predicted.performance,
            sources,
            self.known,
            self.cost,
        )

    def taught(
        self, answer: Answer, tried: Sequence[Tried]
    ) -> tuple[Candidates, PerformanceUpdatedByTrials, tuple[Deployment, ...]]:
        """The same with what was tried, and the deployments around the answer that it moves."""
        from workbench.sla.recommendation import MOST_JUDGED
        from workbench.sla.trial_selection import around
        from workbench.sla.updated_by_trials import PerformanceUpdatedByTrials

        every = (*islice(self.singles(), MOST_JUDGED), *islice(self.several(), MOST_JUDGED))
        near = around(every, answer, self.cost)
        moved = PerformanceUpdatedByTrials(self.predicted.performance, self.question, near, tried)
        taught = replace(self, predicted=replace(self.predicted, performance=moved))
        return taught, moved, near

    def settled(self, answer: Answer, tried: Sequence[Tried]) -> tuple[Candidates, Answer, bool]:
        """The cheapest that was tried and surely holds; where none does, of all.

        With the forecasts that it rests on, and whether what was tried later makes it doubtful.
        """
        from workbench.sla.trial_selection import confirmed

        def judged(until: Sequence[Tried], own: Sequence[Deployment]) -> Answer:
            return self.taught(answer, until)[0].judge(own)

        if (found := confirmed(self.question, tried, self.cost, judged)) is not None:
            count, sure = found
            return self.taught(answer, tried[:count])[0], sure, count < len(tried)
        taught = self.taught(answer, tried)[0]
        return taught, taught.judge_all(), False
