"""Support vector regression: paper B, section 5."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVR

from workbench.models.base import Floats
from workbench.models.conformal import Conformal
from workbench.models.estimator import EncodedRegressor, seeded_subset
from workbench.models.folds import folds_of, point_numbers, splits_of

METHOD_VERSION = 1
"""Raised by hand when the same samples give another model: benchmarks keep results by it."""
PENALTIES = (1.0, 10.0, 100.0)
TUBES = (0.01, 0.1)
SEARCH_FOLDS = 3


class SupportVectors(EncodedRegressor):
    """SVR with the RBF kernel; C and epsilon by a search over 6 pairs, 3 folds each.

    The fit takes time with the cube of the rows and the search needs 18 of them: it is done on at
    most `search_points` rows, the last fit on at most `most_points`, both drawn by the seed.

    Parameters
    ----------
    most_points, search_points : int, default=2000, 500
    categorical, ceiling, random_state
        As in `workbench.models.base`.
    """

    def __init__(
        self,
        most_points: int = 2000,
        search_points: int = 500,
        categorical: tuple[int, ...] = (),
        ceiling: float | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(categorical, ceiling, random_state)
        self.most_points = most_points
        self.search_points = search_points

    def _learner(self, Z: Floats, y: Floats) -> Any:
        few = seeded_subset(len(y), self.search_points, self.random_state)
        splits = splits_of(folds_of(point_numbers(Z[few]), SEARCH_FOLDS, self.random_state))

        def svr_of(pair: tuple[float, float], Z: Floats, y: Floats) -> SVR:
            with warnings.catch_warnings():
                # What a hard penalty has reached by the last iteration is judged like any other.
                warnings.simplefilter("ignore", ConvergenceWarning)
                return _svr(pair).fit(Z, y)

        def error(pair: tuple[float, float]) -> float:
            return sum(
                float(np.square(fitted.predict(Z[few][test]) - y[few][test]).sum())
                for train, test in splits
                for fitted in [svr_of(pair, Z[few][train], y[few][train])]
            )

        best = min(product(PENALTIES, TUBES), key=error)
        kept = seeded_subset(len(y), self.most_points, self.random_state)
        return svr_of(best, Z[kept], y[kept])


def svr() -> Conformal:
    """Paper B's SVR."""
    return Conformal(SupportVectors())


def _svr(pair: tuple[float, float]) -> SVR:
    # Columns are standardised: their spread needs no further scale. A bound on the iterations
    # keeps a hard C from taking minutes.
    return SVR(C=pair[0], epsilon=pair[1], gamma="scale", cache_size=100, max_iter=200_000)
