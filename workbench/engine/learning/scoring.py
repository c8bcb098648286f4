"""Models on the samples of a session, cross-validated: all of them, some by name, a short list."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from workbench import plugins
from workbench.descriptors.sla_text import kpi_name
from workbench.domain import kpis
from workbench.domain.campaign import Campaign
from workbench.domain.errors import PluginError, SessionError, UsageError
from workbench.domain.profiles import ModelScore, ModelVersion, ParameterInfluence
from workbench.domain.projection import SessionView
from workbench.domain.samples import Sample
from workbench.engine.learning.pool import Pool, WorkerLost
from workbench.engine.learning.refitting import digest
from workbench.engine.learning.remaining import doing, expect, skip
from workbench.engine.sessions.finishing import to_the_end
from workbench.engine.sessions.library import Library

if TYPE_CHECKING:  # their imports take time, and most questions are about something else
    from workbench.models.crossvalidation import Row
    from workbench.models.table import Table

P = ParamSpec("P")
T = TypeVar("T")

FOLDS = 5

SHORT = "short"
"""Stands for the short list where methods are named."""

SHORT_LIST = ("interpolation", "pooled", "gaussian-process", "k-nearest")
"""What is compared where nobody asked for a table: on the recordings one of these or the catalogue
was the best, or as good, and all of them take seconds where the others take minutes."""

PER_CONFIGURATION = "catalogue"
"""On the short list up to `FEW_CONFIGURATIONS`: it fits each by itself, which takes time."""
FEW_CONFIGURATIONS = 30

LOSS_CEILING_PCT = 30.0
TIME_CEILING_MS = 20_000.0
"""As in the papers, where the campaign says nothing of a KPI: more loss or a longer time is no
better known than as beyond all use (METHOD.md 8)."""

FEW_SAMPLES = 400
"""A short list is compared on so many samples at most, whole points drawn by a seed."""

PATIENCE_S = 900.0
"""Seconds after which a model that is fitted is taken to hang; on 14,400 samples none takes so
long, and a worker that hangs would hold up everybody's next question."""

By = Literal["point", "configuration"]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Material:
    """What a session gives to learn one KPI from; the samples in the order they were taken."""

    session: str
    view: SessionView
    campaign: Campaign
    kpi: str
    samples: tuple[Sample, ...]

    def of(self, target: str) -> tuple[Sample, ...]:
        """What a stand-alone profile learns from: trials (canaries, ...) are left out."""
        return tuple(s for s in self.samples if s.point.target == target and s.purpose == "profile")

    def targets(self, wanted: str | None) -> tuple[str, ...]:
        """The target that is wanted, or all. Raises `UsageError` if there is none of that name."""
        known = tuple(plan.target.name for plan in self.campaign.targets)
        if wanted is None:
            return known
        if wanted not in known:
            raise UsageError(
                f"has no target {wanted!r}",
                where=self.session,
                remedy=f"Choose one of: {', '.join(known)}",
            )
        return (wanted,)

    def model(self, target: str) -> ModelVersion | None:
        return self.view.model(target, self.kpi)


async def material(library: Library, session: str, kpi: str | None) -> Material:
    """All samples of a session; its campaign's KPI where none is named.

    What several hosts of a fleet measured is as the first of them would have it.

    Raises `SessionError`, `UsageError` for a name that is no KPI, or `DataError` where a host has
    no factor over the first, or samples are of no host of its fleet.
    """
    view, samples = await to_the_end(_everything(library, session))
    return material_of(session, view, samples, kpi)


def material_of(
    session: str, view: SessionView, samples: Sequence[Sample], kpi: str | None
) -> Material:
    """As `material`, of what was read already. Raises as it does."""
    campaign = view.campaign
    if campaign is None:
        raise SessionError("does not hold its campaign", where=session)
    of_site = {column for sample in samples for column in sample.kpis} - kpis.known().keys()
    try:
        name = kpi if kpi in of_site else kpi_name(kpi) if kpi else campaign.kpi
    except ValueError as error:
        raise UsageError(str(error), where="kpi") from None
    if view.shards:
        from workbench.models.host_terms import on_one_host

        carried = on_one_host(samples, view.shards, view.hosts_compared, campaign.kpi)
        return Material(session, view, campaign, name, carried)
    return Material(session, view, campaign, name, tuple(samples))


async def _everything(library: Library, session: str) -> tuple[SessionView, tuple[Sample, ...]]:
    async with library.borrow(session) as channel:
        return channel.snapshot(), await channel.file.all_samples()


def all_methods(wanted: Sequence[str]) -> tuple[str, ...]:
    """Names of models, all where none is wanted. Raises `UsageError` for one that is not there."""
    known = plugins.names("models")
    for name in wanted:
        if name not in (SHORT, *known):
            raise UsageError(
                f"no model is called {name!r}",
                where="methods",
                remedy=f"Choose among: {SHORT}, {', '.join(known)}",
            )
    return tuple(wanted) or known


def short_list(campaign: Campaign, target: str, *besides: str) -> tuple[str, ...]:
    """The candidates for a target's model: cheap ones, and what the campaign samples with."""
    configurations = len(campaign.configurations(campaign.target_plan(target)))
    costly = (PER_CONFIGURATION,) if configurations <= FEW_CONFIGURATIONS else ()
    named = (*SHORT_LIST, *costly, campaign.sampling.model, *besides)
    known = plugins.names("models")
    return tuple(name for name in dict.fromkeys(named) if name in known)


