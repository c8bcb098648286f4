"""How often the intervals of models hold what they say: 95 %, on matched data and on others.

Three shares: of truths (the band is of the mean), of truths between floor and ceiling only, where
it is hard, and of samples of the test draw, the band widened by their own noise as
`models.crossvalidation` does.
"""

from __future__ import annotations

import math
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from science import judging, playing, tables
from science.stored import Store
from workbench.models.scales import NORMAL_95, log_kpi
from workbench.models.table import fitted_to

SURFACES = ("firewall-law", "streaming-law", "firewall-scalability", "streaming-steps")
TRAINED, TESTED = 1_000, 3_000
SAID = (0.93, 0.97)


class Covered(msgspec.Struct, frozen=True):
    truths: float
    between: float
    samples: float
    width: float
    """Median log width of the band between floor and ceiling."""
    trouble: str = ""


def covered(name: str, model: str) -> Covered:
    """A model trained on random points of the training grid."""
    judged = playing.judge(name)
    given = judged.problem
    whole = judging.whole_grid(given, "train-0")
    chosen = np.random.default_rng(3).choice(len(whole), TRAINED, replace=False)
    table = judged.table([whole[i] for i in chosen], "train-0")
    tested = np.random.default_rng(4).choice(len(whole), TESTED, replace=False)
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            fitted = fitted_to(judging.factory(model)(), table)
            fitted.fit(table.X, table.y, table.noise)
            low, high = fitted.predict_band(judged.test.X[tested])
    except Exception as error:  # noqa: BLE001 - any model of any package
        trouble = f"{type(error).__name__}: {error}"[:200]
        return Covered(math.nan, math.nan, math.nan, math.nan, trouble)
    floor, ceiling = log_kpi(given.kpi, 0.0), judged.test.ceiling
    low, high = np.clip(low, floor, ceiling), np.clip(high, floor, ceiling)
    truth = np.array(
        [
            float(given.truth(whole[i][0], np.array([whole[i][1]]))[0])  # type: ignore[attr-defined]
            for i in tested
        ]
    )
    truth = np.clip(np.log(np.maximum(truth, 1e-300)), floor, ceiling)
    inside = (low - 1e-9 <= truth) & (truth <= high + 1e-9)
    between = (truth > floor + 0.02) & (truth < ceiling - 0.02)
    middle, noise = 0.5 * (low + high), NORMAL_95 * judged.test.noise[tested]
    reach = np.hypot(0.5 * (high - low), noise)
    seen = np.abs(judged.test.y[tested] - middle) <= reach + 1e-9
    return Covered(
        float(inside.mean()),
        float(inside[between].mean()),
        float(seen.mean()),
        float(np.median((high - low)[between])),
    )


def covered_kept(store: Store, name: str, model: str) -> Covered:
    key = f"coverage/{name}/{model}/{playing.world(name)}.{playing.by(model)}"
    for known in store.lines(key, Covered):
        return known
    found = covered(name, model)
    store.add(key, found)
    return found


def report(store: Store, workers: int) -> str:
    """A row per model: samples / truths / truths between, per surface; what misses is marked."""
    models = judging.models()
    jobs = [(name, model) for model in models for name in SURFACES]
    with ProcessPoolExecutor(workers) as executor:
        done = dict(zip(jobs, executor.map(partial(_job, store), jobs), strict=True))
    rows = []
    for model in models:
        row = [model]
        for name in SURFACES:
            found = done[name, model]
            fine = SAID[0] <= found.samples <= SAID[1]
            shares = [found.samples, found.truths, found.between]
            cell = " / ".join("-" if math.isnan(v) else f"{100 * v:.0f}" for v in shares)
            row.append(f"**{cell}**" if fine else cell)
        rows.append(row)
    failed = {(m, c.trouble) for (_, m), c in done.items() if c.trouble}
    notes = "".join(f"\n\n`{model}`: {trouble}" for model, trouble in sorted(failed))
    return (
        tables.table(["model", *SURFACES], rows)
        + f"\n\nPer cent of test samples / of truths / of truths between floor and ceiling that "
        f"lie in the 95 % interval, after {TRAINED:,} random samples; bold where 93-97 % of the "
        f"samples do.{notes}"
    )


def _job(store: Store, job: tuple[str, str]) -> Covered:
    return covered_kept(store, *job)
