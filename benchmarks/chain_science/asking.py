"""A recommendation as the engine makes it, without an engine: same models, same judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.domain.campaign import Campaign
from workbench.domain.errors import WorkbenchError
from workbench.domain.parameters import Sla
from workbench.domain.profiles import ModelScore, TargetModel
from workbench.domain.samples import Sample
from workbench.domain.topology import Target, Vnf
from workbench.engine.chain_models import Accepted
from workbench.engine.judging import Order, examine, judge
from workbench.engine.parts import Profiles, stand_alone
from workbench.engine.refitting import StoredModel, fit_to_all
from workbench.engine.scoring import (
    FEW_SAMPLES,
    ceiling_of,
    row_of,
    short_list,
    table_for,
    usable,
)
from workbench.models.crossvalidation import best_of
from workbench.sla.recommendation import Answer

Models = dict[tuple[str, str], StoredModel]
"""By target and KPI; filled as questions come, so that a session's models are made once."""


def answered(
    campaign: Campaign,
    chain: Target,
    samples: Sequence[Sample],
    sla: Sla,
    models: Models,
    *,
    confidence: float = 0.95,
    balancers: Mapping[str, Vnf] | None = None,
    accepted: Mapping[str, Accepted] | None = None,
) -> Answer | None:
    """What `recommend` answers; None where it refuses. Allowed is what the campaign profiles."""
    target_of = {target.vnfs[0].template: target.name for target in stand_alone(campaign)}
    spoken_for = {v.name: target_of[v.template] for v in chain.vnfs}
    order = Order(
        campaign,
        chain,
        (sla,),
        confidence,
        spoken_for,
        balancers or {},
        tuple(s for s in samples if s.point.target in set(spoken_for.values())),
        "vcpu-hours",
        None,
        accepted=accepted or {},
    )
    try:
        examined = examine(order)
        targets = tuple(plan.target for plan in order.plans)
        made = tuple(
            _model(campaign, target.name, kpi, samples, models)
            for target in targets
            for kpi in examined.kpis
        )
        profiles = Profiles(campaign, targets, order.samples, made, examined.besides)
        return judge(order, examined.question, profiles).answer
    except WorkbenchError:
        return None


def _model(
    campaign: Campaign, target: str, kpi: str, samples: Sequence[Sample], models: Models
) -> StoredModel:
    if (target, kpi) not in models:
        own = [s for s in samples if s.point.target == target]
        table = table_for(campaign, target, own, kpi)
        rows = [row_of(table, m, "point", FEW_SAMPLES) for m in short_list(campaign, target)]
        method = best_of(rows) or rows[0].method
        fit = fit_to_all(table, method)
        ids = usable(own, kpi)
        by_id = {s.id: s for s in own}
        model = TargetModel(
            target,
            kpi,
            1,
            "profile",
            method,
            fit.parameters,
            ceiling_of(campaign, own, kpi),
            ids,
            fit.coefficients,
            fit.coefficient_count,
            ModelScore(target, kpi, method, len(ids)),
            fit.libraries,
        )
        models[target, kpi] = StoredModel(campaign, model, tuple(by_id[i] for i in ids))
    return models[target, kpi]
