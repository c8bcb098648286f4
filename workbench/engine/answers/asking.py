"""Questions to a session's models, and who answers them: one worker process of their own.

They take seconds to minutes; a campaign's sampler must not wait behind them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.domain.gains import nothing_gained
from workbench.domain.lab import ASSUMED
from workbench.domain.messages import Hello, Reply
from workbench.domain.projection import SessionView
from workbench.domain.questions import (
    ChartChain,
    CompareChain,
    DecideProposal,
    Diagnose,
    ExplainModel,
    PlanCanary,
    PredictChain,
    Question,
    Recommend,
    Recommended,
    RetrainChain,
    RollBackModel,
    ScoreModels,
    VerifyRecommendation,
    session_of,
)
from workbench.engine.learning.pool import Pool
from workbench.engine.learning.remaining import Remaining, counted_for
from workbench.engine.sessions.library import Library

if TYPE_CHECKING:
    from workbench.engine.answers.proving import Trials
    from workbench.engine.learning.scoring import Say


ENDS_WITH = {
    PredictChain: "predicted",
    CompareChain: "compared_with",
    ChartChain: "charted_by",
    Recommend: "judge",
    RetrainChain: "proposed",
}
"""The last and longest piece of work of a question, as the worker knows it."""


@dataclass(eq=False)
class Answering:
    """A question that is being answered.

    Attributes
    ----------
    doing : what is computed for it, as a sentence.
    """

    remaining: Remaining
    doing: str = ""


def to_be_said(view: SessionView, reply: Reply) -> Iterator[str]:
    """Beside an answer that rests on a session: what nobody measured of its figures, and of an
    allocation where more vCPU brought nothing."""
    if view.host and (assumed := view.host.details.get(ASSUMED)):
        yield assumed
    if isinstance(reply, Recommended):
        found = reply.recommendation.chosen or reply.recommendation.closest
        functions = {key.rpartition(".")[0] for key in found.allocation} if found else set()
        yield from (gain.text for gain in nothing_gained(view) if gain.vnf in functions)


class Asking:
    """Answers; rooms of science are imported with the first question that needs them.

    Parameters
    ----------
    disturbs : whether more than one worker would disturb who measures on this host.

    Attributes
    ----------
    pool : the worker of questions.
    """

    def __init__(
        self, library: Library, trials: Trials, disturbs: Callable[[], bool] = lambda: True
    ) -> None:
        cores = len(os.sched_getaffinity(0))
        self.pool = Pool(lambda: cores > 1 and not disturbs())
        self._answering: list[Answering] = []
        self._took: dict[str, float] = {}
        """Seconds by kind of work; see `Remaining`."""
        self._library, self._trials = library, trials

    @property
    def latest(self) -> Answering | None:
        """The question that was asked last, of those that something is computed for."""
        return next((one for one in reversed(self._answering) if one.doing), None)

    async def answer(self, request: Question, who: Hello) -> Reply:
        """The reply; nothing is stored for an observer. Raises `WorkbenchError`."""
        one = Answering(Remaining(self._took))
        if (last := ENDS_WITH.get(type(request))) is not None:
            one.remaining.at_least(last)

        def say(text: str) -> None:
            one.doing = text

        self._answering.append(one)
        try:
            with counted_for(one.remaining):
                reply = await self._answer(request, who, say)
            return await self._with_assumptions(reply, request)
        finally:
            self._answering.remove(one)

    async def _with_assumptions(self, reply: Reply, request: Question) -> Reply:
        """The reply, and what its figures rest on that nobody measured."""
        notes = getattr(reply, "notes", None)
        if notes is None:
            return reply
        new: dict[str, None] = {}
        for session in filter(None, (session_of(request), getattr(request, "profiles", None))):
            async with self._library.borrow(session) as channel:
                new |= dict.fromkeys(to_be_said(channel.view, reply))
        said = tuple(text for text in new if text not in notes)
        return replace(reply, notes=(*said, *notes)) if said else reply  # type: ignore[arg-type]

    async def close(self) -> None:
        await self.pool.close()

    async def _answer(self, request: Question, who: Hello, say: Say) -> Reply:
        store = who.role != "observer"
        match request:
            case ScoreModels():
                from workbench.engine.learning.modelling import score

                return await score(self._library, self.pool, request, store=store, say=say)
            case Diagnose():
                from workbench.engine.answers.diagnosing import diagnose

                return await diagnose(self._library, request, say=say)
            case PredictChain():
                from workbench.engine.answers.predicting import predict_chain

                self.pool.warm()  # while the session is read
                return await predict_chain(self._library, self.pool, request, store=store, say=say)
            case CompareChain():
                from workbench.engine.answers.chain_comparing import compare_chain

                self.pool.warm()
                return await compare_chain(self._library, self.pool, request, store=store, say=say)
            case ChartChain():
                from workbench.engine.answers.chain_charting import chart_chain

                self.pool.warm()
                return await chart_chain(self._library, self.pool, request, store=store, say=say)
            case Recommend():
                from workbench.engine.answers.recommending import recommend

                self.pool.warm()
                return await recommend(
                    self._library,
                    self.pool,
                    self._trials,
                    request,
                    store=store,
                    by=request.by or who.identity,
                    say=say,
                )
            case VerifyRecommendation():
                from workbench.engine.answers.recommending import verify

                self.pool.warm()
                return await verify(
                    self._library,
                    self.pool,
                    self._trials,
                    request,
                    by=request.by or who.identity,
                    say=say,
                )
            case RetrainChain():
                from workbench.engine.answers.retraining import retrain

                return await retrain(
                    self._library,
                    self.pool,
                    self._trials,
                    request,
                    by=request.by or who.identity,
                    say=say,
                )
            case PlanCanary():
                from workbench.engine.answers.canary_asking import plan_canary

                return await plan_canary(self._library, self.pool, request)
            case DecideProposal(by=by):
                from workbench.engine.answers.retraining import decide

                return await decide(self._library, request, by=by or who.identity)
            case ExplainModel():
                from workbench.engine.answers.explaining import explain_model

                return await explain_model(self._library, self.pool, request, say=say)
            case RollBackModel(by=by):
                from workbench.engine.answers.retraining import roll_back

                return await roll_back(self._library, request, by=by or who.identity)
