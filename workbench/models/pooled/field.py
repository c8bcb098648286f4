"""Gaussian processes over parameters and load: what a law leaves, and the model without a law."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize

from workbench.models.base import Floats
from workbench.models.pooled.surface import Places, matern

MOST = 700
"""Most samples that a field is conditioned on, evenly over the table."""
LEARNT = 250
"""Most samples that its amplitudes are learned from."""


class Field:
    """GP with kernel a1 M(load) + a2 M(load) M(parameters) + a3 M(load) [same configuration].

    M is Matérn 3/2; loads in logs over `reach`. What depends on the load alone is common to all.

    Parameters
    ----------
    scale : prior guess of the standard deviations.
    reach : distance in log load over which the field varies.
    """

    def __init__(self, scale: float, reach: float) -> None:
        self._guess = np.log([scale, scale, 0.5 * scale, reach, 0.7])
        self.theta = self._guess.copy()

    def _kernel(self, theta: Floats, apart: list[Floats], same: Floats, load: Floats) -> Floats:
        size = np.exp(theta)
        along = matern(load / size[3])
        across = matern(np.sqrt(np.sum(np.square(apart), axis=0)) / size[4]) if apart else 1.0
        return np.asarray(along * (size[0] ** 2 + size[1] ** 2 * across + size[2] ** 2 * same))

    def _between(
        self, places: Places, c: np.ndarray, x: Floats
    ) -> tuple[list[Floats], Floats, Floats]:
        return (
            places.distances(self.places),
            (c[:, None] == self.c) * 1.0,
            np.abs(x[:, None] - self.x),
        )

    def fit(
        self, places: Places, c: np.ndarray, x: Floats, y: Floats, variance: Floats, learn: bool
    ) -> Field:
        """Condition on y (n,) of given variance (n,) at places, configurations and loads."""
        chosen = np.unique(np.linspace(0, len(y) - 1, min(len(y), MOST)).astype(int))
        self.places = Places(places.numbers[chosen], places.codes[chosen])
        self.c, self.x = c[chosen], x[chosen]
        self.y, self.variance = y[chosen], variance[chosen] + 1e-8
        if learn and len(self.y) > 3:
            self._learn()
        kernel = self._kernel(self.theta, *self._between(self.places, self.c, self.x))
        kernel[np.diag_indices_from(kernel)] += self.variance
        self._factor = cho_factor(kernel, lower=True)
        self._alpha = cho_solve(self._factor, self.y)
        return self

    def _learn(self) -> None:
        chosen = np.unique(np.linspace(0, len(self.y) - 1, min(len(self.y), LEARNT)).astype(int))
        apart, same, load = self._between(self.places, self.c, self.x)
        pick = np.ix_(chosen, chosen)
        apart, same, load = [a[pick] for a in apart], same[pick], load[pick]
        y, noise = self.y[chosen], np.diag(self.variance[chosen])

        def lost(theta: Floats) -> float:
            factor = cho_factor(self._kernel(theta, apart, same, load) + noise, lower=True)
            z = (theta - self._guess) / np.array([1.0, 1.0, 1.0, 0.5, 0.5])
            fit = 0.5 * y @ cho_solve(factor, y) + np.sum(np.log(np.diag(factor[0])))
            return float(fit + 0.5 * z @ z)

        found = minimize(
            lost, self.theta, method="L-BFGS-B",
            bounds=[(g - 4.0, g + 2.5) for g in self._guess], options={"maxiter": 12, "ftol": 1e-4},
        )  # fmt: skip
        self.theta = found.x

    def at(self, places: Places, c: np.ndarray, x: Floats) -> tuple[Floats, Floats]:
        """Mean and variance at points, each (m,)."""
        kernel = self._kernel(self.theta, *self._between(places, c, x))
        half = solve_triangular(self._factor[0], kernel.T, lower=True)
        every = float(np.sum(np.exp(2.0 * self.theta[:3])))
        return kernel @ self._alpha, np.maximum(every - np.sum(half**2, axis=0), 1e-12)
