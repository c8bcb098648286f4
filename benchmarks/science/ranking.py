"""Paper A's Table 3 on the recordings: every model on every target, cross-validated.

The figures are those that `workbench models SESSION` prints: the table, the folds and the scores
are made by the same functions of `engine/learning/scoring.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import median

import msgspec

from science import judging, recordings, tables
from science.stored import Store, version
from workbench.domain.events import SessionCreated
from workbench.engine.learning.scoring import row_of, table_for
from workbench.store.recordings import read_whole

KPIS = ("p95_ms", "mean_ms")
THEIRS = {
    "interpolation": 725,
    "multi-lasso": 755,
    "lasso3": 1220,
    "neural-network": 1911,
    "gaussian-process-a": 1978,
    "elastic-net3": 3670,
}
"""Paper A, Table 3, last row: RMSE of p95 in ms, averaged over eight topologies."""


class Ranked(msgspec.Struct, frozen=True):
    """One method on one KPI of one target of a bundle; infinite where it failed."""

    target: str
    rmse: float
    rmse_trimmed: float
    log_error: float
    coverage: float
    width: float
    trouble: str = ""


def ranked(bundle: str, target: str, kpi: str, model: str) -> Ranked:
    events, measurements = read_whole(recordings.FOLDER / bundle)
    campaign = next(e.fact.campaign for e in events if isinstance(e.fact, SessionCreated))
    samples = [
        m.sample
        for m in measurements
        if m.sample.point.target == target and m.sample.purpose == "profile"
    ]
    row = row_of(table_for(campaign, target, samples, kpi), model, "point", None)
    if row.scores is None:
        return Ranked(target, math.inf, math.inf, math.inf, math.nan, math.nan, row.trouble[:200])
    found = row.scores
    nothing = math.nan
    return Ranked(
        target,
        found.rmse,
        found.rmse_trimmed,
        found.log_error,
        nothing if found.coverage is None else found.coverage,
        nothing if found.width is None else found.width,
    )


def kept(store: Store, job: tuple[str, str, str, str]) -> Ranked:
    """A score, from the store where the same versions made it."""
    bundle, target, kpi, model = job
    code = version(judging.model_module(model), "workbench.models.crossvalidation")
    name = f"{bundle}:{target}:{kpi}"
    key = f"ranking-trimmed/{name}/{model}/{recordings.version_of(name)}.{code}"
    for known in store.lines(key, Ranked):
        return known
    found = ranked(*job)
    store.add(key, found)
    return found


def report(store: Store, workers: int) -> str:
    """A table for each recording and KPI, the methods that do best in the median first."""
    parts = []
    for bundle in recordings.bundles():
        for kpi in KPIS:
            targets = [p.target for p in recordings.problems_of(bundle).values() if p.kpi == kpi]
            if targets:
                parts += _table(store, workers, bundle, targets, kpi)
    return "\n\n".join(parts)


def _table(
    store: Store, workers: int, bundle: str, targets: Sequence[str], kpi: str
) -> tuple[str, str]:
    models = judging.models()
    jobs = [(bundle, target, kpi, model) for model in models for target in targets]
    with ProcessPoolExecutor(workers) as executor:
        found = dict(zip(jobs, executor.map(partial(kept, store), jobs), strict=True))
    own = {m: [found[bundle, t, kpi, m] for t in targets] for m in models}
    order = sorted(models, key=lambda m: median(one.log_error for one in own[m]))
    rows = [
        [
            model,
            *(_cell(one) for one in own[model]),
            tables.number(sum(one.rmse for one in own[model]) / len(targets)),
            str(THEIRS.get(model, "")),
            _share(median(one.coverage for one in own[model])),
        ]
        for model in order
    ]
    head = ["method", *targets, "mean RMSE", "paper A's, ms", "coverage"]
    return (
        f"`{bundle}`, {kpi}: RMSE in ms, the same without the largest tenth of the errors "
        "(median |log error|), 5-fold cross-validation by point; the "
        "smallest median log error first:",
        tables.table(head, rows),
    )


def _cell(one: Ranked) -> str:
    if one.trouble:
        return "failed"
    rmse, trimmed = tables.number(one.rmse), tables.number(one.rmse_trimmed)
    return f"{rmse}, {trimmed} ({100 * one.log_error:.1f} %)"


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.0f} %"
