"""What paper A's tables and figures are drawn of: errors of one grid, of one seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from chain_science.canaries import CODE, middle
from chain_science.grids import FIRST, Grid, split
from chain_science.predicting import OURS, PREDICTION, WEAKEST, Known, corrected, known
from chain_science.recordings import grid_of
from chain_science.stored import digest, kept
from workbench.chains.alignment import Measured
from workbench.chains.comparison import Baseline, compare_chain
from workbench.chains.trend import trained
from workbench.domain.errors import WorkbenchError
from workbench.domain.retraining import ChainComparison
from workbench.domain.samples import Sample
from workbench.engine.answers.chain_models import factory_of
from workbench.engine.learning.scoring import row_of, table_for
from workbench.models.base import Floats
from workbench.models.crossvalidation import Row
from workbench.models.estimator import one_thread
from workbench.models.forecast import Forecaster, Points

KPI = "p95_ms"
"""Paper A's."""
METHODS = (
    *("interpolation", "gaussian-process-a", "lasso3", "elastic-net3", "multi-lasso"),
    *("pooled", "catalogue"),
)
"""Of Table 3: paper A's but the neural network, which takes most of the time and is the worst
there, and ours."""
PREDICTED = (WEAKEST, PREDICTION, OURS)
BASELINE = "interpolation"
AB_FLOOR = 0.05
TRAINED = {
    "interpolation": "interpolation",
    "paper A's Lasso": "lasso2",
    "paper A's GP": "gaussian-process-a",
}
"""Of figures 13 and 14, each trained on one configuration's samples over the load (7.2)."""
STEPS = (2, 3, 4, 6, 8, 10)
RANDOM, CANARY = "random", "canary"


@dataclass(frozen=True)
class Course:
    """Errors of one configuration after each of `STEPS` samples, by who says it.

    Attributes
    ----------
    way : random samples, judged on the whole range, or canaries, judged on the upper half.
    predicted : whether the predicted trend is learned and said, or the real chain's.
    """

    way: str
    predicted: bool
    errors: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Figured:
    """All errors of a grid.

    Attributes
    ----------
    rows : of models that were trained on a target's own samples.
    comparisons : of the chains as measured with what `PREDICTED` say of them.
    courses : empty where the grid was measured once.
    """

    rows: Sequence[Row]
    comparisons: Sequence[ChainComparison]
    courses: Sequence[Course]


def figured(name: str, seed: int) -> Figured:
    """Played once."""
    key = f"figures-{name}", f"{seed}-{digest('figuring.py', *CODE)}"
    return kept(*key, Figured, lambda: _figured(grid_of(name, seed)))


def _figured(grid: Grid) -> Figured:
    plans = [plan for plan in grid.campaign.targets if plan in (*grid.functions, *grid.chains)]
    courses = [
        course
        for plan in (grid.chains if grid.twice else ())
        for way in (RANDOM, CANARY)
        for predicted in (True, False)
        for course in _courses(known(grid, plan, KPI), way, predicted)
    ]
    return Figured(
        [_row(grid, plan.target.name, method) for plan in plans for method in METHODS],
        [one for plan in grid.chains for one in _compared(known(grid, plan, KPI))],
        courses,
    )


def _row(grid: Grid, target: str, method: str) -> Row:
    table = table_for(grid.campaign, target, grid.of(target, FIRST), KPI)
    return row_of(table, method, "point", None)


def _compared(given: Known) -> list[ChainComparison]:
    """The pass that judges against what its functions predict; of one pass its upper half, since
    canaries of the lower have taught."""
    grid, plan = given.grid, given.plan
    name = plan.target.name
    parted = split(grid, name, KPI)
    judged = grid.of(name, grid.judging) if grid.twice else parted.upper
    ours = corrected(given, given.seen(parted.canary))
    said = {WEAKEST: given.weakest, PREDICTION: given.prediction, OURS: ours}
    return [
        compare_chain(
            name,
            judged,
            forecaster,
            rule=who,
            kpi_max=given.kpi_max,
            primary=plan.primary,
            ab_floor=AB_FLOOR,
            baseline=Baseline(BASELINE, factory_of(BASELINE)) if who == WEAKEST else None,
        )
        for who, forecaster in said.items()
    ]


# ------------------------------------------------------------------------- figures 13 and 14


def _courses(given: Known, way: str, predicted: bool) -> list[Course]:
    """Of each configuration."""
    parted = split(given.grid, given.plan.target.name, KPI, 99)
    random = np.random.default_rng((given.grid.seed, 13))
    every = given.grid.of(given.plan.target.name, FIRST)
    courses = []
    for configuration in dict.fromkeys(s.point.configuration for s in parted.canary):

        def own(samples: Sequence[Sample], c: object = configuration) -> list[Sample]:
            return [s for s in samples if s.point.configuration == c]

        first, test = own(parted.canary), own(parted.upper)
        if way == RANDOM:
            test = [*own(parted.lower), *test]
            loads = {s.point.wl for s in test}
            taught = [s for s in own(every) if s.point.wl in loads]
            first = [taught[place] for place in random.permutation(len(taught))]
        if test:
            errors = _errors(given, given.seen(first), given.seen(test), predicted)
            courses.append(Course(way, predicted, errors))
    return courses


def _errors(
    given: Known, train: Measured, test: Measured, predicted: bool
) -> dict[str, list[float]]:
    truth = given.weakest.forecast(test.points).mean if predicted else test.table.y
    errors: dict[str, list[float]] = {who: [] for who in TRAINED}
    if not predicted:
        errors[OURS] = []
    for steps in STEPS:
        seen = train.take(np.arange(len(train)) < steps)
        if predicted:
            foretold = given.weakest.forecast(seen.points).mean
            seen = replace(seen, table=replace(seen.table, y=foretold))
        for who, own in errors.items():
            own.append(middle(_said(given, who, seen, test.points) - truth))
    return errors


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
