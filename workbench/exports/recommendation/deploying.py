"""What the formats that deploy have in common: a recommendation that can be deployed."""

from __future__ import annotations

from workbench.domain.errors import WorkbenchError
from workbench.domain.recommendations import Recommendation
from workbench.exports.recommendation.base import Context
from workbench.exports.recommendation.functions import FunctionAllocation, functions_of
from workbench.exports.recommendation.provenance import sla_texts


def to_deploy(recommendation: Recommendation, context: Context) -> tuple[FunctionAllocation, ...]:
    """What is to be deployed. Raises `WorkbenchError` where nothing meets the SLA."""
    chosen = recommendation.chosen
    if not recommendation.met or chosen is None:
        raise WorkbenchError(
            f"there is nothing to deploy: no allocation meets {sla_texts(recommendation)} "
            f"with a confidence of {recommendation.confidence:g}",
            where=f"recommendation {recommendation.id} of {recommendation.session}",
            remedy="Export it as html or md to see what comes closest",
        )
    return functions_of(chosen.deployment, context)
