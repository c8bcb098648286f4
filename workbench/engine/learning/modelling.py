"""The model of a target: chosen by cross-validation, fitted to all samples, stored with a version.

A model in force is one that was fitted to just the samples that the session holds. Where there is
none, whoever asks first has it made; where samples have come since, it gets the next version.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.domain.errors import DataError, PluginError, SessionError, UsageError, WorkbenchError
from workbench.domain.events import Fact, InfluenceMeasured, TargetModelled
from workbench.domain.profiles import (
    MethodFormulas,
    ModelScore,
    ModelVersion,
    ParameterInfluence,
    TargetModel,
)
from workbench.domain.projection import SessionView
from workbench.domain.questions import ModelsScored, ScoreModels
from workbench.domain.samples import Sample
from workbench.engine.learning.pool import Pool, WorkerLost
from workbench.engine.learning.refitting import StoredFit, StoredModel, fit_to_all, formulas_in
from workbench.engine.learning.scoring import (
    FEW_SAMPLES,
    SHORT,
    Material,
    Say,
    all_methods,
    ceiling_of,
    compared,
    influence_in,
    material,
    patiently,
    scores_of,
    short_list,
    table_for,
    usable,
)
from workbench.engine.sessions.library import Library
from workbench.engine.sessions.recording import not_stored, recorded

if TYPE_CHECKING:
    from workbench.models.crossvalidation import Row
    from workbench.models.table import Table

AUTO = "auto"
"""What a campaign says that leaves the choice to cross-validation."""


async def model_of(
    library: Library,
    pool: Pool,
    session: str,
    target: str,
    kpi: str | None = None,
    *,
    store: bool = True,
) -> StoredModel:
    """The model in force of a target's KPI, made and stored first where there is none.

    Candidates are the short list of `engine.scoring` and the method that was in force before; a
    campaign that names a `profile_model` gets that one, unless it fails.

    Parameters
    ----------
    kpi : the campaign's where it is None.
    store : False for who may only look.

    Raises
    ------
    UsageError
        If there is no such target or KPI.
    DataError
        If the samples cannot make a table, or no candidate can be fitted to them.
    """
    async with library.modelling[session, target]:
        given = await material(library, session, kpi)
        given.targets(target)
        before = given.model(target)
        if before is not None:
            current = await _stored(library, given, before)
            if current.model.sample_ids == usable(given.of(target), given.kpi):
                return current
        table = await pool.run(table_for, given.campaign, target, given.of(target), given.kpi)
        named, troubles = given.campaign.profile_model, list[str]()
        rows = [] if named == AUTO else await compared(pool, table, (named,))
        troubles += [row.trouble for row in rows if row.trouble]
        own = given.of(target)
        chosen = await _chosen(pool, table, own, rows, troubles)
        note = ""
        if chosen is None:
            if named != AUTO:
                note = f"the campaign's model {named!r} fails ({troubles[0]}), others were compared"
            besides = (before.method,) if before is not None else ()
            methods = short_list(given.campaign, target, *besides)
            rows = await compared(pool, table, methods, most=FEW_SAMPLES)
            chosen = await _chosen(pool, table, own, rows, troubles)
        if chosen is None:
            raise DataError(
                f"no model can be fitted: {'; '.join(troubles)}", where=f"{target}, {given.kpi}"
            )
        found = _Found(rows, *chosen, note)
        return await _kept(library, given, target, found, store=store)


async def model_version(
    library: Library, session: str, target: str, kpi: str | None, version: int
) -> StoredModel:
    """A stored version of a target's model, whatever was measured since.

    `kpi` is the campaign's where it is None. Raises `UsageError` where there is no such target,
    KPI or version.
    """
    async with library.modelling[session, target]:
        given = await material(library, session, kpi)
        given.targets(target)
        return await _stored(library, given, _named_version(given, target, version))


async def score(
    library: Library,
    pool: Pool,
    request: ScoreModels,
    *,
    store: bool = True,
    say: Say = lambda _: None,
) -> ModelsScored:
    """Scores by target, the best method first; models and influences that are new are stored.

    Raises
    ------
    UsageError
        If there is no such target, KPI or method.
    DataError
        If no target's samples can make a table; the sentence says what is missing.
    """
    given = await material(library, request.session, request.kpi)
    methods = all_methods(request.methods)
    wanted = given.targets(request.target)
    scores: list[ModelScore] = []
    influences: list[ParameterInfluence] = []
    formulas: list[MethodFormulas] = []
    notes: list[str] = []
    refused: DataError | None = None
    for target in wanted:
        own = given.of(target)
        if not own and request.target is None:
            continue
        try:
            table = await pool.run(table_for, given.campaign, target, own, given.kpi)
        except DataError as error:
            refused = error
            scores.append(ModelScore(target, given.kpi, "all", len(own), trouble=str(error)))
            continue
        listed = short_list(given.campaign, target)
        names = dict.fromkeys(n for m in methods for n in (listed if m == SHORT else (m,)))
        rows = await compared(pool, table, tuple(names), request.by, say=say)
        scores += scores_of(rows, len(table))
        scored = tuple(row.method for row in rows if row.scores is not None)
        if scored:
            try:
                formulas += await patiently(pool, formulas_in, table, scored, own)
            except (PluginError, WorkerLost) as error:
                notes.append(f"{target}: what the methods come to cannot be told: {error}")
        if request.by == "point" and store:
            notes.append(await _settle(library, pool, given, target, table, rows))
        try:
            influence = await pool.run(influence_in, given.campaign, target, own, given.view.seed)
        except DataError as error:
            notes.append(str(error))
            continue
        influences.append(influence)
        if store:
            notes.append(await _influence_kept(library, given.session, influence))
    if not scores:
        raise DataError("has no samples", where=request.session, remedy="Measure it first")
    if refused is not None and all(s.trouble for s in scores):
        raise refused  # none of them can be scored
    async with library.borrow(given.session) as channel:
        found = [channel.view.model(target, given.kpi) for target in wanted]
    return ModelsScored(
        tuple(scores),
        tuple(model for model in found if model is not None),
        tuple(influences),
        tuple(dict.fromkeys(note for note in (*notes, *(f.trouble for f in formulas)) if note)),
        tuple(formulas),
    )


async def _settle(
    library: Library,
    pool: Pool,
    given: Material,
    target: str,
    table: Table,
    rows: Sequence[Row],
) -> str:
    """Put the best of a comparison in force, if it says enough; why it does not, as a sentence."""
    from workbench.models.crossvalidation import best_of

    async with library.modelling[given.session, target]:
        async with library.borrow(given.session) as channel:
            before = channel.view.model(target, given.kpi)
        current = None if before is None else (await _stored(library, given, before)).model
        if current is not None and current.sample_ids != table.sample_ids:
            if set(current.sample_ids) > set(table.sample_ids):
                return ""  # while this was compared, others were measured and modelled
            current = None
        named = given.campaign.profile_model
        needed = {named} if named != AUTO else set(short_list(given.campaign, target))
        if current is not None:
            needed.add(current.method)
        if left_out := needed - {row.method for row in rows}:
            return (
                f"{target}: its model stays as it is, since {', '.join(sorted(left_out))} "
                f"{'was' if len(left_out) == 1 else 'were'} not compared"
            )
        own = [row for row in rows if row.method == named and row.scores is not None]
        candidates = own or rows
        if current is not None and best_of(candidates) == current.method:
            return ""
        try:
            await library.resumable(given.session)
        except (SessionError, UsageError) as error:
            return not_stored(error)
        troubles: list[str] = []
        chosen = await _chosen(pool, table, given.of(target), candidates, troubles)
        if chosen is None:
            return f"{target}: no model can be fitted: {'; '.join(troubles)}"
        found = _Found(rows, *chosen, "; ".join(troubles))
        return (await _kept(library, given, target, found, store=True)).unstored


async def _chosen(
    pool: Pool, table: Table, samples: Sequence[Sample], rows: Sequence[Row], troubles: list[str]
) -> tuple[str, StoredFit] | None:
    """The best method that can be fitted to everything, and its fit; `troubles` of the others."""
    from workbench.models.crossvalidation import best_of

    left = [row for row in rows if row.scores is not None]
    while (method := best_of(left)) is not None:
        try:
            return method, await patiently(pool, fit_to_all, table, method, samples)
        except WorkbenchError as error:
            troubles.append(str(error))
            left = [row for row in left if row.method != method]
    return None


@dataclass(frozen=True)
class _Found:
    """What a comparison came to: its rows, the method that was chosen and its fit, and why."""

    rows: Sequence[Row]
    method: str
    fit: StoredFit
    note: str


async def _kept(
    library: Library, given: Material, target: str, found: _Found, *, store: bool
) -> StoredModel:
    """A fit as the next version, stored where the session lets it be."""
    method, fit = found.method, found.fit
    own = given.of(target)
    ids = usable(own, given.kpi)
    scores = scores_of(found.rows, len(ids))

    def modelled(version: int) -> TargetModelled:
        model = TargetModel(
            target,
            given.kpi,
            version,
            "profile",
            method,
            fit.parameters,
            ceiling_of(given.campaign, own, given.kpi),
            ids,
            fit.coefficients,
            fit.coefficient_count,
            next(s for s in scores if s.method == method),
            fit.libraries,
            fit.formulas,
        )
        return TargetModelled(model, scores, fit.cpu_s, found.note)

    def next_one(view: SessionView) -> Fact:
        return modelled(view.next_version(target, given.kpi))

    try:
        if not store:
            raise UsageError("observers may watch, not command", where=given.session)
        fact = await recorded(library, given.session, next_one)
        assert isinstance(fact, TargetModelled)
        model, unstored = fact.model, ""
    except (SessionError, UsageError) as error:
        model, unstored = modelled(0).model, not_stored(error)
    return StoredModel(given.campaign, model, _by_id(given, ids), unstored)


async def _influence_kept(library: Library, session: str, influence: ParameterInfluence) -> str:
    """Store an influence that rests on other samples than the stored one; why not, if it fails."""

    def same(one: ParameterInfluence) -> bool:
        # Samples that somebody rejects or takes back may leave their number as it was; shares that
        # differ by less are another processor's rounding.
        return replace(one, weights=influence.weights) == influence and all(
            math.isclose(a, b, abs_tol=1e-6)
            for mine, theirs in zip(one.weights, influence.weights, strict=True)
            for a, b in zip(mine, theirs, strict=True)
        )

    def new(view: SessionView) -> Fact | None:
        return None if any(map(same, view.influences)) else InfluenceMeasured(influence)

    try:
        await recorded(library, session, new)
    except (SessionError, UsageError) as error:
        return not_stored(error)
    return ""


async def _stored(library: Library, given: Material, version: ModelVersion) -> StoredModel:
    """The whole of a version, from its event."""
    async with library.borrow(given.session) as channel:
        (event,) = await channel.file.events(version.seq - 1, 1)
    assert isinstance(event.fact, TargetModelled)
    model = event.fact.model
    return StoredModel(given.campaign, model, _by_id(given, model.sample_ids))


def _named_version(given: Material, target: str, version: int) -> ModelVersion:
    own = [m for m in given.view.models if (m.target, m.kpi) == (target, given.kpi)]
    for model in own:
        if model.version == version:
            return model
    known = ", ".join(str(model.version) for model in own) or "none"
    raise UsageError(
        f"has no version {version} of {target}, {given.kpi}",
        where=given.session,
        remedy=f"Stored are: {known}",
    )


def _by_id(given: Material, ids: Sequence[str]) -> tuple[Sample, ...]:
    known = {sample.id: sample for sample in given.samples}
    return tuple(known[id] for id in ids if id in known)
