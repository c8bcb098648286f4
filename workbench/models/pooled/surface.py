"""A quantity of each configuration (log capacity, base level) as a smooth surface plus its luck.

Gaussian process over the parameters, known through one Gaussian site per configuration: a mean and
a precision, zero where nothing was learned (Rasmussen, Williams: Gaussian Processes for Machine
Learning, 3.6).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrs, dtrtrs
from scipy.optimize import minimize

from workbench.models.base import Floats

WIDE = 3.0
"""Prior standard deviation of the level, in logs: a factor of 20 either way."""
LEAST = 1e-3
"""Smallest standard deviation of a configuration's own luck; keeps matrices regular."""


def matern(distance: Floats) -> Floats:
    """Matérn correlation with smoothness 3/2: continuous slopes, so that a gain may saturate."""
    scaled = np.sqrt(3.0) * distance
    fall = np.exp(-scaled)
    scaled += 1.0
    scaled *= fall
    return np.asarray(scaled)


@dataclass(frozen=True)
class Places:
    """Configurations in the unit cube: numbers from 0 to 1, and codes of categories."""

    numbers: Floats
    codes: Floats

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def columns(self) -> int:
        return int(self.numbers.shape[1] + self.codes.shape[1])

    def of(self, rows: np.ndarray) -> Places:
        """Those at `rows`, in that order, repeated where they are."""
        return Places(self.numbers[rows], self.codes[rows])

    def distinct(self) -> tuple[Places, np.ndarray]:
        """Each place once, and for each of these its number there."""
        both = np.column_stack([self.numbers, self.codes])
        unique, number = np.unique(both, axis=0, return_inverse=True)
        split = self.numbers.shape[1]
        return Places(unique[:, :split], unique[:, split:]), number.reshape(-1)

    def distances(self, other: Places) -> list[Floats]:
        """For each column, |difference| of shape (n, m); 1 between unlike categories."""
        apart = [
            np.abs(a[:, None] - b) for a, b in zip(self.numbers.T, other.numbers.T, strict=True)
        ]
        unlike = [(a[:, None] != b) * 1.0 for a, b in zip(self.codes.T, other.codes.T, strict=True)]
        return apart + unlike


def parts(here: Places, there: Places, curved: int) -> list[Floats]:
    """Covariance of unit variance for: each number's line, each column's curve, all together."""
    apart = here.distances(there)
    lines = [
        (a[:, None] - 0.5) * (b - 0.5) * 4.0
        for a, b in zip(here.numbers.T, there.numbers.T, strict=True)
    ]
    curves = [matern(d / 0.7) for d in apart]
    together = [matern(np.sqrt(np.sum(np.square(apart), axis=0)) / 0.7)] if curved > 1 else []
    return [*lines, *curves, *together]


