"""Questions to a session's models, which take seconds (`domain.questions`).

Rooms of science are imported with the first question that needs them.
"""

from __future__ import annotations

from workbench.domain import questions as asked
from workbench.domain.messages import Done
from workbench.engine.handlers.registry import Asker, Handlers, Services

handles = Handlers()


@handles(asked.ScoreModels, job="")
async def score_models(s: Services, request: asked.ScoreModels, asker: Asker) -> asked.ModelsScored:
    from workbench.engine.learning.modelling import score

    return await score(s.library, s.jobs.pool, request, store=asker.stores, say=asker.say)


@handles(asked.Diagnose, job="")
async def diagnose(s: Services, request: asked.Diagnose, asker: Asker) -> asked.Diagnosed:
    from workbench.engine.answers import diagnosing

    return await diagnosing.diagnose(s.library, request, say=asker.say)


@handles(asked.PredictChain, job="predicted")
async def predict_chain(
    s: Services, request: asked.PredictChain, asker: Asker
) -> asked.ChainPredicted:
    from workbench.engine.answers import predicting

    s.jobs.pool.warm()  # while the session is read
    return await predicting.predict_chain(
        s.library, s.jobs.pool, request, store=asker.stores, say=asker.say
    )


@handles(asked.CompareChain, job="compared_with")
async def compare_chain(
    s: Services, request: asked.CompareChain, asker: Asker
) -> asked.ChainCompared:
    from workbench.engine.answers import chain_comparing

    s.jobs.pool.warm()
    return await chain_comparing.compare_chain(
        s.library, s.jobs.pool, request, store=asker.stores, say=asker.say
    )


@handles(asked.ChartChain, job="charted_by")
async def chart_chain(s: Services, request: asked.ChartChain, asker: Asker) -> asked.ChainCharted:
    from workbench.engine.answers import chain_charting

    s.jobs.pool.warm()
    return await chain_charting.chart_chain(
        s.library, s.jobs.pool, request, store=asker.stores, say=asker.say
    )


@handles(asked.Recommend, job="judge", measures=asked.measures)
async def recommend(s: Services, request: asked.Recommend, asker: Asker) -> asked.Recommended:
    from workbench.engine.answers import recommending

    s.jobs.pool.warm()
    return await recommending.recommend(
        s.library, s.jobs.pool, s.queue.trials, request, store=asker.stores, say=asker.say
    )


@handles(asked.VerifyRecommendation, job="")
async def verify(
    s: Services, request: asked.VerifyRecommendation, asker: Asker
) -> asked.Recommended:
    from workbench.engine.answers import recommending

    s.jobs.pool.warm()
    return await recommending.verify(
        s.library, s.jobs.pool, s.queue.trials, request, by=request.by, say=asker.say
    )


@handles(asked.RetrainChain, job="proposed", measures=asked.measures)
async def retrain(s: Services, request: asked.RetrainChain, asker: Asker) -> asked.ChainRetrained:
    from workbench.engine.answers import retraining

    return await retraining.retrain(
        s.library, s.jobs.pool, s.queue.trials, request, by=request.by, say=asker.say
    )


@handles(asked.PlanCanary, job="")
async def plan_canary(s: Services, request: asked.PlanCanary, asker: Asker) -> asked.CanaryPlanned:
    from workbench.engine.answers import canary_asking

    return await canary_asking.plan_canary(s.library, s.jobs.pool, request)


@handles(asked.DecideProposal, job="")
async def decide_proposal(s: Services, request: asked.DecideProposal, asker: Asker) -> Done:
    from workbench.engine.answers import retraining

    return await retraining.decide(s.library, request, by=request.by)


@handles(asked.ExplainModel, job="")
async def explain_model(
    s: Services, request: asked.ExplainModel, asker: Asker
) -> asked.ModelExplained:
    from workbench.engine.answers import explaining

    return await explaining.explain_model(s.library, s.jobs.pool, request, say=asker.say)


@handles(asked.RollBackModel, job="")
async def roll_back(s: Services, request: asked.RollBackModel, asker: Asker) -> Done:
    from workbench.engine.answers import retraining

    return await retraining.roll_back(s.library, request, by=request.by)
