"""Paper A's tables 3 and 4 and figures 8, 12, 13 and 14, of our grids.

Every function returns Markdown; plots are written below docs/images/chain-science/.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from science import svg, tables

from chain_science.canaries import middle
from chain_science.grids import FIRST, Grid, split
from chain_science.predicting import (
    OURS,
    PREDICTION,
    WEAKEST,
    Known,
    corrected,
    known,
)
from chain_science.stored import ROOT
from workbench.chains.alignment import Measured
from workbench.chains.comparison import Baseline, compare_chain
from workbench.chains.trend import trained
from workbench.domain.errors import WorkbenchError
from workbench.domain.parameters import Configuration
from workbench.domain.retraining import ChainComparison, ConfigurationScore
from workbench.engine.answers.chain_models import factory_of
from workbench.engine.learning.scoring import row_of, table_for
from workbench.models.base import Floats
from workbench.models.crossvalidation import Row
from workbench.models.estimator import one_thread
from workbench.models.forecast import Forecaster, Points

IMAGES = ROOT / "docs" / "images" / "chain-science"
KPI = "p95_ms"
"""Paper A's."""
TABLE_3 = ("interpolation", "gaussian-process-a", "lasso3", "elastic-net3", "multi-lasso")
"""Paper A's methods but the neural network, which takes most of the time and is the worst there."""
OWN = ("pooled", "catalogue")
TRAINED = {
    "interpolation": "interpolation",
    "paper A's Lasso": "lasso2",
    "paper A's GP": "gaussian-process-a",
}
"""Of figures 13 and 14, each trained on one configuration's samples over the load (7.2)."""
STEPS = (2, 3, 4, 6, 8, 10)
BASELINE = "interpolation"
AB_FLOOR = 0.05


Compared = Mapping[tuple[str, str], ChainComparison]
"""By chain and by who predicted."""


def table_3(grids: Sequence[Grid]) -> str:
    """RMSE in ms of models trained on a target's own samples, five folds; mean over seeds.

    The average is of those targets that all methods have scores of; below the table stands why a
    method has none.
    """
    names = [plan.target.name for plan in grids[0].campaign.targets]
    names = [n for n in names if grids[0].of(n, FIRST)]
    methods = (*TABLE_3, *OWN)
    rows, whole, troubles = [], [], []
    for name in names:
        scored = {m: [_scored(grid, name, m) for grid in grids] for m in methods}
        failed = {m: next((r.trouble for r in own if r.trouble), "") for m, own in scored.items()}
        rmse = {
            m: float(np.mean([r.scores.rmse for r in own if r.scores])) if not failed[m] else None
            for m, own in scored.items()
        }
        rows.append([name, *("failed" if r is None else tables.number(r) for r in rmse.values())])
        troubles += [f"- {name}, {m}: {why}" for m, why in failed.items() if why]
        if not any(failed.values()):
            whole.append([r for r in rmse.values() if r is not None])
    if whole:
        average = map(tables.number, np.mean(whole, axis=0).tolist())
        rows.append([f"average of {len(whole)}", *average])
    text = tables.table(["target", *methods], rows)
    return "\n\n".join([text, *(["\n".join(troubles)] if troubles else [])])


def _scored(grid: Grid, target: str, method: str) -> Row:
    table = table_for(grid.campaign, target, grid.of(target, FIRST), KPI)
    return row_of(table, method, "point", None)


def compared(grid: Grid) -> Compared:
    """By chain and rule: the first pass of a grid against what its functions predict."""
    found = {}
    for plan in grid.chains:
        given = known(grid, plan, KPI)
        own = grid.of(plan.target.name, FIRST)
        seen = given.seen(split(grid, plan.target.name, KPI, 10).canary)
        for name, forecaster in (
            (WEAKEST, given.weakest),
            (PREDICTION, given.prediction),
            (OURS, corrected(given, seen)),
        ):
            found[plan.target.name, name] = compare_chain(
                plan.target.name,
                own,
                forecaster,
                rule=name,
                kpi_max=given.kpi_max,
                primary=plan.primary,
                ab_floor=AB_FLOOR,
                baseline=Baseline(BASELINE, factory_of(BASELINE)) if name == WEAKEST else None,
            )
    return found


