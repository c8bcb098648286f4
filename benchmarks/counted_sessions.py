"""`python counted_sessions.py FUNCTION`: models of a KPI from the counters of measured sessions.

By experiment (a configuration in one pass): what is predicted was never seen. Where the session has
competitors (`counted_proxies.yaml`, `counted_packets.yaml`, `counted_nat.yaml`), each is also held
out of training whole. Without a session the rows are those of `results/counted_rows.parquet`, and
the figures are added to `results/counted_tables.json`; `FUNCTION SESSION --keep` puts the rows of a
function there, `--unseen A,B,C` predicts each of these functions by models of the others,
`FUNCTION --explain` tells what moves ours (extra `explain`), and `--publish` writes the tables of
counters-science.md. `FUNCTION SESSION...` alone keeps nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from counted_pages import (
    PAGE,
    HeldOut,
    UsualCoverage,
    competitor_table,
    explained_table,
    model_table,
    published,
    read_results,
    transfer_table,
    write_results,
)
from kept_counters import (
    CEILING_MS,
    KEPT,
    KeptFunction,
    KeptWindow,
    keep,
    read_kept,
    rows_of_kept,
    taken_from,
)

from workbench.cli.counter_explaining import components, explained
from workbench.domain.errors import DataError
from workbench.domain.samples import Measurement
from workbench.models.counter_looks import judged_looks
from workbench.models.counter_models import OwnCounterModel
from workbench.models.counter_rows import without_idle_features
from workbench.models.counter_scores import (
    held_out_models,
    makers_for,
    out_of_group,
    predicted_by,
)
from workbench.models.counter_transfer import of_own_experiments, transferred
from workbench.models.counter_watch import CounterWatch
from workbench.store.session_file import SessionFile

__all__ = ["CEILING_MS", "measurements"]


async def measurements(path: Path) -> list[Measurement]:
    file = await SessionFile.open(path, read_only=True)
    try:
        found: list[Measurement] = []
        while page := await file.measurements(len(found), 50):
            found += page
        return found
    finally:
        await file.close()


def scores(kept: KeptFunction, kpi: str) -> dict[str, Any]:
    """All models by experiment, and the interval of `watch`; shares of 1, times of 1."""
    windows = kept.having(kpi)
    counted = rows_of_kept(windows, kpi)
    rows, dropped = without_idle_features(counted.rows)
    models = {}
    for name, make in makers_for(rows).items():
        off = np.abs(out_of_group(rows, make, 0) / rows.y - 1.0)
        models[name] = {
            "within_5": float(np.mean(off <= 0.05)),
            "median": float(np.median(off)),
            "mean": float(off.mean()),
        }
    watch = CounterWatch(counted.rows)
    return {
        "windows": len(rows.y),
        "seconds": counted.window_s,
        "samples": counted.samples,
        "experiments": rows.group_count,
        "counters": len(rows.features),
        "dropped": len(counted.dropped) + len(dropped),
        "models": models,
        "ours_is": watch.chosen,
        "coverage": watch.score.coverage or 0.0,
        "width": 1.0 + (watch.score.width or 0.0),
    }


def held_out(windows: Sequence[KeptWindow], kpi: str) -> list[HeldOut]:
    """Each competitor of these windows by a model that had not seen it.

    Which counters are learned from is decided without it, too; its windows are looked at as `watch`
    would: with all that was counted in them.
    """
    found = []
    for competitor in sorted({one.beside for one in windows} - {"none"}):
        watch = CounterWatch(
            rows_of_kept([one for one in windows if one.beside != competitor], kpi).rows
        )
        unseen = [one.of(kpi) for one in windows if one.beside == competitor]
        most = CEILING_MS if kpi.endswith("_ms") else math.inf
        judged = judged_looks(
            watch, [one.counted for one in unseen], [min(one.kpi, most) for one in unseen]
        )
        found.append(HeldOut(competitor, judged.rows, judged.missing, judged.outside, judged.held))
    return found


def told(kept: KeptFunction, kpi: str) -> dict[str, Any]:
    """All figures of one KPI, printed as they come."""
    found = scores(kept, kpi)
    print(model_table(kept.name, kpi, found), end="\n\n", flush=True)
    if unseen := held_out(kept.having(kpi), kpi):
        print(competitor_table(unseen, UsualCoverage.of(found)), end="\n\n", flush=True)
    return {**found, "held_out": [asdict(one) for one in unseen]}


def told_unseen(functions: Sequence[KeptFunction]) -> dict[str, Any]:
    """Each of these by models of the others, for the KPIs that all of them have."""
    found: dict[str, Any] = {}
    for kpi in (k for k in functions[0].kpis if all(k in one.kpis for one in functions)):
        rows = of_own_experiments(
            {one.name: rows_of_kept(one.having(kpi), kpi).rows for one in functions}
        )
        for one in functions:
            transfer = asdict(transferred(rows, one.name, 0))
            found.setdefault(one.name, {})[kpi] = transfer
    return found


def told_explained(kept: KeptFunction) -> dict[str, Any]:
    """What moves ours of p95 (of what gets through where there is none), by competitor, and the
    first two principal components."""
    kpi = kept.kpis[-1]
    rows = without_idle_features(rows_of_kept(kept.having(kpi), kpi).rows)[0]
    models = held_out_models(rows, OwnCounterModel, 0)
    off = np.abs(predicted_by(models, rows) / rows.y - 1.0)
    return {
        "rows": kept.fingerprint,
        "kpi": kpi,
        "windows": len(rows.y),
        "mean_error": float(off.mean()),
        "beside": explained(rows, models)["beside"],
        "components": components(rows)[:2],
    }


def of_files(function: str, sessions: Sequence[Path]) -> KeptFunction:
    measured = {path.stem: asyncio.run(measurements(path)) for path in sessions}
    return taken_from(measured, function)


def of_kept(names: Sequence[str], path: Path | None = None) -> list[KeptFunction]:
    """Functions of the file of kept rows. Raises `DataError` for one that it does not have."""
    there = read_kept(path)
    if lacking := [name for name in names if name not in there]:
        raise DataError(
            f"has no rows of {', '.join(lacking)}, but of {', '.join(there) or 'nothing'}",
            where=str(path or KEPT),
            remedy="Add them from a session: counted_sessions.py FUNCTION SESSION --keep",
        )
    return [there[name] for name in names]


def run(given: argparse.Namespace) -> None:
    if given.publish:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(published(page, read_results()), encoding="utf-8")
        return
    if given.unseen:
        functions = of_kept(given.unseen.split(","))
        found = told_unseen(functions)
        print(transfer_table(found))
        prints = {one.name: one.fingerprint for one in functions}
        write_results({"unseen": {"rows": prints, "functions": found}})
        return
    if given.explain:
        (kept,) = of_kept([given.function])
        found = told_explained(kept)
        print(explained_table({kept.name: found}))
        write_results({"explained": {kept.name: found}})
        return
    if given.sessions:
        kept = of_files(given.function, given.sessions)
        if given.keep:
            keep(kept)
            print(f"{len(kept.windows)} windows of {kept.samples} samples of {kept.name} are kept")
            return
    else:
        (kept,) = of_kept([given.function])
    found = {kpi: told(kept, kpi) for kpi in kept.kpis}
    if not given.sessions:
        about = {"rows": kept.fingerprint, "samples": kept.samples, "set_aside": kept.set_aside}
        write_results({"functions": {kept.name: {**about, "kpis": found}}})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("function", nargs="?", default="haproxy")
    parser.add_argument("sessions", nargs="*", type=Path)
    parser.add_argument("--keep", action="store_true", help="put its rows into the file, and end")
    parser.add_argument("--unseen", default="", help="functions that are predicted by the others")
    parser.add_argument("--explain", action="store_true", help="what moves ours, and end")
    parser.add_argument("--publish", action="store_true", help="write counters-science.md, and end")
    try:
        run(parser.parse_args())
    except DataError as error:  # too few experiments, of all or beside what is held out
        parser.exit(1, f"{error}\n")