async def compared(
    pool: Pool,
    table: Table,
    methods: Sequence[str],
    by: By = "point",
    most: int | None = None,
    say: Say = lambda _: None,
) -> list[Row]:
    """One row for each method, the best marked. A call of a worker each: others come between.

    What was scored before on the same samples is known; what failed is tried again.
    """
    from workbench.models.crossvalidation import Row, best_marked

    expect("row_of", len(methods))

    async def row(number: int, method: str) -> Row:
        key = digest(table, method, {"by": by, "most": most or 0})
        known = pool.known.get(key)
        if isinstance(known, Row):
            skip("row_of")
            return known
        async with pool.lane() as lane:
            say(f"{table.target}, {table.kpi}: {method} ({number} of {len(methods)})")
            try:
                found = await patiently(lane, row_of, table, method, by, most)
            except (PluginError, WorkerLost) as error:
                found = Row(table.target, table.kpi, method, None, str(error))
        if found.scores is not None:
            pool.remember(key, found)
        return found

    rows = await together(row(number, name) for number, name in enumerate(methods, start=1))
    return best_marked(rows)


async def patiently(pool: Pool, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`work` in the worker; one that hangs is ended. Raises `PluginError` then."""
    try:
        with doing(work.__name__):
            return await asyncio.wait_for(pool.run(work, *args, **kwargs), PATIENCE_S)
    except TimeoutError:
        pool.kill()
        raise PluginError(f"has not answered for {PATIENCE_S:g} s") from None


async def together(all_of_them: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What each comes to, in their order. The first that fails ends the others, and is raised."""
    tasks = [asyncio.ensure_future(one) for one in all_of_them]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def scores_of(rows: Sequence[Row], samples: int) -> tuple[ModelScore, ...]:
    """Rows as they are told and stored, the best first, failed ones last."""
    scores = (
        ModelScore(row.target, row.kpi, row.method, samples, trouble=row.trouble)
        if row.scores is None
        else ModelScore(
            row.target,
            row.kpi,
            row.method,
            row.scores.n,
            row.scores.rmse,
            row.scores.mae,
            row.scores.mad,
            row.scores.mape,
            row.scores.log_error,
            row.scores.coverage,
            row.scores.width,
            row.scores.fit_s,
            row.best,
            rmse_trimmed=row.scores.rmse_trimmed,
        )
        for row in rows
    )
    return tuple(
        sorted(scores, key=lambda s: (not s.best, s.log_error is None, s.log_error or 0.0))
    )


def usable(samples: Sequence[Sample], kpi: str) -> tuple[str, ...]:
    """Ids of the samples that a model of that KPI learns from."""
    from workbench.models.selection import stated

    return tuple(sample.id for sample in samples if stated(sample, kpi))


def ceiling_of(campaign: Campaign, samples: Sequence[Sample], kpi: str) -> float:
    """Above it a KPI counts as it: the campaign's for its own KPI, the papers' for other losses
    and times; of what is left every figure counts.

    The samples are of one target.
    """
    from workbench.models.selection import stated

    if kpi == campaign.kpi:
        return campaign.kpi_max
    if kpi == kpis.LOSS:
        return LOSS_CEILING_PCT
    if kpis.of(kpi).unit == "ms":
        return TIME_CEILING_MS
    return max((e.value for s in samples if (e := stated(s, kpi))), default=1.0)


# ------------------------------------------------------------------- in the worker


def table_for(campaign: Campaign, target: str, samples: Sequence[Sample], kpi: str) -> Table:
    """What every model learns from. Raises `DataError`: the sentence says what is missing."""
    from workbench.models.estimator import must_teach
    from workbench.models.scales import log_kpi
    from workbench.models.table import part_said, table_of

    table = table_of(
        target,
        samples,
        kpi=kpi,
        kpi_max=ceiling_of(campaign, samples, kpi),
        primary=campaign.target_plan(target).primary,
    )
    part = part_said(target, samples, kpi)
    must_teach(table.X, table.y, f"{target}, {kpi}", log_kpi(kpi, 0.0), part)
    return table


def row_of(table: Table, method: str, by: By, most: int | None) -> Row:
    """One method, cross-validated; whatever it raises is the row's trouble."""
    from workbench.models.crossvalidation import Row, compare_models

    try:
        factory = plugins.load("models", method)
    except PluginError as error:
        return Row(table.target, table.kpi, method, None, str(error))
    if most is not None and len(table) > most:
        table = thinned(table, most)
    return compare_models({method: factory}, table, FOLDS, by, timer=time.perf_counter)[0]


def thinned(table: Table, most: int) -> Table:
    """As many whole points as have at most that many samples; the same ones every time."""
    import numpy as np

    counts = np.bincount(table.points)
    order = np.random.default_rng(0).permutation(len(counts))
    taken = order[np.cumsum(counts[order]) <= most]
    return table.take(np.isin(table.points, taken))


def influence_in(
    campaign: Campaign, target: str, samples: Sequence[Sample], seed: int
) -> ParameterInfluence:
    """What moves the KPIs of a target: on its edges as in paper B, on all its valid samples where
    these were not all measured. Raises `DataError`."""
    from workbench.engine.learning.sampler_worker import space_of
    from workbench.sampling.influence import EDGES, edge_samples, influence_of

    wanted = tuple(dict.fromkeys((campaign.kpi, *(kpi.name for kpi in kpis.ranked()))))
    space = space_of(campaign, target, seed)
    plan = campaign.sampling
    fraction = plan.options.get("edges", EDGES) if plan.method == "heuristic" else EDGES
    corners = edge_samples(space, samples, int(fraction))
    found = influence_of(space, corners or samples, wanted)
    return ParameterInfluence(
        target,
        found.parameters,
        found.kpis,
        found.weights,
        sum(s.valid for s in corners or samples),
        "edges" if corners else "all",
    )