def table_4(found: Sequence[Compared]) -> str:
    """RMSE in ms: the chain's own model, and predictions of it; mean over seeds."""
    rows = []
    for chain in dict.fromkeys(chain for chain, _ in found[0]):
        each = {name: [one[chain, name] for one in found] for name in (WEAKEST, PREDICTION, OURS)}
        baseline = np.mean([one.baseline_rmse or math.nan for one in each[WEAKEST]])
        rows.append(
            [
                chain,
                tables.number(float(baseline)),
                *(tables.number(float(np.mean([c.rmse for c in own]))) for own in each.values()),
                *(tables.number(float(np.mean([c.mape for c in own]))) for own in each.values()),
            ]
        )
    head = [f"{w}, {what}" for what in ("RMSE", "MAPE") for w in (WEAKEST, PREDICTION, OURS)]
    return tables.table(["chain", f"{BASELINE} on the chain, RMSE", *head], rows)


def figure_8(found: Sequence[Compared], name: str) -> str:
    """MAPE of each configuration, sorted by that of the weakest link; the median over seeds."""
    series, row = [], 0
    lines: dict[str, list[float]] = {BASELINE: [], WEAKEST: [], PREDICTION: [], OURS: []}
    for chain in dict.fromkeys(chain for chain, _ in found[0]):
        order = [c.configuration for c in found[0][chain, WEAKEST].configurations]
        for configuration in order:
            for who in (WEAKEST, PREDICTION, OURS):
                own = _of(found, chain, who, configuration)
                lines[who].append(float(np.median([c.mape for c in own])))
                if who == WEAKEST:
                    direct = [c.baseline_mape or math.nan for c in own]
                    lines[BASELINE].append(float(np.median(direct)))
            row += 1
    series = [svg.Series(who, range(1, row + 1), values) for who, values in lines.items()]
    plot = svg.lines(
        f"{name}: error by configuration",
        "configuration",
        "MAPE of p95 (1 is 100 %)",
        series,
        log_x=False,
    )
    head = ["", "lowest", "median", "highest"]
    text = [
        [who, *(tables.number(float(q)) for q in np.nanquantile(values, (0.0, 0.5, 1.0)))]
        for who, values in lines.items()
    ]
    return f"{save(f'fig8-{name}', plot)}\n\n{tables.table(head, text)}"


def _of(
    found: Sequence[Compared], chain: str, who: str, c: Configuration
) -> list[ConfigurationScore]:
    return [s for one in found for s in one[chain, who].configurations if s.configuration == c]


def figure_12(found: Sequence[Compared], name: str) -> str:
    """Median |log error| by decade of the KPI; the median over seeds and chains."""
    decades = sorted({b.low for one in found for c in one.values() for b in c.buckets})
    rows, series = [], []
    by: dict[str, list[float]] = {}
    for who in (WEAKEST, PREDICTION, OURS):
        by[who] = []
        for low in decades:
            own = [
                b.log_error
                for one in found
                for (_, rule), c in one.items()
                if rule == who
                for b in c.buckets
                if b.low == low
            ]
            by[who].append(float(np.median(own)))
        middle_of = [low * math.sqrt(10.0) for low in decades]
        series.append(svg.Series(who, middle_of, by[who]))
    for k, low in enumerate(decades):
        count = sum(
            b.samples
            for one in found
            for (_, rule), c in one.items()
            if rule == WEAKEST
            for b in c.buckets
            if b.low == low
        )
        rows.append(
            [f"{low:g} to {10 * low:g}", str(count), *(tables.number(v[k]) for v in by.values())]
        )
    plot = svg.lines(f"{name}: error by response time", "p95, ms", "median |log error|", series)
    text = tables.table(["p95, ms", "samples", *by], rows)
    return f"{save(f'fig12-{name}', plot)}\n\n{text}"


