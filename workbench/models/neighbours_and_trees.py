"""Neighbours, forest and boosting: the generic methods of paper B, section 5, and of paper C."""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor

from workbench.models.base import Floats
from workbench.models.conformal import Conformal
from workbench.models.estimator import EncodedRegressor

METHOD_VERSION = 1
"""Raised by hand when the same samples give another model: benchmarks keep results by it."""


class NearestNeighbours(EncodedRegressor):
    """The mean of the `neighbours` nearest samples, weighted by distance, columns standardised.

    Parameters
    ----------
    neighbours : int, default=2
        As in paper B.
    categorical, ceiling, random_state
        As in `workbench.models.base`.
    """

    def __init__(
        self,
        neighbours: int = 2,
        categorical: tuple[int, ...] = (),
        ceiling: float | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(categorical, ceiling, random_state)
        self.neighbours = neighbours

    def _learner(self, Z: Floats, y: Floats) -> Any:
        k = min(self.neighbours, len(y))
        return KNeighborsRegressor(k, weights="distance").fit(Z, y)


class RandomForest(EncodedRegressor):
    """A random forest; 100 trees of depth 10 as in paper B.

    Parameters
    ----------
    trees, depth : int, default=100, 10
    categorical, ceiling, random_state
        As in `workbench.models.base`.
    """

    def __init__(
        self,
        trees: int = 100,
        depth: int = 10,
        categorical: tuple[int, ...] = (),
        ceiling: float | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(categorical, ceiling, random_state)
        self.trees = trees
        self.depth = depth

    def _learner(self, Z: Floats, y: Floats) -> Any:
        forest = RandomForestRegressor(
            self.trees, max_depth=self.depth, random_state=self.random_state
        )
        return forest.fit(Z, y)


class GradientBoosting(EncodedRegressor):
    """Boosted trees on binned columns.

    Parameters
    ----------
    trees : int, default=200
    learning_rate : float, default=0.1
    categorical, ceiling, random_state
        As in `workbench.models.base`.
    """

    def __init__(
        self,
        trees: int = 200,
        learning_rate: float = 0.1,
        categorical: tuple[int, ...] = (),
        ceiling: float | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(categorical, ceiling, random_state)
        self.trees = trees
        self.learning_rate = learning_rate

    def _learner(self, Z: Floats, y: Floats) -> Any:
        boosted = HistGradientBoostingRegressor(
            max_iter=self.trees,
            learning_rate=self.learning_rate,
            # Twenty per leaf, scikit-learn's own, is more than a small profile has.
            min_samples_leaf=max(1, min(20, len(y) // 20)),
            early_stopping=False,
            random_state=self.random_state,
        )
        return boosted.fit(Z, y)


def k_nearest() -> Conformal:
    """Paper B's k nearest neighbours."""
    return Conformal(NearestNeighbours())


def random_forest() -> Conformal:
    """Paper B's random forest."""
    return Conformal(RandomForest())


def gradient_boosting() -> Conformal:
    """Boosted trees, as paper C compares them."""
    return Conformal(GradientBoosting())
