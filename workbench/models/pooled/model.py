"""The pooled model: a law with its residual process and a process without law, stacked."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from workbench.models.base import Floats
from workbench.models.estimator import ProfileEstimator, one_thread
from workbench.models.folds import folds_of, point_numbers
from workbench.models.pooled.field import Field
from workbench.models.pooled.law import Law, Samples, fitted
from workbench.models.pooled.surface import Places
from workbench.models.scales import NORMAL_95, UNKNOWN_LOG_SD

FOLDS = 4


class Encoder:
    """Rows of a table as places in the unit cube.

    A category whose members differ in numbers that it determines (a flavor and what it allocates)
    is left out: the numbers say more.
    """

    def __init__(self, X: Floats, categorical: tuple[int, ...]) -> None:
        parameters = X.shape[1] - 1
        varies = [j for j in range(parameters) if np.ptp(X[:, j]) > 0.0]
        codes = [j for j in varies if j in categorical]
        self.numbers = [j for j in varies if j not in categorical]
        self.codes = [j for j in codes if not self._spelled_out(X, j)]
        self.low = X[:, self.numbers].min(axis=0, initial=np.inf)
        self.span = X[:, self.numbers].max(axis=0, initial=-np.inf) - self.low

    def _spelled_out(self, X: Floats, column: int) -> bool:
        members = [X[X[:, column] == code][:, self.numbers] for code in np.unique(X[:, column])]
        fixed = [
            j
            for j in range(len(self.numbers))
            if all(np.ptp(rows[:, j]) == 0.0 for rows in members)
        ]
        return len({tuple(rows[0, fixed]) for rows in members}) == len(members)

    def __call__(self, X: Floats) -> Places:
        return Places((X[:, self.numbers] - self.low) / self.span, X[:, self.codes])

    def places(self, rows: Floats) -> Places:
        """Of configurations, rows without a load."""
        return self(np.column_stack([rows, np.zeros(len(rows))]))


class Pooled(ProfileEstimator):
    """log KPI = base(c) + shape(log wl - capacity(c)) + residual(c, log wl), stacked.

    Parameters
    ----------
    categorical : tuple of int
        Columns of X that hold codes.
    ceiling : float or None
        Log of the KPI's ceiling.
    random_state : int
        Deals the folds.

    Attributes
    ----------
    weight_ : float
        Of the law, from 0 to 1; the rest is the process without a law.
    law_ : Law
    widening_ : float
        Factor on the standard deviation, from held-out errors.
    coefficients_ : ndarray
        Weight, widening, misfit, shape, then capacity and base of each configuration.
    """

    def __init__(
        self,
        categorical: tuple[int, ...] = (),
        ceiling: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.categorical = categorical
        self.ceiling = ceiling
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Self:
        """Fit log KPI `y` (n,) to the table `X` (n, d); `noise` (n,) is the sd of each y."""
        X, y, sd = self._checked(X, y, noise)
        with one_thread():
            self._fit(X, y, np.full(len(y), UNKNOWN_LOG_SD) if sd is None else sd)
        return self

    def _fit(self, X: Floats, y: Floats, noise: Floats) -> None:
        self.encoder_ = Encoder(X, self.categorical)
        self.rows_, place = np.unique(X[:, :-1], axis=0, return_inverse=True)
        ceiling = np.inf if self.ceiling is None else self.ceiling
        self.samples_ = Samples(place.reshape(-1), X[:, -1], np.minimum(y, ceiling), noise, ceiling)
        self.places_ = self.encoder_.places(self.rows_)
        self.law_ = fitted(self.places_, self.samples_)
        self._finish(point_numbers(X))

    def fit_over(self, rows: Floats, samples: Samples) -> Self:
        """Fit samples of configurations `rows` (k, d - 1), of which some may have none yet."""
        with one_thread():
            self.encoder_ = Encoder(np.column_stack([rows, np.zeros(len(rows))]), self.categorical)
            self.rows_, self.samples_ = rows, samples
            self.places_ = self.encoder_.places(rows)
            self.law_ = fitted(self.places_, samples)
            self._finish(point_numbers(np.column_stack([samples.place, samples.x])))
        return self

    def update(self, samples: Samples) -> Self:
        """Take new samples of the same configurations in; shape, amplitudes and weights stay.

        The law follows; what it leaves, and the process without a law, wait for the next fit.
        """
        with one_thread():
            self.samples_ = self.law_.samples = samples
            self.law_.sweep(2)
        return self

    def variances(self, place: np.ndarray, x: Floats) -> tuple[Floats, Floats]:
        """At loads x (m,) of configurations `place` (m,): variance of the law, and of the rest."""
        law = self.law_
        _, variance, u = law.predict(
            x, law.capacity.posterior[place], law.capacity.variance[place],
            law.base.posterior[place], law.base.variance[place],
        )  # fmt: skip
        with one_thread():
            _, rest = self.residual_.at(self._places(place), place, np.clip(u, -4, 4))
            _, loose = self.plain_.at(self._places(place), place, x)
        return variance, self.weight_ * rest + (1.0 - self.weight_) * loose

    def _finish(self, points: np.ndarray) -> None:
        self._fit_fields(learn=True)
        self._stack(points)
        self.coefficients_ = np.concatenate(
            [
                [self.weight_, self.widening_, self.law_.misfit],
                self.law_.theta, self.law_.capacity.posterior, self.law_.base.posterior,
            ]
        )  # fmt: skip

    def _fit_fields(self, learn: bool) -> None:
        self.residual_, self.plain_, self.level_ = self._fields(
            self.law_, self.samples_, None, learn
        )

    def _fields(
        self, law: Law, samples: Samples, known: tuple[Field, Field] | None, learn: bool
    ) -> tuple[Field, Field, float]:
        places = self._places(samples.place)
        mean, variance, u = law.predict(
            samples.x, law.capacity.posterior[samples.place], law.capacity.variance[samples.place],
            law.base.posterior[samples.place], law.base.variance[samples.place],
        )  # fmt: skip
        # Where the ceiling cuts both there is no residual to learn from.
        residual, plain = Field(0.15, 0.5), Field(max(float(np.std(samples.y)), 1e-3), 0.5)
        if known:
            residual.theta, plain.theta = known[0].theta.copy(), known[1].theta.copy()
        residual.fit(
            places, samples.place, np.clip(u, -4, 4), samples.y - mean,
            samples.noise**2 + variance + 0.02**2, learn,
        )  # fmt: skip
        level = float(np.mean(samples.y))
        plain.fit(
            places, samples.place, samples.x, samples.y - level, samples.noise**2 + 0.02**2, learn
        )
        return residual, plain, level

    def _places(self, place: np.ndarray) -> Places:
        return Places(self.places_.numbers[place], self.places_.codes[place])

    def _stack(self, points: np.ndarray) -> None:
        """Weights by error on held-out configurations and points, all else frozen."""
        s = self.samples_
        held: list[tuple[Floats, Floats, Floats, Floats, Floats, Floats]] = []
        groups = [points]
        if len(self.rows_) >= FOLDS:
            groups.append(s.place)
        if len(np.unique(points)) < FOLDS:
            self.weight_, self.widening_ = 0.5, 1.5
            return
        for group in groups:
            folds = folds_of(group, FOLDS, self.random_state)
            for fold in range(FOLDS):
                kept, out = folds != fold, np.flatnonzero(folds == fold)
                part = Samples(s.place[kept], s.x[kept], s.y[kept], s.noise[kept], s.ceiling)
                law = _warm(self.law_, part)
                residual, plain, level = self._fields(
                    law, part, (self.residual_, self.plain_), False
                )
                where = self._places(s.place[out])
                mean, variance, u = law.predict(
                    s.x[out], law.capacity.posterior[s.place[out]],
                    law.capacity.variance[s.place[out]], law.base.posterior[s.place[out]],
                    law.base.variance[s.place[out]],
                )  # fmt: skip
                extra, doubt = residual.at(where, s.place[out], np.clip(u, -4, 4))
                free, loose = plain.at(where, s.place[out], s.x[out])
                held.append(
                    (
                        np.minimum(mean + extra, s.ceiling), variance + doubt,
                        np.minimum(free + level, s.ceiling), loose, s.y[out], s.noise[out],
                    )
                )  # fmt: skip
        law_mean, law_var, free_mean, free_var, y, noise = (
            np.concatenate(h) for h in zip(*held, strict=True)
        )
        a, b = y - law_mean, y - free_mean
        self.weight_ = law_weight(a, b, 1.0 / (noise**2 + 0.1**2))
        error = np.abs(self.weight_ * a + (1.0 - self.weight_) * b)
        sd = np.sqrt(self.weight_ * law_var + (1.0 - self.weight_) * free_var + noise**2)
        self.widening_ = float(np.clip(np.quantile(error / sd, 0.95) / NORMAL_95, 1.0, 4.0))

    def _moments(self, X: ArrayLike) -> tuple[Floats, Floats]:
        rows = self._rows(X)
        places = self.encoder_(rows)
        known = {row.tobytes(): i for i, row in enumerate(self.rows_)}
        unique, back = np.unique(rows[:, :-1], axis=0, return_inverse=True)
        back = back.reshape(-1)
        number = np.array([known.get(row.tobytes(), -1) for row in unique], dtype=int)
        spots = self.encoder_.places(unique)
        law = self.law_
        capacity, variance = law.capacity.at(spots)
        base, doubt = law.base.at(spots)
        seen = number >= 0
        capacity[seen], variance[seen] = (
            law.capacity.posterior[number[seen]],
            law.capacity.variance[number[seen]],
        )
        base[seen], doubt[seen] = law.base.posterior[number[seen]], law.base.variance[number[seen]]
        x, c = rows[:, -1], number[back]
        mean, spread, u = law.predict(x, capacity[back], variance[back], base[back], doubt[back])
        out_mean, out_var = np.empty(len(x)), np.empty(len(x))
        for begin in range(0, len(x), 2000):
            part = slice(begin, begin + 2000)
            where = Places(places.numbers[part], places.codes[part])
            extra, more = self.residual_.at(where, c[part], np.clip(u[part], -4, 4))
            free, loose = self.plain_.at(where, c[part], x[part])
            out_mean[part] = self.weight_ * np.minimum(
                mean[part] + extra, self.samples_.ceiling
            ) + (1.0 - self.weight_) * np.minimum(free + self.level_, self.samples_.ceiling)
            out_var[part] = self.weight_ * (spread[part] + more) + (1.0 - self.weight_) * loose
        return out_mean, np.sqrt(out_var) * self.widening_

    def predict(self, X: ArrayLike) -> Floats:
        """Mean log KPI at `X` (m, d), as shape (m,)."""
        with one_thread():
            return self._moments(X)[0]

    def predict_band(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """95 % band of the mean log KPI at `X` (m, d), each bound of shape (m,)."""
        with one_thread():
            mean, sd = self._moments(X)
        upper = np.minimum(mean + NORMAL_95 * sd, self.samples_.ceiling)
        return mean - NORMAL_95 * sd, upper


def law_weight(a: Floats, b: Floats, trust: Floats) -> float:
    """Weight of the law from held-out errors `a` of the law and `b` of the model without, (n,).

    The weight with the least squared error, but all to the law unless less is better by twice the
    standard error of the difference: both sets of errors hold the same noise.
    """
    apart = float(np.sum(trust * (a - b) ** 2))
    if apart <= 0.0:
        return 1.0
    best = float(np.clip(np.sum(trust * b * (b - a)) / apart, 0.0, 1.0))
    gain = trust * (a**2 - (best * a + (1.0 - best) * b) ** 2)
    sure = gain.sum() > 2.0 * np.sqrt(len(gain)) * gain.std()
    return best if sure else 1.0


def _warm(law: Law, samples: Samples) -> Law:
    """The law with other samples, all but the sites frozen."""
    import copy

    other = copy.copy(law)
    other.samples = samples
    other.capacity, other.base = copy.copy(law.capacity), copy.copy(law.base)
    n = len(law.capacity.places)
    gone = np.bincount(samples.place, minlength=n) == 0
    other.capacity.set_sites(law.capacity.mean, np.where(gone, 0.0, law.capacity.precision))
    other.base.set_sites(law.base.mean, np.where(gone, 0.0, law.base.precision))
    other.sweep(3)
    return other