# ------------------------------------------------------------------------- figures 13 and 14


def figure_13_14(grids: Sequence[Grid], name: str) -> str:
    """Error against the number of samples: random ones of the whole range, and canaries."""
    parts = []
    for number, way, what in ((13, "random", "whole range"), (14, "canary", "upper half")):
        real, trend = [], []
        for grid in grids:
            for plan in grid.chains:
                given = known(grid, plan, KPI)
                real += _courses(given, way, predicted=False)
                trend += _courses(given, way, predicted=True)
        rows = []
        for side, courses in (("a: the predicted chain", trend), ("b: the real chain", real)):
            series = []
            for who in dict.fromkeys(w for course in courses for w in course):
                errors = [
                    float(np.median([c[who][k] for c in courses if who in c]))
                    for k in range(len(STEPS))
                ]
                series.append(svg.Series(who, STEPS, errors))
                rows.append([f"{side}, {who}", *(tables.number(e) for e in errors)])
            title = f"{name}: {way} samples of {side.partition(': ')[2]}"
            plot = svg.lines(title, "samples", f"|log error|, {what}", series, log_x=False)
            parts.append(save(f"fig{number}{side[0]}-{name}", plot))
        head = [f"Fig. {number}, {way}, error on the {what}", *map(str, STEPS)]
        parts.append(tables.table(head, rows))
    return "\n\n".join(parts)


def _courses(given: Known, way: str, *, predicted: bool) -> list[dict[str, list[float]]]:
    """For each configuration, errors by method at each number of samples."""
    parted = split(given.grid, given.plan.target.name, KPI, 99)
    random = np.random.default_rng((given.grid.seed, 13))
    courses = []
    for configuration in dict.fromkeys(s.point.configuration for s in parted.canary):
        first, lower, upper = (
            [s for s in own if s.point.configuration == configuration]
            for own in (parted.canary, parted.lower, parted.upper)
        )
        test = upper
        if way == "random":
            loads = {s.point.wl for s in (*lower, *upper)}
            every = given.grid.of(given.plan.target.name, FIRST)
            own = [s for s in every if s.point.configuration == configuration]
            own = [s for s in own if s.point.wl in loads]
            first = [own[place] for place in random.permutation(len(own))]
            test = [*lower, *upper]
        if test:
            courses.append(_course(given, given.seen(first), given.seen(test), predicted))
    return courses


def _course(
    given: Known, train: Measured, test: Measured, predicted: bool
) -> dict[str, list[float]]:
    truth = given.weakest.forecast(test.points).mean if predicted else test.table.y
    course: dict[str, list[float]] = {who: [] for who in TRAINED}
    if not predicted:
        course[OURS] = []
    for steps in STEPS:
        seen = train.take(np.arange(len(train)) < steps)
        if predicted:
            foretold = given.weakest.forecast(seen.points).mean
            seen = replace(seen, table=replace(seen.table, y=foretold))
        for who, own in course.items():
            own.append(middle(_said(given, who, seen, test.points) - truth))
    return course


def _said(given: Known, who: str, seen: Measured, points: Points) -> Floats:
    model: Forecaster
    try:
        if who == OURS:
            model = corrected(given, seen)
        else:
            with one_thread():
                model = trained(factory_of(TRAINED[who]), seen)
    except WorkbenchError:
        return np.full(len(points), math.nan)
    return np.asarray(model.forecast(points).mean)


def save(name: str, plot: str) -> str:
    """A figure on disk, and the Markdown that shows it."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    (IMAGES / f"{name}.svg").write_text(plot, encoding="utf-8")
    return f"![{name}](images/chain-science/{name}.svg)"
