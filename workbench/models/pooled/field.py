"""Gaussian processes over parameters and load: what a law leaves, and the model without a law."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

from workbench.models.base import Floats
from workbench.models.pooled.surface import Places, matern

MOST = 2000
"""Most samples that a field is conditioned on, drawn by a seed."""
LEARNT = 300
"""Most samples that its amplitudes and reaches are learned from."""
TOGETHER = 6
"""Of one configuration among those: enough to tell its own luck from what all share."""
ROWS = 128
"""Of a kernel, computed at once: they stay in the processor's cache."""
AMPLITUDES = 4
_SPREAD = (1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5)
"""Prior standard deviations of the logs of amplitudes and reaches."""
_ACROSS = 0.7
"""Prior guess of the distance in the unit cube over which a parameter matters."""

Points = tuple[Places, np.ndarray, Floats]
"""Places, configurations and log loads of points, (m,) each."""


class GaussianField:
    """GP over log load and parameters with the kernel

    a1 M(load/l1) + a2 M(|(load/l2, parameters/l)|) + [same configuration] (a3 M(load/l3) + a4).

    M is Matérn 3/2. What depends on the load alone is common to all; each parameter has a reach of
    its own, so that one without influence pools its values; a configuration has its own luck.

    Parameters
    ----------
    scale : prior guess of the standard deviations.
    reach : distance in log load over which the field varies.
    columns : how many parameters there are.
    """

    def __init__(self, scale: float, reach: float, columns: int) -> None:
        begin = [scale, scale, 0.5 * scale, 0.3 * scale, reach, reach, reach]
        self._guess = np.log([*begin, *[_ACROSS] * columns])
        self._spread = np.array([*_SPREAD, *[1.0] * columns])
        self.theta = self._guess.copy()

    def fit(
        self, places: Places, c: np.ndarray, x: Floats, y: Floats, variance: Floats, learn: bool
    ) -> GaussianField:
        """Condition on y (n,) of given variance (n,) at places, configurations and loads."""
        self.chosen = drawn(len(y), MOST)
        self.places = places.of(self.chosen)
        self.c, self.x = c[self.chosen], x[self.chosen]
        self.y, self.variance = y[self.chosen], variance[self.chosen] + 1e-6
        if learn and len(self.y) > 3:
            self._learn()
        kernel = self._kernel(self.places, self.c, self.x)
        kernel[np.diag_indices_from(kernel)] += self.variance
        self._factor = cho_factor(kernel, lower=True)
        self._alpha = cho_solve(self._factor, self.y)
        return self

    def at(
        self, places: Places, c: np.ndarray, x: Floats, spread: bool = True
    ) -> tuple[Floats, Floats]:
        """Mean and variance at points, each (m,); the variance, which is most of the work, is zero
        without `spread`."""
        kernel = self._kernel(places, c, x)
        mean = np.asarray(kernel @ self._alpha)
        if not spread:
            return mean, np.zeros(len(x))
        half = self._half(kernel)
        known = np.einsum("ij,ij->j", half, half)
        return mean, np.maximum(self._every - known, 1e-12)

    def mean(self, places: Places, c: np.ndarray, x: Floats) -> Floats:
        """Mean at points, (m,)."""
        return self.at(places, c, x, spread=False)[0]

    def covariance(self, places: Places, c: np.ndarray, x: Floats) -> Floats:
        """Posterior covariance of points, (m, m)."""
        half = self._half(self._kernel(places, c, x))
        points = places, c, x
        return _kernel(self.theta, points, points) - half.T @ half

    def without(self, *dealt: np.ndarray) -> list[tuple[Floats, Floats]]:
        """Mean and variance at the chosen samples, each given those of other folds only, for each
        way in which folds were `dealt`.

        Folds (n,) are of the chosen samples; blocks of the inverse say it without another fit
        (Rasmussen, Williams: Gaussian Processes for Machine Learning, 5.4.2).
        """
        inverse, _ = dpotri(self._factor[0], lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        found = []
        for folds in dealt:
            mean, variance = np.empty(len(self.y)), np.empty(len(self.y))
            for fold in np.unique(folds):
                out = np.flatnonzero(folds == fold)
                block = np.linalg.inv(inverse[np.ix_(out, out)])
                mean[out] = self.y[out] - block @ self._alpha[out]
                variance[out] = np.diag(block) - self.variance[out]
            found.append((mean, np.maximum(variance, 1e-12)))
        return found

    @property
    def _every(self) -> float:
        return float(np.sum(np.exp(2.0 * self.theta[:AMPLITUDES])))

    def _half(self, kernel: Floats) -> Floats:
        """Root of what the samples say of points whose covariance with them is given (m, n)."""
        return np.asarray(
            solve_triangular(self._factor[0], kernel.T, lower=True, check_finite=False)
        )

    def _kernel(self, places: Places, c: np.ndarray, x: Floats) -> Floats:
        """Covariance of points (m,) with the chosen samples (n,), of shape (m, n)."""
        return _kernel(self.theta, (places, c, x), (self.places, self.c, self.x))

    def _learn(self) -> None:
        """Amplitudes and reaches that make the samples most likely, with a log-normal prior."""
        few = gathered(self.c, LEARNT, TOGETHER)
        places = self.places.of(few)
        c, x, y = self.c[few], self.x[few], self.y[few]
        apart, same, load = places.distances(places), c[:, None] == c, np.abs(x[:, None] - x)
        noise = np.diag(self.variance[few])
        eye = np.eye(len(few))

        def lost(theta: Floats) -> tuple[float, Floats]:
            size, reach = np.exp(2.0 * theta[:AMPLITUDES]), np.exp(theta[AMPLITUDES:])
            distance = np.sqrt(_squares(apart, load, reach))
            terms = [
                size[0] * matern(load / reach[0]), size[1] * matern(distance),
                size[2] * same * matern(load / reach[2]), size[3] * same,
            ]  # fmt: skip
            factor = cho_factor(sum(terms) + noise, lower=True, check_finite=False)
            alpha = cho_solve(factor, y)
            outer = cho_solve(factor, eye) - np.outer(alpha, alpha)
            slope = [2.0 * np.sum(outer * term) for term in terms]
            # d M(d / l) / d log l = 3 (d / l)^2 exp(-sqrt(3) |d / l|).
            fall = [
                outer * size[0] * 3.0 * np.exp(-np.sqrt(3.0) * load / reach[0]),
                outer * size[1] * 3.0 * np.exp(-np.sqrt(3.0) * distance),
                outer * size[2] * 3.0 * same * np.exp(-np.sqrt(3.0) * load / reach[2]),
            ]
            slope += [np.sum(f * (load / r) ** 2) for f, r in zip(fall, reach, strict=False)]
            slope += [np.sum(fall[1] * (a / r) ** 2) for a, r in zip(apart, reach[3:], strict=True)]
            z = (theta - self._guess) / self._spread
            fit = 0.5 * y @ alpha + np.sum(np.log(np.diag(factor[0])))
            return float(fit + 0.5 * z @ z), 0.5 * np.array(slope) + z / self._spread

        found = minimize(
            lost, self.theta, jac=True, method="L-BFGS-B",
            bounds=[(g - 4.0, g + 2.5) for g in self._guess], options={"maxiter": 25, "ftol": 1e-5},
        )  # fmt: skip
        self.theta = found.x


def _kernel(theta: Floats, points: Points, others: Points) -> Floats:
    """Prior covariance of points (m,) with others (n,), of shape (m, n)."""
    places, c, x = points
    others_places, others_c, others_x = others
    size, reach = np.exp(2.0 * theta[:AMPLITUDES]), np.exp(theta[AMPLITUDES:])
    # Points share configurations: what lies between those is computed once for each pair.
    here, at_here = places.distinct()
    there, at_there = others_places.distinct()
    apart = sum((a / r) ** 2 for a, r in zip(here.distances(there), reach[3:], strict=True))
    apart = np.broadcast_to(apart, (len(here), len(there)))[:, at_there]
    found = np.empty((len(x), len(others_x)))
    for begin in range(0, len(x), ROWS):
        part = slice(begin, begin + ROWS)
        load = np.abs(x[part, None] - others_x)
        total = size[1] * matern(np.sqrt((load / reach[1]) ** 2 + apart[at_here[part]]))
        total += size[0] * matern(load / reach[0])
        same = np.nonzero(c[part, None] == others_c)
        total[same] += size[2] * matern(load[same] / reach[2]) + size[3]
        found[part] = total
    return found


def _squares(apart: list[Floats], load: Floats, reach: Floats) -> Floats:
    total = (load / reach[1]) ** 2
    for a, r in zip(apart, reach[3:], strict=True):
        total = total + (a / r) ** 2
    return np.asarray(total)


def drawn(n: int, most: int) -> np.ndarray:
    """Places of all `n`, or of `most` of them drawn by a fixed seed, rising."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def gathered(c: np.ndarray, most: int, together: int) -> np.ndarray:
    """Places of at most `most` samples, up to `together` of each configuration `c` (n,)."""
    if len(c) <= most:
        return np.arange(len(c))
    rng = np.random.default_rng(0)
    order = rng.permutation(len(c))
    by_configuration = order[np.argsort(rng.permutation(c.max() + 1)[c[order]], kind="stable")]
    own = c[by_configuration]
    first = np.flatnonzero(np.r_[True, own[1:] != own[:-1]])
    rank = np.arange(len(own)) - np.repeat(first, np.diff(np.r_[first, len(own)]))
    # The first ones of each configuration, then the second ones where there is room.
    kept = by_configuration[rank < together]
    rest = by_configuration[rank >= together]
    return np.sort(np.concatenate([kept, rest])[:most])
