"""Models that predict a KPI from counters: those of papers beside ours.

Unlike a profile model (`base`) each takes counters and gives the KPI in its own unit. Groups of
rows (experiments, traffic profiles) are what a model may choose its settings by, so `fit` takes
them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from workbench.models.base import Floats
from workbench.models.counter_contention import BEYOND, VARIED
from workbench.models.counter_rows import least_above_0
from workbench.models.estimator import one_thread, seeded_subset
from workbench.models.folds import Ints, folds_of, splits_of

MOST_TAUGHT = 2_000
"""Rows that a model is fitted to; more of them are drawn by the seed: seconds of one run are nearly
copies of each other."""
MOST_OF_PROCESS = 300
"""Rows of a Gaussian process, whose fit takes time with their cube."""
MOST_LENGTHS = 12
"""Columns up to which a Gaussian process has a length for each."""
INNER_FOLDS = 5
GRID_DRAWN, GRID_FEW_ROWS, FEW_ROWS = 4, 8, 200
"""Points that are tried of the 864 of paper C's grid: more of them on few rows, which take less."""
MOST_EPOCHS = 200
"""The most of paper C's grid; a fit ends before where the loss does not fall any more."""
FEWEST_ALONE, FEWEST_FOR_BEND = 3, 6
"""Rows in which nobody competed, below which there is no curve of what a function does alone, and
below which it is a line. A session with five loads in each of two passes leaves a fold that holds
one pass out five of them."""
CURVE_WORDS = {
    "mean": f"fewer than {FEWEST_ALONE} windows alone were left: there it is boosting as it is",
    "line": f"fewer than {FEWEST_FOR_BEND} windows alone were left, or their traffic hardly varied"
    ": there what it does alone is a line or a level",
}
"""What became of `ExtrapolatedBoosting.curve` where it is no quadratic."""
_CACHE_WORDS = ("cache-references", "llc-loads", "llc-stores", "l2crd", "l2cwr")