class Surface:
    """Posterior of one quantity over configurations.

    Parameters
    ----------
    places : Places
        Of the configurations that have sites.
    level : float
        Prior mean.
    scale : float
        Prior guess of the amplitudes.
    luck : float
        Prior guess of the standard deviation of what no smooth function follows.
    """

    def __init__(self, places: Places, level: float, scale: float, luck: float) -> None:
        self.places = places
        self.level = level
        self._parts = parts(places, places, places.columns)
        n_lines = places.numbers.shape[1]
        guess = [np.log(scale)] * n_lines
        guess += [np.log(0.5 * scale)] * places.columns
        guess += [np.log(0.2 * scale)] * (len(self._parts) - len(guess))
        self._guess = np.array([*guess, np.log(luck)])
        self.theta = self._guess.copy()
        self.mean = np.full(len(places), level)
        self.precision = np.zeros(len(places))
        self._prior_of: Floats | None = None
        self._solve()

    def _prior(self, theta: Floats) -> Floats:
        size = np.exp(2.0 * theta)
        cov = np.full((len(self.places),) * 2, WIDE**2)
        for amount, part in zip(size, self._parts, strict=False):
            cov += amount * part
        np.einsum("ii->i", cov)[:] += size[-1] + LEAST**2
        return cov

    def set_sites(self, mean: Floats, precision: Floats) -> None:
        """What was learned of each configuration; the posterior follows."""
        self.mean, self.precision = mean, precision
        self._solve()

    def _solve(self) -> None:
        """Called a hundred times a fit on a few places: nothing that only checks arguments."""
        if self._prior_of is not self.theta:
            self.prior, self._prior_of = self._prior(self.theta), self.theta
        self._root = np.sqrt(self.precision)
        across = self._root[:, None] * self.prior
        inner = across * self._root
        np.einsum("ii->i", inner)[:] += 1.0
        self._factor = np.linalg.cholesky(inner), True
        half = dtrtrs(self._factor[0], across, lower=1)[0]
        self.covariance = self.prior - half.T @ half
        offsets = dpotrs(self._factor[0], self._root * (self.mean - self.level), lower=1)[0]
        self.weights = self._root * offsets
        self.posterior = self.level + self.prior @ self.weights
        self.variance = np.maximum(np.diag(self.covariance), 1e-10)

    def cavity(self) -> tuple[Floats, Floats]:
        """Mean and variance at each configuration from all others' sites."""
        precision = np.maximum(1.0 / self.variance - self.precision, 1e-6)
        mean = (self.posterior / self.variance - self.precision * self.mean) / precision
        return mean, 1.0 / precision

    def cross(self, places: Places) -> tuple[Floats, Floats]:
        """Prior covariance with new places, (m, n), and their prior variance (m,)."""
        size = np.exp(2.0 * self.theta)
        found = np.full((len(places), len(self.places)), WIDE**2)
        every = np.full(len(places), WIDE**2 + size[-1])
        for amount, part in zip(size, parts(places, self.places, places.columns), strict=False):
            found += amount * part
        n_lines = places.numbers.shape[1]
        for j in range(n_lines):
            every += size[j] * 4.0 * np.square(places.numbers[:, j] - 0.5)
        return found, every + float(np.sum(size[n_lines:-1]))

    def at(self, places: Places) -> tuple[Floats, Floats]:
        """Posterior mean and variance at new configurations, each (m,)."""
        known, every = self.cross(places)
        half = solve_triangular(self._factor[0], self._root[:, None] * known.T, lower=True)
        return self.level + known @ self.weights, np.maximum(every - np.sum(half**2, axis=0), 1e-10)

    def learn(self) -> None:
        """Amplitudes that make the sites most likely, under a wide log-normal prior."""
        used = np.flatnonzero(self.precision > 1e-2)
        if len(used) < 3:
            return
        offsets = self.mean[used] - self.level
        noise = np.diag(1.0 / self.precision[used])
        inside = [part[np.ix_(used, used)] for part in self._parts]
        inside.append(np.eye(len(used)))
        constant = np.full((len(used),) * 2, WIDE**2) + noise

        def loss(theta: Floats) -> tuple[float, Floats]:
            size = np.exp(2.0 * theta)
            cov = constant + LEAST**2 * np.eye(len(used))
            for amount, part in zip(size, inside, strict=True):
                cov += amount * part
            factor = cho_factor(cov, lower=True)
            alpha = cho_solve(factor, offsets)
            inverse = cho_solve(factor, np.eye(len(used)))
            outer = inverse - np.outer(alpha, alpha)
            slope = np.array([a * np.sum(outer * p) for a, p in zip(size, inside, strict=True)])
            z = (theta - self._guess) / 1.5
            value = 0.5 * offsets @ alpha + np.sum(np.log(np.diag(factor[0]))) + 0.5 * z @ z
            return float(value), slope + z / 1.5

        bounds = [(g - 6.0, g + 3.0) for g in self._guess]
        found = minimize(
            loss, self.theta, jac=True, method="L-BFGS-B", bounds=bounds,
            options={"maxiter": 40, "ftol": 1e-5},
        )  # fmt: skip
        self.theta = found.x
        self._solve()
