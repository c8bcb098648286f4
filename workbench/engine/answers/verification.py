"""A recommendation on the lab: allocations are tried, and greedy scaling runs beside it.

Both are trials of the session. What is tried, how it is deployed, and what greedy scaling asks for
next, the worker says (`judging.next_trial`, `proving_steps`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from workbench.domain import questions
from workbench.domain.errors import BudgetSpent, DataError, LabError, UsageError, WorkbenchError
from workbench.domain.events import Fact, GreedyScaled, RecommendationVerified
from workbench.domain.parameters import Sla
from workbench.domain.projection import SessionView
from workbench.domain.recommendations import (
    Deployment,
    GreedyRun,
    Recommendation,
    Verification,
)
from workbench.domain.samples import Sample, TrialPurpose
from workbench.domain.topology import Target
from workbench.domain.trials import usual_s, usual_samples
from workbench.engine.answers import retraining
from workbench.engine.answers.chain_profiles import Profiles
from workbench.engine.answers.recommend_request import Order
from workbench.engine.answers.recommend_worker import next_trial
from workbench.engine.answers.verification_steps import (
    ATTEMPTS,
    UNDECIDED_REPEATS,
    Stand,
    climbed,
    evidence,
    overloaded,
    stand_of,
    tried_of,
    typical,
    verdict,
    worth_repeating,
)
from workbench.engine.learning.pool import Pool
from workbench.engine.learning.remaining import doing, expect, skip
from workbench.engine.learning.scoring import Say, patiently
from workbench.engine.runs.opening import loads_host
from workbench.engine.runs.trials import TrialsRequest
from workbench.engine.sessions.library import Library
from workbench.engine.sessions.recording import recorded

if TYPE_CHECKING:  # its imports take time, and the engine only hands these values on
    from workbench.sla.sla_query import Question
    from workbench.sla.updated_by_trials import Tried


class CostedLab(retraining.PointMeasurer, Protocol):
    """One that says what it has cost, too."""

    @property
    def lab_s(self) -> float: ...

    @property
    def spent_s(self) -> float:
        """Of its budget."""
        ...


Trials = Callable[[TrialsRequest], AbstractAsyncContextManager[CostedLab]]
"""Opens the lab of a session: `Queue.trials`."""


ITERATIONS = 2
"""Allocations that are tried at most before one is recommended."""


@dataclass(frozen=True)
class Iteration:
    """An allocation that was tried, and what that teaches; None: nothing."""

    deployment: Deployment
    verified: Verification
    taught: Tried | None


@dataclass
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
    view: SessionView
    """The session before anything was tried."""
    spent_s: float = 0.0
    """Of the request's budget."""

    async def iterations(
        self, issued: Recommendation, profiles: Profiles
    ) -> tuple[list[Iteration], list[str]]:
        """Try what promises to save most, then what is likely by then; sentences on what failed.

        Raises
        ------
        WorkbenchError
            If the first allocation cannot be deployed or measured.
        """
        done: list[Iteration] = []
        expect(self._trial, ITERATIONS, self._usual_s)
        while len(done) < ITERATIONS:
            tried = tuple(one.taught for one in done if one.taught)
            last = len(done) + 1 == ITERATIONS
            following = await patiently(
                self.pool, next_trial, self.order, self.question, profiles, tried, last
            )
            if following is None or any(one.deployment.key == following.key for one in done):
                skip(self._trial)
                break
            try:
                with doing(self._trial):
                    done.append(await self._tried(following))
            except WorkbenchError as error:
                if not done:
                    error.what = f"{issued.id} is stored, and was not verified: {error.what}"
                    raise
                return done, [f"No other allocation was tried: {error}"]
        return done, []

    async def confirm(
        self, issued: Recommendation, found: Iteration, done: Sequence[Iteration]
    ) -> None:
        """Store the verdict on what is recommended, and all that was done for it."""
        lab_s = sum(one.verified.lab_s for one in done)
        verdict = RecommendationVerified(issued.id, found.verified, self.by, len(done), lab_s)
        await self._record(verdict)

    async def scale(self, issued: Recommendation) -> list[str]:
        """Run greedy scaling and store it beside a recommendation; sentences on what failed."""
        greedy = await self._scaled()
        if not greedy.steps:
            return [f"Greedy scaling was not run: {greedy.note}"]
        await self._record(GreedyScaled(issued.id, greedy, self.by))
        return []

    async def stored(self, id: str) -> Recommendation:
        """The recommendation with all that is known of it by now."""
        async with self.library.borrow(self.request.session) as channel:
            issued = channel.view.recommendation(id)
        assert issued is not None
        return issued.recommendation

    @property
    def _trial(self) -> str:
        """What an allocation that is tried is called among the work that is done here."""
        return f"an allocation tried on {self.view.lab}"

    @property
    def _usual_s(self) -> float | None:
        """What one takes where none was tried here yet; only on a lab whose time is the clock's."""
        return usual_s(self.view) if loads_host(self.view.lab) else None

    async def _tried(self, deployment: Deployment) -> Iteration:
        limits = self.question.limits
        stand = await patiently(self.pool, stand_of, self.order, self.question, deployment)
        target = stand.plan.target
        self.say(f"{target.name}: measuring {stand.configuration.key}")
        async with self._opened("verification", stand, usual_samples(self.view)) as lab:
            sample = typical(await _repeated(lab, stand, limits), limits)
        taught = await patiently(self.pool, tried_of, deployment, target, sample, limits)
        return Iteration(deployment, verdict(sample, limits, lab.lab_s), taught)

    async def _scaled(self) -> GreedyRun:
        """Greedy scaling to its end, or as far as it came; other instances are deployed anew."""
        told: list[Sample] = []
        labs: list[CostedLab] = []
        note = ""
        climb = await patiently(self.pool, climbed, self.order, self.question, ())
        try:
            while (stand := climb.stand) is not None:
                target = stand.plan.target
                async with self._opened("greedy", stand, 0) as lab:
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

    @asynccontextmanager
    async def _opened(
        self, purpose: TrialPurpose, stand: Stand, points: int
    ) -> AsyncIterator[CostedLab]:
        """The lab, with what is left of the request's budget."""
        budget_s = self.request.budget_s
        request = TrialsRequest(
            self.request.session,
            purpose,
            (stand.plan,),
            None if budget_s is None else max(0.0, budget_s - self.spent_s),
            points,
            self.by,
            oversubscribe=self.request.oversubscribe,
        )
        async with self.trials(request) as lab:
            try:
                yield lab
            finally:
                self.spent_s += lab.spent_s

    async def _record(self, fact: Fact) -> None:
        await recorded(self.library, self.request.session, lambda _: fact)


