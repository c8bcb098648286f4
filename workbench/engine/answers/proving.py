"""A recommendation on the lab: what it names is measured, and greedy scaling runs beside it.

Both are trials of the session. What is deployed, and what greedy scaling asks for next, the worker
says (`engine.proving_steps`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from workbench.domain import questions
from workbench.domain.errors import BudgetSpent, DataError, LabError, UsageError, WorkbenchError
from workbench.domain.events import Fact, GreedyScaled, RecommendationVerified
from workbench.domain.recommendations import Choice, GreedyRun, Recommendation, Verification
from workbench.domain.samples import Sample, TrialPurpose
from workbench.domain.topology import Target
from workbench.engine.answers import retraining
from workbench.engine.answers.judging import Order
from workbench.engine.answers.proving_steps import (
    ATTEMPTS,
    Stand,
    climbed,
    evidence,
    overloaded,
    stand_of,
    verdict,
)
from workbench.engine.learning.pool import Pool
from workbench.engine.learning.scoring import Say, patiently
from workbench.engine.sessions.library import Library
from workbench.engine.sessions.recording import recorded

if TYPE_CHECKING:  # its imports take time, and the engine only hands these values on
    from workbench.sla.question import Question


class Lab(retraining.Lab, Protocol):
    """One that says what it has cost, too."""

    @property
    def lab_s(self) -> float: ...


Trials = Callable[..., AbstractAsyncContextManager[Lab]]
"""Opens the lab of a session: `Queue.trials`."""


@dataclass(frozen=True)
class Proof:
    """What the lab is asked of one stored recommendation."""

    library: Library
    pool: Pool
    trials: Trials
    request: questions.Recommend
    order: Order
    question: Question
    by: str
    say: Say

    async def of(self, issued: Recommendation) -> list[str]:
        """Measure, and store what was found; sentences on what was not.

        Raises
        ------
        WorkbenchError
            If what is recommended cannot be deployed or measured.
        """
        notes: list[str] = []
        budget_s = self.request.budget_s
        if self.request.verify and issued.chosen is None:
            notes.append("Nothing is recommended, so that nothing was verified")
        elif self.request.verify and issued.chosen is not None:
            try:
                verified = await self._verified(issued.chosen, budget_s)
            except WorkbenchError as error:
                error.what = f"{issued.id} is stored, and was not verified: {error.what}"
                raise
            await self._record(RecommendationVerified(issued.id, verified, self.by))
            if budget_s is not None:
                budget_s = max(0.0, budget_s - verified.lab_s)
        if self.request.on_lab:
            greedy = await self._scaled(budget_s)
            if greedy.steps:
                await self._record(GreedyScaled(issued.id, greedy, self.by))
            else:
                notes.append(f"Greedy scaling was not run: {greedy.note}")
        return notes

    async def stored(self, id: str) -> Recommendation:
        """The recommendation with all that is known of it by now."""
        async with self.library.borrow(self.request.session) as channel:
            issued = channel.view.recommendation(id)
        assert issued is not None
        return issued.recommendation

    async def _verified(self, choice: Choice, budget_s: float | None) -> Verification:
        stand = await patiently(self.pool, stand_of, self.order, self.question, choice.deployment)
        self.say(f"{stand.plan.target.name}: measuring what is recommended")
        async with self._opened("verification", stand, budget_s, 1) as lab:
            sample = await _measured(lab, stand)
        return verdict(sample, self.question.limits, lab.lab_s)

    async def _scaled(self, budget_s: float | None) -> GreedyRun:
        """Greedy scaling to its end, or as far as it came; other instances are deployed anew."""
        told: list[Sample] = []
        labs: list[Lab] = []
        note = ""
        climb = await patiently(self.pool, climbed, self.order, self.question, ())
        try:
            while (stand := climb.stand) is not None:
                spent_s = sum(lab.lab_s for lab in labs)
                left_s = None if budget_s is None else max(0.0, budget_s - spent_s)
                target = stand.plan.target
                async with self._opened("greedy", stand, left_s, 0) as lab:
                    labs.append(lab)
                    while stand is not None and stand.plan.target == target:
                        self.say(f"{target.name}: greedy scaling, {stand.configuration.key}")
                        told.append(_telling(await _measured(lab, stand), target))
                        climb = await patiently(
                            self.pool, climbed, self.order, self.question, tuple(told)
                        )
                        stand = climb.stand
        except (BudgetSpent, DataError, LabError, UsageError) as error:
            note = str(error)
        lab_s = sum(lab.lab_s for lab in labs)
        return replace(climb.run, lab_s=lab_s, note=note or climb.run.note)

    def _opened(
        self, purpose: TrialPurpose, stand: Stand, budget_s: float | None, points: int
    ) -> AbstractAsyncContextManager[Lab]:
        return self.trials(
            self.request.session,
            purpose,
            plans=(stand.plan,),
            budget_s=budget_s,
            points=points,
            by=self.by,
            oversubscribe=self.request.oversubscribe,
        )

    async def _record(self, fact: Fact) -> None:
        await recorded(self.library, self.request.session, lambda _: fact)


async def _measured(lab: Lab, stand: Stand) -> Sample:
    """A sample that says something, or the last of several; raises as `measure` does."""
    for _ in range(ATTEMPTS):
        sample = await lab.measure(stand.plan.target.name, stand.configuration, stand.wl)
        if sample.valid or overloaded(sample, stand.plan.target):
            break
    return sample


def _telling(sample: Sample, target: Target) -> Sample:
    """A sample by which greedy scaling can go on. Raises `DataError`."""
    if sample.valid or overloaded(sample, target):
        return sample
    raise DataError(
        f"no sample of {ATTEMPTS} is valid: {evidence(sample)}",
        where=f"{sample.point.target} {sample.point.configuration.key}",
    )
