"""A stored model held against samples that it has not seen, and its coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench import plugins
from workbench.domain.errors import DataError, UsageError
from workbench.domain.parameters import PrimaryWorkload
from workbench.domain.profiles import Residual
from workbench.domain.questions import ChainQuery, ExplainModel, ModelExplained
from workbench.domain.retraining import ChainModelVersion
from workbench.domain.samples import Sample
from workbench.engine.answers.chain_inputs import Basis, compose, gather, subject_of
from workbench.engine.answers.chain_models import stored_method
from workbench.engine.learning.modelling import model_version
from workbench.engine.learning.pool import Pool
from workbench.engine.learning.refitting import StoredModel, formulas_of, load
from workbench.engine.learning.scoring import FEW_SAMPLES, FOLDS, Say, patiently, thinned
from workbench.engine.sessions.library import Library

if TYPE_CHECKING:  # their imports take time, and the engine only hands these values on
    from workbench.models.base import Floats
    from workbench.models.table import Table

MOST_FORMULAS = 60
"""Of one answer: two regions for each of some thirty configurations."""


async def explain_model(
    library: Library, pool: Pool, request: ExplainModel, *, say: Say = lambda _: None
) -> ModelExplained:
    """Residuals and coefficients of a version. Nothing is stored.

    Raises
    ------
    UsageError
        If there is no such target, KPI or version.
    WorkbenchError
        If it cannot be fitted any more.
    """
    where = f"{request.target}, {request.kpi}: model {request.version}"
    if not request.retrained:
        stored = await model_version(
            library, request.session, request.target, request.kpi, request.version
        )
        say(f"{where}: held-out predictions of {stored.model.method}")
        return await patiently(pool, explained, stored)
    subject = await subject_of(library, ChainQuery(request.session, request.target, request.kpi))
    models = subject.own.view.chain_model(request.target, request.kpi)
    versions = models.versions if models is not None else ()
    if not 0 < request.version <= len(versions):
        known = ", ".join(str(n) for n in range(1, len(versions) + 1)) or "none"
        raise UsageError(
            f"has no retrained version {request.version}",
            where=f"{request.target}, {request.kpi}",
            remedy=f"Stored are: {known}",
        )
    question = ChainQuery(request.session, request.target, request.kpi)
    basis = await gather(library, pool, subject, question, store=False, say=say)
    own = tuple(s for s in subject.own.samples if s.point.target == subject.chain.name)
    say(f"{where}: held-out predictions")
    version = versions[request.version - 1]
    return await patiently(pool, explained_chain, basis, version, own, subject.primary)


# ------------------------------------------------------------------- in the worker


def explained(stored: StoredModel) -> ModelExplained:
    """A model of a target's own samples. Raises `WorkbenchError` if it cannot be fitted."""
    from workbench.models.crossvalidation import held_out

    model = stored.model
    loaded = load(stored)
    fitted, table = loaded.forecaster.model, loaded.forecaster.table
    notes = [loaded.warning] if loaded.warning else []
    by_id = {sample.id: sample for sample in stored.samples}
    judged = table
    if len(table) > FEW_SAMPLES:
        judged = thinned(table, FEW_SAMPLES)
        notes.append(f"Residuals are of {len(judged)} of {len(table)} samples.")
    residuals: tuple[Residual, ...] = ()
    try:
        said = held_out(plugins.load("models", model.method), judged, FOLDS)
        residuals = _residuals(judged, said.predicted, by_id)
    except DataError as error:
        notes.append(f"There are no residuals. {error}")
    formulas = formulas_of(fitted, table, stored.samples)
    if not formulas:
        notes.append(f"{model.method} is no formula: it has no coefficients to show.")
    elif len(formulas) > MOST_FORMULAS:
        notes.append(f"Of {len(formulas)} formulas the first {MOST_FORMULAS} are shown.")
    return ModelExplained(
        model.target,
        model.kpi,
        model.version,
        model.method,
        f"in {FOLDS} folds",
        residuals,
        formulas[:MOST_FORMULAS],
        tuple(notes),
    )


def explained_chain(
    basis: Basis, version: ChainModelVersion, samples: Sequence[Sample], primary: PrimaryWorkload
) -> ModelExplained:
    """An accepted version of a chain; its terms are in its proposal. Raises as `compose` does."""
    from workbench.chains.alignment import measured
    from workbench.chains.proposal import left_out

    proposal = version.proposal
    prediction = compose(basis).by(basis.rule)
    method = stored_method(proposal.model, prediction)
    by_id = {sample.id: sample for sample in samples}
    own = [by_id[name] for name in proposal.model.sample_ids if name in by_id]
    seen = measured(proposal.chain, own, kpi=proposal.kpi, kpi_max=basis.kpi_max, primary=primary)
    notes: list[str] = []
    residuals: tuple[Residual, ...] = ()
    try:
        residuals = _residuals(seen.table, left_out(seen, method), by_id)
    except DataError as error:
        notes.append(f"There are no residuals. {error}")
    return ModelExplained(
        proposal.chain,
        proposal.kpi,
        version.version,
        proposal.model.method,
        "load by load",
        residuals,
        (),
        tuple(notes),
    )


def _residuals(table: Table, predicted: Floats, by_id: dict[str, Sample]) -> tuple[Residual, ...]:
    return tuple(
        Residual(
            name,
            by_id[name].point.configuration,
            by_id[name].point.wl,
            math.exp(float(y)),
            math.exp(float(said)),
        )
        for name, y, said in zip(table.sample_ids, table.y, predicted, strict=True)
    )
