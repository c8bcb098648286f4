"""The pooled model: a law with its residual process and a process without law, stacked."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from workbench.models.base import Floats
from workbench.models.estimator import ProfileEstimator, one_thread
from workbench.models.folds import folds_of, point_numbers
from workbench.models.pooled.falls import Falls
from workbench.models.pooled.field import GaussianField
from workbench.models.pooled.law import Latent, Law, fitted
from workbench.models.pooled.samples import Samples
from workbench.models.pooled.surface import Places
from workbench.models.scales import NORMAL_95, UNKNOWN_LOG_SD
from workbench.models.table import Ints

METHOD_VERSION = 1
"""Raised by hand when the same samples give another model: benchmarks keep results by it."""
FOLDS = 4
EVENLY = 41
"""Loads of each configuration that stand for its whole range."""
ACROSS = 0.3
"""Width of the kernel by which densities along u are told."""
CHUNK = 1000
"""Points predicted at once, which bounds memory."""
FEW = 20
"""Held-out errors of a kind below which those of both kinds tell its weight and widening."""


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
    weight_ : ndarray of shape (2,)
        Of the law, from 0 to 1, at configurations without samples of their own and at those with
        some; the rest is the process without a law.
    law_ : Law
    falls_ : Falls
        Of throughput under overload; what fell is no sample of the law's.
    widening_ : ndarray of shape (2,)
        Factors on the standard deviation, from held-out errors, likewise.
    coefficients_ : ndarray
        Weights, widenings, misfit, shape, then capacity and base of each configuration, and what
        each fall takes away.
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
        points, self.falls_ = point_numbers(X), Falls.of(self.law_, self.samples_)
        if self.falls_.found:
            # The law, whose shape is one for all, learns from what did not fall.
            stayed = ~self.falls_.held
            self.samples_, points = self.samples_.of(stayed), points[stayed]
            self.law_ = fitted(self.places_, self.samples_)
        self._finish(points)

    def fit_over(self, rows: Floats, samples: Samples) -> Self:
        """Fit samples of configurations `rows` (k, d - 1), of which some may have none yet."""
        with one_thread():
            self.encoder_ = Encoder(np.column_stack([rows, np.zeros(len(rows))]), self.categorical)
            self.rows_, self.samples_ = rows, samples
            self.places_ = self.encoder_.places(rows)
            self.law_, self.falls_ = fitted(self.places_, samples), Falls.none(samples)
            self._finish(point_numbers(np.column_stack([samples.place, samples.x])))
        return self

    def update(self, samples: Samples) -> Self:
        """Take new samples of the same configurations in; shape, amplitudes and weights stay.

        The law follows; what it leaves, and the process without a law, wait for the next fit. A
        configuration that has its first sample is weighed from then on as one that has some.
        """
        with one_thread():
            known = len(self.samples_)
            self.samples_ = samples
            self.law_.follow(samples)
            self.law_.sweep(2, np.unique(samples.place[known:]))
        return self

    def doubts(self, place: np.ndarray, x: Floats) -> Floats:
        """Covariance (m, m) of log KPI at loads x (m,) of configurations `place` (m,) by all doubts
        but those of capacities and shape.

        What the ceiling cuts counts as far as the KPI may lie below it.
        """
        law, places = self.law_, self.places_.of(place)
        with one_thread():
            drift, _ = law.drift_at(places, place, x)
            nothing = np.zeros(len(x))
            own = law.latent.at(place)._replace(doubt=nothing, loose=nothing)
            base = own.base + drift
            _, variance, u = law.predict(x, own._replace(base=base))
            near = np.clip(u, -4, 4)
            level = base + law.family.slope * x
            whole = law.kpi(level, u)
            share = law.share(level, whole)
            rest = law.base.covariance[np.ix_(place, place)]
            if law.field is not None:
                rest = rest + law.field.covariance(places, place, x)
            steep = law.slope(level, u) * u
            loose = np.where(place[:, None] == place, law.stretch_variance[place], 0.0)
            rest = rest * np.outer(share, share) + loose * np.outer(steep, steep)
            rest = rest + self.residual_.covariance(places, place, near)
            middle = whole + self.residual_.mean(places, place, near)
            weight = self.weights[place]
            if weight.min() < 1.0:
                loose = self.plain_.covariance(places, place, x)
                of_law, of_plain = np.sqrt(weight), np.sqrt(1.0 - weight)
                rest = np.outer(of_law, of_law) * rest + np.outer(of_plain, of_plain) * loose
                free = self.plain_.mean(places, place, x) + self.level_
                middle = weight * middle + (1.0 - weight) * free
        sd = np.sqrt(np.diag(rest) + variance + 0.1**2)
        below = ndtr((self.samples_.ceiling - middle) / sd)
        return np.asarray(rest * np.outer(below, below))

    @property
    def weights(self) -> Floats:
        """Of the law at each own configuration, (k,)."""
        return np.asarray(self.weight_[self._sampled])

    @property
    def widenings(self) -> Floats:
        """Of the standard deviation at each own configuration, (k,)."""
        return np.asarray(self.widening_[self._sampled])

    @property
    def _sampled(self) -> Ints:
        """1 where an own configuration has samples, 0 where it has none, (k,)."""
        return np.minimum(np.bincount(self.samples_.place, minlength=len(self.rows_)), 1)

    def _finish(self, points: np.ndarray) -> None:
        self._fit_fields()
        self._stack(points)
        self.falls_.over(self)
        self.coefficients_ = np.concatenate(
            [
                self.weight_, self.widening_, [self.law_.misfit], self.law_.theta,
                self.law_.capacity.posterior, self.law_.base.posterior,
                self.falls_.coefficients,
            ]
        )  # fmt: skip

    def _fit_fields(self) -> None:
        s, law = self.samples_, self.law_
        places = self.places_.of(s.place)
        mean, variance, u = law.moments(s.place, s.x, law.drift, law.drift_variance)
        columns = places.columns
        # Where the ceiling cuts both there is no residual to learn from.
        self.residual_ = GaussianField(0.15, 0.5, columns).fit(
            places, s.place, np.clip(u, -4, 4), s.y - mean,
            s.noise**2 + variance + 0.02**2, learn=True,
        )  # fmt: skip
        self.level_ = float(np.mean(s.y))
        self.plain_ = GaussianField(max(float(np.std(s.y)), 1e-3), 0.5, columns).fit(
            places, s.place, s.x, s.y - self.level_, s.noise**2 + 0.02**2, learn=True
        )

    def _stack(self, points: np.ndarray) -> None:
        """Weights and widenings by error on held-out points and configurations, all else frozen.

        An error is of one of two kinds: some of the configuration's own samples were kept, so that
        the law knows its capacity, or none were, and the law has to guess it.
        """
        s = self.samples_
        if len(np.unique(points)) < FOLDS:
            self.weight_, self.widening_ = np.full(2, 0.5), np.full(2, 1.5)
            return
        groups = [points]
        if len(self.rows_) >= FOLDS:
            groups.append(s.place)
        rows = self.residual_.chosen
        dealt = [folds_of(group, FOLDS, self.random_state) for group in groups]
        drifts = self.law_.drift_without(*dealt)
        rests = self.residual_.without(*(folds[rows] for folds in dealt))
        frees = self.plain_.without(*(folds[rows] for folds in dealt))
        held = []
        for folds, (drift, loose), (extra, doubt), (free, slack) in zip(
            dealt, drifts, rests, frees, strict=True
        ):
            mean, variance = np.empty(len(s)), np.empty(len(s))
            is_own = np.empty(len(s), dtype=bool)
            for fold in range(FOLDS):
                kept, out = folds != fold, np.flatnonzero(folds == fold)
                law = _warm(self.law_, kept)
                mean[out], variance[out], _ = law.moments(
                    s.place[out], s.x[out], drift[out], loose[out]
                )
                is_own[out] = np.isin(s.place[out], s.place[kept])
            held.append(
                (
                    s.y[rows] - np.minimum(mean[rows] + extra, s.ceiling), variance[rows] + doubt,
                    s.y[rows] - np.minimum(free + self.level_, s.ceiling), slack,
                    s.noise[rows], is_own[rows],
                )
            )  # fmt: skip
        a, law_var, b, free_var, noise, is_own = (
            np.concatenate(h) for h in zip(*held, strict=True)
        )
        trust = np.tile(self._evenness()[rows], len(groups)) / (noise**2 + 0.1**2)
        kinds = [~is_own, is_own]
        told = [kind if kind.sum() >= FEW else np.ones_like(kind) for kind in kinds]
        self.weight_ = np.array([law_weight(a[kind], b[kind], trust[kind]) for kind in told])
        weight = self.weight_[is_own.astype(int)]
        error = np.abs(weight * a + (1.0 - weight) * b)
        z = error / np.sqrt(weight * law_var + (1.0 - weight) * free_var + noise**2)
        wide = [float(np.quantile(z[kind], 0.95)) / NORMAL_95 for kind in told]
        self.widening_ = np.clip(wide, 1.0, 4.0)

    def _evenness(self) -> Floats:
        """Weights (n,) under which the samples count as if they lay evenly over all loads.

        Most lie where they teach most, near breakpoints, and a model that says the middle of the
        range everywhere would look good there. Densities are compared along u.
        """
        s, law = self.samples_, self.law_
        x = np.linspace(s.x.min(), s.x.max(), EVENLY)
        every = (x - law.capacity.posterior[:, None]) / np.exp(law.stretch)[:, None]
        every = every.ravel()[:: max(every.size // 1000, 1)]
        u = (s.x - law.capacity.posterior[s.place]) / np.exp(law.stretch[s.place])

        def density(of: Floats) -> Floats:
            grid = np.linspace(u.min(), u.max(), 200)
            near = np.exp(-0.5 * np.square((grid[:, None] - of) / ACROSS))
            return np.asarray(np.interp(u, grid, near.mean(axis=1)))

        weight = density(every) / density(u) + 1e-9
        return np.asarray(np.minimum(weight / weight.mean(), 20.0), dtype=float)

    def _moments(self, X: ArrayLike, spread: bool = True) -> tuple[Floats, Floats]:
        """Mean and standard deviation of log KPI at `X` (m, d), each (m,); without `spread` the
        latter is left out, which is most of the work."""
        rows = self._rows(X)
        places = self.encoder_(rows)
        known = {row.tobytes(): i for i, row in enumerate(self.rows_)}
        unique, back = np.unique(rows[:, :-1], axis=0, return_inverse=True)
        back = back.reshape(-1)
        number = np.array([known.get(row.tobytes(), -1) for row in unique], dtype=int)
        spots = self.encoder_.places(unique)
        seen = number >= 0
        law = self.law_
        own = law.latent.at(number)
        drawn = law.capacity.at(spots), law.base.at(spots)
        unseen = Latent(*drawn[0], *drawn[1], np.zeros(len(spots)), np.full(len(spots), law.tau**2))
        latent = Latent(*(np.where(seen, a, b) for a, b in zip(own, unseen, strict=True)))
        sampled = np.where(seen, self._sampled[number], 0)
        return self._along(
            places, number[back], rows[:, -1], latent.at(back), sampled[back], spread
        )

    def own_moments(self, place: np.ndarray, x: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of log KPI at loads x (m,) of own configurations `place`
        (m,), each (m,)."""
        with one_thread():
            own, sampled = self.law_.latent.at(place), self._sampled[place]
            return self._along(self.places_.of(place), place, x, own, sampled)

    def _along(
        self, places: Places, c: np.ndarray, x: Floats, latent: Latent, sampled: Ints,
        spread: bool = True,
    ) -> tuple[Floats, Floats]:  # fmt: skip
        """Moments at loads x (m,) of configurations `c` (m,), -1 where it is none of the own ones;
        `latent` are theirs, each (m,), `sampled` (m,) is 1 where there are samples, else 0."""
        law = self.law_
        means, variances, ceiling = np.empty(len(x)), np.empty(len(x)), self.samples_.ceiling
        for begin in range(0, len(x), CHUNK):
            part = slice(begin, begin + CHUNK)
            where = Places(places.numbers[part], places.codes[part])
            drift, wander = law.drift_at(where, c[part], x[part], spread)
            mine = latent.at(part).drifted(drift, wander)
            mean, variances[part], u = law.predict(x[part], mine)
            extra, more = self.residual_.at(where, c[part], np.clip(u, -4, 4), spread)
            free, slack = self.plain_.at(where, c[part], x[part], spread)
            weight = self.weight_[sampled[part]]
            means[part] = weight * np.minimum(mean + extra, ceiling)
            means[part] += (1.0 - weight) * np.minimum(free + self.level_, ceiling)
            variances[part] = weight * (variances[part] + more) + (1.0 - weight) * slack
        fallen, doubt = self.falls_.at(c, x)
        means += fallen
        variances += doubt
        return means, np.sqrt(variances) * self.widening_[sampled]

    def predict(self, X: ArrayLike) -> Floats:
        """Mean log KPI at `X` (m, d), as shape (m,)."""
        with one_thread():
            return self._moments(X, spread=False)[0]

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


def _warm(law: Law, kept: np.ndarray) -> Law:
    """The law with some of its samples (n,), true where kept; all but the sites frozen."""
    import copy

    other = copy.copy(law)
    s = law.samples
    other.samples = s.of(kept)
    other.drift, other.drift_variance = law.drift[kept], law.drift_variance[kept]
    other.capacity, other.base = copy.copy(law.capacity), copy.copy(law.base)
    gone = np.bincount(s.place[kept], minlength=len(law.capacity.places)) == 0
    other.capacity.set_sites(law.capacity.mean, np.where(gone, 0.0, law.capacity.precision))
    other.base.set_sites(law.base.mean, np.where(gone, 0.0, law.base.precision))
    other.sweep(3)
    return other
