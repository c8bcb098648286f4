"""Questions to a session's models, and who answers them: one worker process of their own.

They take seconds to minutes; a campaign's sampler must not wait behind them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.domain.messages import Hello, Reply
from workbench.domain.questions import (
    ChartChain,
    CompareChain,
    DecideProposal,
    ExplainModel,
    PlanCanary,
    PredictChain,
    Question,
    Recommend,
    RetrainChain,
    RollBackModel,
    ScoreModels,
    VerifyRecommendation,
)
from workbench.engine.learning.pool import Pool
from workbench.engine.sessions.library import Library

if TYPE_CHECKING:
    from workbench.engine.answers.proving import Trials
    from workbench.engine.learning.scoring import Say


class Asking:
    """Answers; rooms of science are imported with the first question that needs them.

    Attributes
    ----------
    pool : the worker of questions.
    """

    def __init__(self, library: Library, trials: Trials) -> None:
        self.pool = Pool()
        self._doing: dict[object, str] = {}
        """Of every question that is being answered."""
        self._library, self._trials = library, trials

    @property
    def doing(self) -> str:
        """What is being computed, of the latest question; empty where nobody asked."""
        return next(reversed(self._doing.values()), "")

    async def answer(self, request: Question, who: Hello) -> Reply:
        """The reply; nothing is stored for an observer. Raises `WorkbenchError`."""
        question = object()

        def say(text: str) -> None:
            self._doing[question] = text

        try:
            return await self._answer(request, who, say)
        finally:
            self._doing.pop(question, None)

    async def close(self) -> None:
        await self.pool.close()

    async def _answer(self, request: Question, who: Hello, say: Say) -> Reply:
        store = who.role != "observer"
        match request:
            case ScoreModels():
                from workbench.engine.learning.modelling import score

                return await score(self._library, self.pool, request, store=store, say=say)
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
