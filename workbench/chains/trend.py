"""The method for a chain, chosen before the chain is measured: by the trend that is predicted.

Paper A, 7.2 and 7.3 (Fig. 13 and 14): what fits the trend of the predicted chain best also fits
the chain's own. So methods compete on the prediction, which costs no lab time, and only the best
is trained on real samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from workbench.chains.alignment import FixedInputs, Measured, without
from workbench.chains.bounded_forecaster import BoundedForecaster
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, ParameterValue, PrimaryWorkload
from workbench.models.base import Floats
from workbench.models.crossvalidation import ModelFactory, Row, best_marked, tried
from workbench.models.forecast import Forecaster, ProfileForecaster
from workbench.models.scales import log_kpi
from workbench.models.scores import Scores, score
from workbench.models.table import Column, Table, columns_of, fitted_to, rows_of

CANARIES = 10
JUDGED = 20
LATE = "not tried: the time was over"
DRAWS = 3
"""Sets of scattered samples: one may favour a method by luck."""
SCATTER = 0.05
"""Log standard deviation that is laid over the prediction: without it the method that follows its
samples blindly would win (paper A, 7.2), and real samples scatter so (METHOD.md 6)."""


@dataclass(frozen=True)
class TrendTerms:
    """How methods compete on a predicted trend.

    Attributes
    ----------
    share : of the range of loads that they are trained on; they are judged above.
    scatter : log standard deviation that is laid over the prediction.
    budget_s : seconds of `clock` after which no method is begun.
    """

    kpi_max: float
    share: float = 0.5
    scatter: float = SCATTER
    seed: int = 0
    budget_s: float = math.inf
    clock: Callable[[], float] = lambda: 0.0


def rank_by_trend(
    target: str,
    factories: Mapping[str, ModelFactory],
    forecaster: Forecaster,
    configurations: Sequence[Configuration],
    primary: PrimaryWorkload,
    terms: TrendTerms,
) -> list[Row]:
    """How well each method, trained on the lower part of a predicted trend, says the rest of it.

    Methods are tried in their order, until `budget_s` of the terms is over by their clock: none is
    begun after that, and its row says so.

    Each is fitted to `CANARIES` loads of each configuration, evenly spaced from the lowest to
    `share` of the range, with figures of the forecaster that scatter, and says `JUDGED` loads
    above; scores are of all configurations and `DRAWS` draws together. Loads at which the
    forecaster itself extrapolates are not asked for.

    Returns
    -------
    list of Row
        The best first, by median log error, and marked; methods that failed last, with their
        trouble.

    Raises
    ------
    DataError
        If there is no method or no configuration, or the forecaster extrapolates everywhere in
        one of the two parts.
    """
    if not factories or not configurations:
        raise DataError("there is no method or no configuration to rank", where=target)
    edge = primary.low + terms.share * (primary.high - primary.low)
    loads = (
        np.linspace(primary.low, edge, CANARIES),
        np.linspace(edge, primary.high, JUDGED + 1)[1:],
    )
    train, test = (
        _trend(forecaster, configurations, part, primary, target, terms.kpi_max) for part in loads
    )
    rows = []
    begun = terms.clock()
    for method, factory in factories.items():
        if terms.clock() - begun > terms.budget_s:
            rows.append(Row(target, forecaster.kpi, method, None, LATE))
            continue
        judge = partial(_judged, factory, train, test, terms.scatter, terms.seed)
        rows.append(Row(target, forecaster.kpi, method, *tried(judge)))
    return sorted(
        best_marked(rows), key=lambda r: (not r.best, r.scores.log_error if r.scores else np.inf)
    )


def trained(
    factory: ModelFactory, seen: Measured, fixed: Mapping[str, ParameterValue] | None = None
) -> ProfileForecaster:
    """The method, fitted to the chain's own samples, without the inputs that are fixed (7.2).

    Raises `DataError` if there are too few.
    """
    table = without(seen.table, fixed or ())
    model = fitted_to(factory(), table).fit(table.X, table.y, table.noise)
    return FixedInputs(table, model, fixed) if fixed else BoundedForecaster(table, model)


def _trend(
    forecaster: Forecaster,
    configurations: Sequence[Configuration],
    loads: Floats,
    primary: PrimaryWorkload,
    target: str,
    kpi_max: float,
) -> Table:
    """What is predicted, as a table of samples."""
    points = [(c, float(wl)) for c in configurations for wl in loads]
    said = forecaster.forecast(points)
    known = ~said.extrapolates & np.isfinite(said.mean)
    if not known.any():
        raise DataError(
            f"the prediction extrapolates everywhere from {loads[0]:g} to {loads[-1]:g}",
            where=f"{target}, {forecaster.kpi}",
            remedy="Profile the functions over that range",
        )
    kept = [point for point, yes in zip(points, known, strict=True) if yes]
    columns = (*columns_of(configurations), Column(primary.name, "primary"))
    X = rows_of(columns, kept)
    ceiling = log_kpi(forecaster.kpi, kpi_max)
    numbers = np.unique(X[:, :-1], axis=0, return_inverse=True)[1].reshape(-1)
    return Table(
        target,
        forecaster.kpi,
        columns,
        X,
        np.minimum(said.mean[known], ceiling),
        np.full(len(kept), SCATTER),
        np.arange(len(kept)),
        numbers.astype(np.int64),
        tuple(f"predicted/{k}" for k in range(len(kept))),
        ceiling,
    )


def _judged(factory: ModelFactory, train: Table, test: Table, scatter: float, seed: int) -> Scores:
    random = np.random.default_rng(seed)
    said = []
    for _ in range(DRAWS):
        y = np.minimum(train.y + scatter * random.standard_normal(len(train)), train.ceiling)
        model = fitted_to(factory(), train)
        model.fit(train.X, y, np.full(len(train), max(scatter, 1e-3)))
        said.append(np.minimum(model.predict(test.X), test.ceiling))
    everything = np.concatenate(said)
    if not np.isfinite(everything).all():
        raise DataError("says what is not finite")
    return score(test.kpi, np.tile(test.y, DRAWS), everything)
