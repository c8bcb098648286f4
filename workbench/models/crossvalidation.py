"""How good models are on a table that they have not seen, and the best of many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from workbench.domain.errors import DataError, WorkbenchError
from workbench.models.base import Floats, ProfileModel
from workbench.models.folds import folds_of, splits_of
from workbench.models.scales import NORMAL_95
from workbench.models.scores import Scores, score
from workbench.models.table import Table, fitted_to

METHOD_VERSION = 1
"""Raised by hand when the same model gets other scores: benchmarks keep results by it."""
ModelFactory = Callable[[], ProfileModel]
Timer = Callable[[], float]
"""Seconds on any clock that runs: this room has none."""

By = Literal["point", "configuration"]

TIE = 0.02
"""Median log errors that are larger by less are as good: 2 per cent is less than a lab tells apart,
and where half of a grid is flat or at its ceiling the smallest is all but 0."""
_COMPARABLE = 2.0
"""And that are larger by up to that factor: the median of eighty errors whose quartiles differ by a
factor of five (p95 beside a jump) is not known better."""


@dataclass(frozen=True)
class Row:
    """One method on one KPI of one target, as in paper A's Table 3.

    `scores` is None where the model failed, and `trouble` then says how; `best` marks the method
    that a campaign takes.
    """

    target: str
    kpi: str
    method: str
    scores: Scores | None
    trouble: str = ""
    best: bool = False


def cross_validate(
    factory: ModelFactory,
    table: Table,
    folds: int = 5,
    by: By = "point",
    seed: int = 0,
    timer: Timer | None = None,
) -> Scores:
    """Scores of the predictions of all samples, each by a model that was fitted without its fold.

    Repetitions of a point share a fold; by configuration, all samples of one do, and a model must
    say what a configuration does that it has not seen. Scores are those of all samples together,
    where papers A and B average the folds' RMSE.

    The intervals that are scored are to hold the samples: the model's band of the mean, widened
    on either side by the sample's own noise (the root of the sum of squares). A model without
    `predict_band` has none.

    Raises
    ------
    DataError
        If there are fewer than two points or configurations to part, or the model says NaN.
    """
    said = held_out(factory, table, folds, by, seed, timer)
    return score(table.kpi, table.y, said.predicted, said.ends, said.fit_s)


@dataclass(frozen=True)
class HeldOut:
    """Log KPI of all samples of a table, each by a model that was fitted without its fold.

    Attributes
    ----------
    predicted : shape (n,).
    ends : of the intervals that are to hold the samples, shape (n,) each; None without any.
    fit_s : mean seconds of a fit; None without a timer.
    """

    predicted: Floats
    ends: tuple[Floats, Floats] | None
    fit_s: float | None


def held_out(
    factory: ModelFactory,
    table: Table,
    folds: int = 5,
    by: By = "point",
    seed: int = 0,
    timer: Timer | None = None,
) -> HeldOut:
    """What `cross_validate` scores. Raises as it does."""
    groups = table.points if by == "point" else table.configurations
    count = len(np.unique(groups))
    if count < 2:
        raise DataError(
            f"{len(table)} samples of {count} {by}{'s' * (count != 1)} cannot be parted into "
            "training and test",
            where=f"{table.target}, {table.kpi}",
            remedy=f"Measure at least two {by}s",
        )
    predicted = np.full(len(table), np.nan)
    ends: tuple[Floats, Floats] | None = (predicted.copy(), predicted.copy())
    seconds = []
    for train, test in splits_of(folds_of(groups, folds, seed)):
        model = fitted_to(factory(), table)
        known = table.take(train)
        start = timer() if timer else 0.0
        model.fit(known.X, known.y, known.noise)
        seconds.append(timer() - start if timer else 0.0)
        predicted[test] = np.minimum(model.predict(table.X[test]), table.ceiling)
        if not hasattr(model, "predict_band"):
            ends = None
        if ends is not None:
            band = model.predict_band(table.X[test])
            for end, bound, side in zip(ends, band, (-1.0, 1.0), strict=True):
                reach = np.hypot(bound - predicted[test], NORMAL_95 * table.noise[test])
                end[test] = predicted[test] + side * reach
    _must_be_finite(predicted, "predictions", table)
    if ends is not None:
        _must_be_finite(np.concatenate(ends), "ends of bands", table)
    return HeldOut(predicted, ends, float(np.mean(seconds)) if timer else None)


def compare_models(
    factories: Mapping[str, ModelFactory],
    table: Table,
    folds: int = 5,
    by: By = "point",
    seed: int = 0,
    timer: Timer | None = None,
) -> list[Row]:
    """One row for each method, in the order given; the best is marked (`best_of`).

    A model that raises, or that says NaN, is named in its row and set aside.
    """
    rows = []
    for method, factory in factories.items():
        judge = partial(cross_validate, factory, table, folds, by, seed, timer)
        rows.append(Row(table.target, table.kpi, method, *tried(judge)))
    return best_marked(rows)


def tried(judge: Callable[[], Scores]) -> tuple[Scores | None, str]:
    """Scores of a method, or None and its trouble."""
    try:
        return judge(), ""
    except WorkbenchError as error:
        return None, str(error)
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises, the others are judged
        return None, f"{type(error).__name__}: {error}"


def best_marked(rows: Sequence[Row]) -> list[Row]:
    best = best_of(rows)
    return [replace(row, best=row.method == best) for row in rows]


def best_of(rows: Sequence[Row]) -> str | None:
    """The method that says most surely what is right; None if none has scores.

    The smallest interval score (Gneiting & Raftery 2007), which charges width as well as what lies
    outside: an answer with its uncertainty rests on both, and an interval over the whole range of a
    KPI answers nothing. Those whose median log error is clearly larger than another's are left out
    (`_COMPARABLE`), those without intervals come last. Then the smallest RMSE, then the name.
    """
    scored = [(row.method, row.scores) for row in rows if row.scores is not None]
    if not scored:
        return None
    limit = _COMPARABLE * min(scores.log_error for _, scores in scored) + TIE

    def rank(one: tuple[str, Scores]) -> tuple[float, float, str]:
        method, scores = one
        interval = np.inf if scores.interval_score is None else scores.interval_score
        return float(interval), scores.rmse, method

    return min((one for one in scored if one[1].log_error <= limit), key=rank)[0]


def _must_be_finite(values: Floats, what: str, table: Table) -> None:
    bad = int((~np.isfinite(values)).sum())
    if bad:
        raise DataError(
            f"{bad} of {len(values)} {what} are not finite",
            where=f"{table.target}, {table.kpi}",
        )