class CounterModel(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Base: draws rows, keeps BLAS to one thread; subclasses make the regressor in `_made`.

    Parameters
    ----------
    random_state : int, default=0
        Draws rows, folds, trees and starts.
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(
        self, X: Floats, y: Floats, groups: Ints | None = None, beside: Ints | None = None
    ) -> Self:
        """Fit the KPI `y` (n,), above 0, to counters `X` (n, d); `groups` (n,) are experiments, and
        `beside` (n,) numbers who competed, 0 where nobody did."""
        del beside  # most models look at counters alone
        known = np.arange(len(y)) if groups is None else groups
        kept = seeded_subset(len(y), MOST_TAUGHT, self.random_state)
        with one_thread(), warnings.catch_warnings():
            # A bounded number of iterations is part of each recipe.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.regressor_ = self._made(X[kept], y[kept], known[kept])
        return self

    def predict(self, X: Floats) -> Floats:
        """The KPI at counters `X` (m, d), as shape (m,)."""
        with one_thread():
            return np.asarray(self.regressor_.predict(X), dtype=float)

    def _made(self, x: Floats, y: Floats, groups: Ints) -> Any:
        raise NotImplementedError


class CounterLine(CounterModel):
    """Linear regression on all counters, as Yala and paper C compare it."""

    def _made(self, x: Floats, y: Floats, groups: Ints) -> Any:
        del groups  # it chooses no settings
        return LinearRegression().fit(x, y)


class CacheLine(CounterModel):
    """Linear in references to the shared cache alone (Dobrescu et al., NSDI 2012).

    Theirs is the drop of throughput over the competitors' references per second, as Yala's rows
    have them; where competitors have no counters of their own, these are the function's.

    Parameters
    ----------
    columns : tuple of int
        Columns that count references (`cache_columns`).
    """

    def __init__(self, columns: tuple[int, ...] = (), random_state: int = 0) -> None:
        super().__init__(random_state)
        self.columns = columns

    def predict(self, X: Floats) -> Floats:
        return super().predict(X[:, list(self.columns)])

    def _made(self, x: Floats, y: Floats, groups: Ints) -> Any:
        del groups  # it chooses no settings
        return LinearRegression().fit(x[:, list(self.columns)], y)


def cache_columns(features: tuple[str, ...]) -> tuple[int, ...]:
    """Which features count references to a shared cache, whether the function's or, as Yala
    publishes them, its competitors' (`l2crd`, `l2cwr`); empty where none does."""
    named = (name.lower().replace("_", "-") for name in features)
    return tuple(i for i, name in enumerate(named) if name.endswith(_CACHE_WORDS))


class CounterBoosting(CounterModel):
    """Gradient boosting as SLOMO takes it (Manousis et al., SIGCOMM 2020): its trees, with
    scikit-learn's defaults, and without what it adds where the traffic changes."""

    def _made(self, x: Floats, y: Floats, groups: Ints) -> Any:
        del groups  # it chooses no settings
        return GradientBoostingRegressor(random_state=self.random_state).fit(x, y)


class ExtrapolatedBoosting(CounterBoosting):
    """SLOMO with its extrapolation to other traffic: trees say which share of its performance alone
    a function keeps, and that performance is measured alone under each traffic.

    Alone it is a curve over traffic through the rows in which nobody competed, quadratic in logs,
    or a line where they are fewer than `FEWEST_FOR_BEND`; with fewer than `FEWEST_ALONE` of them
    it is the mean of all rows, so that the trees are those of plain boosting.

    Parameters
    ----------
    column : int
        That tells the traffic.

    Attributes
    ----------
    curve : str
        `quadratic`, or one of `CURVE_WORDS`.
    """

    def __init__(self, column: int = 0, random_state: int = 0) -> None:
        super().__init__(random_state)
        self.column = column

    def fit(
        self, X: Floats, y: Floats, groups: Ints | None = None, beside: Ints | None = None
    ) -> Self:
        alone = np.zeros(len(y), dtype=bool) if beside is None else beside == 0
        few = alone.sum() < FEWEST_ALONE
        if few:
            alone = np.ones(len(y), dtype=bool)
        traffic = self._traffic(X)[alone]
        self.ends_ = float(traffic.min()) - BEYOND, float(traffic.max()) + BEYOND
        bend = 2 if len(traffic) >= FEWEST_FOR_BEND else 1
        degree = 0 if few or np.ptp(traffic) < VARIED else bend
        self.curve = "mean" if few else "quadratic" if degree == 2 else "line"
        self.curve_ = np.polyfit(traffic, np.log(y[alone]), degree)
        return super().fit(X, y / self._alone(X), groups)

    def predict(self, X: Floats) -> Floats:
        return np.asarray(super().predict(X) * self._alone(X))

    def _traffic(self, X: Floats) -> Floats:
        return np.asarray(np.log(np.maximum(X[:, self.column], 1.0)))

    def _alone(self, X: Floats) -> Floats:
        """What the function does alone under the traffic of each row."""
        return np.asarray(np.exp(np.polyval(self.curve_, np.clip(self._traffic(X), *self.ends_))))


class CounterNetwork(CounterModel):
    """Paper C's perceptron (section V-A): some points of its grid, drawn by the seed, the best on
    held-out groups. Scikit-learn has no dropout, so none is tried."""

    def _made(self, x: Floats, y: Floats, groups: Ints) -> Any:
        grid = list(
            product(
                (1, 2, 3, 4), (16, 32, 64), ("relu", "tanh", "logistic"),
                ("adam", "sgd"), (0.1, 0.01, 0.001), (8, 32, 64, 128),
            )
        )  # fmt: skip
        tried = GRID_FEW_ROWS if len(y) <= FEW_ROWS else GRID_DRAWN
        drawn = np.random.default_rng(self.random_state).permutation(len(grid))[:tried]
        makers = [_network(grid[i], self.random_state) for i in drawn]
        return _best_by_group(makers, x, y, groups, self.random_state)


class OwnCounterModel(CounterModel):
    """Ours: log KPI over log counters by whichever family errs least on groups of the *training*
    rows: a Gaussian process, a quadratic ridge, randomised trees, boosted ones, the mean of
    process and boosted trees, or a line over the counters as they are.

    A KPI falls by shares, not by amounts, when its neighbours take more, and counters span decades:
    hence logs on both axes. Only what counts the KPI itself, as packets do throughput, is in line
    with it, at loads that were not measured too.

    Attributes
    ----------
    chosen_ : str
        The family.
    """

    def _made(self, x: Floats, y: Floats, groups: Ints) -> Any:
        families = own_families(self.random_state, x.shape[1])
        unseen = {name: np.empty(len(y)) for name in families}
        for seen, out in _inner_splits(groups, self.random_state):
            for name, make in families.items():
                unseen[name][out] = np.log(make().fit(x[seen], y[seen]).predict(x[out]))
        candidates = [(name,) for name in families] + [MIXED]
        errors = [
            np.abs(np.exp(np.mean([unseen[name] for name in names], axis=0)) / y - 1.0).mean()
            for names in candidates
        ]
        chosen = candidates[int(np.argmin(errors))]
        self.chosen_ = " and ".join(chosen)
        return _Mean([families[name]().fit(x, y) for name in chosen])


MIXED = ("Gaussian process", "boosted trees")
"""Families whose mean is a family, too: one is smooth, the other follows steps."""


class _Mean:
    """The mean in logs of fitted models."""

    def __init__(self, models: list[_InLogs | _AsCounted]) -> None:
        self.models = models

    def predict(self, x: Floats) -> Floats:
        said = [np.log(model.predict(x)) for model in self.models]
        return np.asarray(np.exp(np.mean(said, axis=0)))


class _InLogs:
    """Log counters, standardised, in; log KPI out of `learner`, and back."""

    def __init__(self, learner: Any, most: int = MOST_TAUGHT) -> None:
        self.learner, self.most = learner, most

    def fit(self, x: Floats, y: Floats) -> Self:
        kept = seeded_subset(len(y), self.most, 0)
        self.least = np.array([least_above_0(column) for column in x.T])
        self.model = make_pipeline(StandardScaler(), self.learner)
        self.model.fit(self._logs(x[kept]), np.log(y[kept]))
        self.ends = np.log(y.min()) - 1.0, np.log(y.max()) + 1.0
        return self

    def predict(self, x: Floats) -> Floats:
        return np.asarray(np.exp(np.clip(self.model.predict(self._logs(x)), *self.ends)))

    def _logs(self, x: Floats) -> Floats:
        return np.asarray(np.log(np.maximum(x, self.least)))


class _AsCounted:
    """A line over the counters as they are; errors count as shares of the KPI.

    They are not standardised: of the many lines through fewer rows than counters least squares
    takes the one that rests on the largest counts, which are bytes and packets.
    """

    def fit(self, x: Floats, y: Floats) -> Self:
        kept = seeded_subset(len(y), MOST_TAUGHT, 0)
        weights = np.square(y.mean() / y[kept])
        self.model = LinearRegression().fit(x[kept], y[kept], sample_weight=weights)
        self.ends = y.min() / math.e, y.max() * math.e
        return self

    def predict(self, x: Floats) -> Floats:
        return np.asarray(np.clip(self.model.predict(x), *self.ends))


class _Scaled:
    """A perceptron on standardised counters and KPI; one whose weights diverge tells the mean."""

    def __init__(self, learner: MLPRegressor) -> None:
        self.learner = learner

    def fit(self, x: Floats, y: Floats) -> Self:
        self.offset, self.scale = float(y.mean()), float(y.std()) or 1.0
        batch = min(self.learner.batch_size, len(y))
        self.model = make_pipeline(StandardScaler(), self.learner.set_params(batch_size=batch))
        self.diverged = False
        with np.errstate(all="ignore"):
            try:
                self.model.fit(x, (y - self.offset) / self.scale)
            except ValueError:  # "Solver produced non-finite parameter weights"
                self.diverged = True
        return self

    def predict(self, x: Floats) -> Floats:
        if self.diverged:
            return np.full(len(x), self.offset)
        with np.errstate(all="ignore"):
            said = self.model.predict(x) * self.scale + self.offset
        return np.asarray(np.nan_to_num(said, nan=self.offset, posinf=1e12, neginf=-1e12))


def own_families(seed: int, columns: int) -> dict[str, Callable[[], _InLogs | _AsCounted]]:
    """What ours is chosen from, by name, for rows of that many columns."""

    def process() -> Any:
        # A length for each counter tells which of them matter, as long as they are few.
        lengths = np.ones(columns) if columns <= MOST_LENGTHS else 3.0
        kernel = ConstantKernel(1.0, (1e-3, 1e3)) * Matern(lengths, (1e-2, 1e3), nu=1.5)
        white = WhiteKernel(1e-2, (1e-6, 1.0))
        return GaussianProcessRegressor(kernel + white, normalize_y=True, random_state=seed)

    def boosted() -> Any:
        return GradientBoostingRegressor(
            n_estimators=300, learning_rate=0.06, subsample=0.5, random_state=seed
        )

    def quadratic() -> Any:
        return make_pipeline(
            PolynomialFeatures(2, include_bias=False), RidgeCV(np.logspace(-3, 3, 13))
        )

    def trees() -> Any:
        return ExtraTreesRegressor(50, random_state=seed)

    few = MOST_OF_PROCESS
    return {
        "Gaussian process": lambda: _InLogs(process(), few),
        "quadratic": lambda: _InLogs(quadratic(), few),
        "randomised trees": lambda: _InLogs(trees()),
        "boosted trees": lambda: _InLogs(boosted()),
        "line": _AsCounted,
    }


def _inner_splits(groups: Ints, seed: int) -> list[tuple[Ints, Ints]]:
    """Folds of groups; of rows where there is one group only."""
    if len(np.unique(groups)) < 2:
        groups = np.arange(len(groups))
    return splits_of(folds_of(groups, INNER_FOLDS, seed))


def _best_by_group(
    makers: list[Callable[[], Any]], x: Floats, y: Floats, groups: Ints, seed: int
) -> Any:
    """The one that errs least, in mean share of the true KPI, on groups that it had not seen."""
    splits = _inner_splits(groups, seed)

    def error(make: Callable[[], Any]) -> float:
        shares = [
            np.abs(make().fit(x[seen], y[seen]).predict(x[out]) / y[out] - 1.0)
            for seen, out in splits
        ]
        return float(np.concatenate(shares).mean())

    errors = [error(make) for make in makers]
    return makers[int(np.argmin(errors))]().fit(x, y)


def _network(point: tuple[Any, ...], seed: int) -> Callable[[], _Scaled]:
    layers, nodes, activation, solver, rate, batch = point

    def make() -> _Scaled:
        network = MLPRegressor(
            hidden_layer_sizes=(nodes,) * layers,
            activation=activation,
            solver=solver,
            learning_rate_init=rate,
            batch_size=batch,
            max_iter=MOST_EPOCHS,
            random_state=seed,
        )
        return _Scaled(network)

    return make