async def _repeated(lab: CostedLab, stand: Stand, limits: Sequence[Sla]) -> list[Sample]:
    """Samples of one deployment that are valid, or one that is not; raises as `measure` does."""
    samples = await _attempts(lab, stand)
    deploying_s = lab.lab_s - sum(sample.lab_s for sample in samples)
    samples = samples[-1:]
    valid = [sample for sample in samples if sample.valid]
    while valid and len(samples) < UNDECIDED_REPEATS:
        if not worth_repeating(valid, limits, deploying_s):
            break
        try:
            samples.append(await _measured(lab, stand))
        except BudgetSpent:
            break
        valid = [sample for sample in samples if sample.valid]
    return valid or samples


async def _measured(lab: CostedLab, stand: Stand) -> Sample:
    """A sample that says something, or the last of several; raises as `measure` does."""
    return (await _attempts(lab, stand))[-1]


async def _attempts(lab: CostedLab, stand: Stand) -> list[Sample]:
    """All that were taken until one says something."""
    taken: list[Sample] = []
    target = stand.plan.target
    while len(taken) < ATTEMPTS:
        taken.append(await lab.measure(target.name, stand.configuration, stand.wl))
        if taken[-1].valid or overloaded(taken[-1], target):
            break
    return taken


def _telling(sample: Sample, target: Target) -> Sample:
    """A sample by which greedy scaling can go on. Raises `DataError`."""
    if sample.valid or overloaded(sample, target):
        return sample
    raise DataError(
        f"no sample of {ATTEMPTS} is valid: {evidence(sample)}",
        where=f"{sample.point.target} {sample.point.configuration.key}",
    )
