"""How good predictions are: the scores of METHOD.md 8 beside those of papers A and B."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from workbench.domain import kpis
from workbench.models.base import Floats

MISS_RATE = 0.05
"""Of the intervals that are scored: they are to hold 95 %."""
TRIMMED = 0.10
"""Share of the largest errors that a trimmed error leaves out: a few points at the edge of
saturation are most of an RMSE."""

_LARGEST_LOG = 700.0  # above it a float has no square left; a model that says so is wrong enough


@dataclass(frozen=True)
class Scores:
    """Of n predictions; infinite or NaN nowhere unless stated.

    Attributes
    ----------
    n : number of predictions.
    log_error, log_error_q1, log_error_q3 : median and quartiles of |log(predicted / true)|, both
        at least the floor of the KPI (`Kpi.score_floor`): 0.1 is about 10 %.
    rmse, mae, mad : root mean square, mean and median of the absolute error, in the KPI's unit
        (paper A, section 3.3).
    rmse_trimmed : root mean square of the absolute error without the largest `TRIMMED` of them,
        rounded down to whole predictions: of fewer than ten it is the RMSE.
    mape : mean of the absolute error over the true value, as a share, true values at least the
        floor.
    r2 : coefficient of determination of the KPI in its unit; NaN where it does not vary.
    coverage : share of true values within their interval; None without intervals, as the next.
    width : median width of the intervals in logs: 0.4 is about ±20 %.
    interval_score : mean of their interval score in logs (Gneiting & Raftery 2007, Eq. 43): the
        width, and 2/0.05 times what a value lies outside by. Smaller is better.
    fit_s : mean seconds of a fit; None where nobody timed it.
    """

    n: int
    log_error: float
    log_error_q1: float
    log_error_q3: float
    rmse: float
    rmse_trimmed: float
    mae: float
    mad: float
    mape: float
    r2: float
    coverage: float | None = None
    width: float | None = None
    interval_score: float | None = None
    fit_s: float | None = None


def log_errors(true: ArrayLike, predicted: ArrayLike, floor: float) -> Floats:
    """|log(predicted / true)| of log KPIs, each of shape (n,); `floor` is in the KPI's unit."""
    least = math.log(floor)
    a, b = (np.maximum(np.asarray(v, dtype=float), least) for v in (true, predicted))
    return np.asarray(np.abs(b - a))


def interval_scores(true: ArrayLike, low: ArrayLike, high: ArrayLike) -> Floats:
    """Gneiting & Raftery 2007, Eq. 43, per value; all of shape (n,), in one unit or in logs."""
    x, below, above = (np.asarray(v, dtype=float) for v in (true, low, high))
    outside = np.maximum(below - x, 0.0) + np.maximum(x - above, 0.0)
    return np.asarray((above - below) + 2.0 / MISS_RATE * outside)


def score(
    kpi: str,
    true: ArrayLike,
    predicted: ArrayLike,
    interval: tuple[ArrayLike, ArrayLike] | None = None,
    fit_s: float | None = None,
) -> Scores:
    """Scores of predictions of log KPIs.

    Parameters
    ----------
    kpi : str
        Its name says its unit and floor.
    true, predicted : array-like of shape (n,)
        Logs of the KPI.
    interval : pair of array-like of shape (n,), optional
        Lower and upper ends in logs of intervals that are to hold 95 % of `true`.

    Raises
    ------
    ValueError
        If the shapes differ, nothing is given or a figure is not finite.
    """
    x, p = np.asarray(true, dtype=float), np.asarray(predicted, dtype=float)
    if x.ndim != 1 or x.shape != p.shape or not x.size:
        raise ValueError(f"true {x.shape} and predicted {p.shape} must be of one shape (n,), n > 0")
    if not (np.isfinite(x).all() and np.isfinite(p).all()):
        raise ValueError("true and predicted must be finite")
    floor = kpis.of(kpi).score_floor
    q1, median, q3 = np.quantile(log_errors(x, p, floor), (0.25, 0.5, 0.75))
    raw, said = np.exp(x), np.exp(np.minimum(p, _LARGEST_LOG / 2.0))
    absolute = np.abs(said - raw)
    spread = float(np.sum(np.square(raw - raw.mean())))
    return Scores(
        n=int(x.size),
        log_error=float(median),
        log_error_q1=float(q1),
        log_error_q3=float(q3),
        rmse=float(np.sqrt(np.mean(np.square(absolute)))),
        rmse_trimmed=float(np.sqrt(np.mean(np.square(_without_largest(absolute))))),
        mae=float(absolute.mean()),
        mad=float(np.median(absolute)),
        mape=float(np.mean(absolute / np.maximum(raw, floor))),
        r2=1.0 - float(np.sum(np.square(absolute))) / spread if spread > 0.0 else math.nan,
        fit_s=fit_s,
        **({} if interval is None else _of_intervals(x, *interval)),
    )


def _without_largest(errors: Floats) -> Floats:
    """All but the largest `TRIMMED` of absolute errors, of shape (n,) and (n - int(n / 10),)."""
    return np.sort(errors)[: errors.size - int(TRIMMED * errors.size)]


def _of_intervals(x: Floats, low: ArrayLike, high: ArrayLike) -> dict[str, float]:
    below, above = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    if not (below.shape == above.shape == x.shape):
        raise ValueError(f"intervals {below.shape}, {above.shape} must have the shape {x.shape}")
    if not (np.isfinite(below).all() and np.isfinite(above).all()):
        raise ValueError("intervals must be finite")
    return {
        "coverage": float(np.mean((below <= x) & (x <= above))),
        "width": float(np.median(above - below)),
        "interval_score": float(np.mean(interval_scores(x, below, above))),
    }
