"""log KPI = base(c) + shape(log wl - capacity(c)), at most the ceiling: the law and its fit.

Two latent surfaces over configurations c, and one shape for all. What the samples of one
configuration say about its capacity is rarely normal ("above 3,000", "between these two"), so each
likelihood is evaluated on a grid and its first two moments become the surface's site: expectation
propagation (Minka 2001; Rasmussen, Williams, 3.6). The tilted distribution's normaliser is the
density of a configuration's samples given all the *other* configurations, which chooses the
family of shapes at no further cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from workbench.models.base import Floats
from workbench.models.pooled.shapes import FAMILIES, KNOTS, Family, Shape, corrected
from workbench.models.pooled.surface import Places, Surface

NODES = np.linspace(-4.5, 4.5, 37)
"""Grid of a configuration's capacity, in standard deviations of the guess at hand."""
TAIL = 4.0
"""Degrees of freedom of the noise (METHOD.md 12, 3)."""
SHAPE_ROWS = 1500
"""Most samples that fit a shape's parameters."""
_HERMITE, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass
class Samples:
    """A table in the law's terms: place of the configuration, log wl, log KPI, noise, each (n,)."""

    place: np.ndarray
    x: Floats
    y: Floats
    noise: Floats
    ceiling: float

    def __len__(self) -> int:
        return len(self.y)


class Law:
    """Fitted by `fit`; `sweep` alone takes new sites with all else frozen.

    Attributes
    ----------
    capacity, base : Surface
    shape : Shape
    misfit : float, standard deviation of what the law leaves beyond the noise.
    evidence : float, mean log density of a configuration's samples given the others.
    """

    def __init__(self, family: Family, places: Places, samples: Samples) -> None:
        self.family = family
        self.samples = samples
        self.theta = np.array(family.start)
        self.shape = Shape.of(family, self.theta)
        self.misfit = 0.1
        low, high = float(samples.x.min()), float(samples.x.max())
        rest = samples.y - family.slope * samples.x
        level = float(np.quantile(rest, 0.9 if family.slope else 0.1))
        self.capacity = Surface(places, 0.5 * (low + high), 0.5, 0.1)
        self.base = Surface(places, level, 0.2, 0.05)
        self._span = (low - 2.0, high + 2.0)
        self._begin_base(rest)
        self.evidence = -np.inf

    def _begin_base(self, rest: Floats) -> None:
        """Sites of the base from the flat end of each configuration, as a first guess."""
        n = len(self.base.places)
        lowest = np.full(n, np.inf)
        np.minimum.at(lowest, self.samples.place, self.samples.x)
        first = self.samples.x <= lowest[self.samples.place] + 0.5
        free = first & (self.samples.y < self.samples.ceiling - 1e-9)
        count = np.bincount(self.samples.place[free], minlength=n)
        total = np.bincount(self.samples.place[free], rest[free], minlength=n)
        self.base.set_sites(
            np.asarray(total / np.maximum(count, 1), dtype=float), np.where(count > 0, 4.0, 0.0)
        )

    def fit(self, rounds: int = 6) -> Law:
        """Alternate sites, shape, misfit and the surfaces' amplitudes."""
        for turn in range(rounds):
            self.sweep(3 if turn else 5)
            self._learn_shape()
            self._learn_misfit()
            if turn % 2 == 1:
                self.capacity.learn()
                self.base.learn()
        self.sweep(3)
        return self

    def sweep(self, times: int) -> None:
        """Expectation propagation, all sites at once, damped."""
        for _ in range(times):
            self._capacity_sites()
            self._base_sites()

    def _scale(self) -> Floats:
        return np.asarray(np.sqrt(self.samples.noise**2 + self.misfit**2))

    def curve(self, place: np.ndarray, x: Floats, capacity: Floats) -> Floats:
        """log KPI of samples (n,) at capacities (n, k)."""
        base = self.base.posterior[place] + self.family.slope * x
        return np.asarray(
            np.minimum(base[:, None] + self.shape(x[:, None] - capacity), self.samples.ceiling)
        )

    def _capacity_sites(self) -> None:
        s, n = self.samples, len(self.capacity.places)
        cavity, variance = self.capacity.cavity()
        centre = np.clip(cavity, *self._span)
        width = np.minimum(np.sqrt(variance), 0.5 * (self._span[1] - self._span[0]))
        noise = np.sqrt(self._scale() ** 2 + self.base.variance[s.place])
        for turn in range(3):
            nodes = centre[:, None] + width[:, None] * NODES
            step = width * (NODES[1] - NODES[0])
            here = nodes[s.place]
            value = self.curve(s.place, s.x, here)
            # Between two nodes the curve moves by this much: a grid cannot tell them apart.
            blur = np.abs(np.gradient(value, axis=1)) * 0.5
            scale = np.sqrt(noise[:, None] ** 2 + blur**2)
            z = (s.y[:, None] - value) / scale
            dense = -0.5 * (TAIL + 1.0) * np.log1p(z**2 / TAIL) - np.log(scale)
            total = np.zeros((n, len(NODES)))
            np.add.at(total, s.place, dense)
            outside = np.maximum(self._span[0] - nodes, 0) + np.maximum(nodes - self._span[1], 0)
            total += -0.5 * (nodes - cavity[:, None]) ** 2 / variance[:, None] - 2.0 * outside**2
            most = total.max(axis=1, keepdims=True)
            weight = np.exp(total - most)
            mass = weight.sum(axis=1)
            mean = (weight * nodes).sum(axis=1) / mass
            var = (weight * (nodes - mean[:, None]) ** 2).sum(axis=1) / mass
            # Half a step is the least that this grid can see.
            var = np.maximum(var, (0.3 * step) ** 2)
            centre, width = mean, np.sqrt(var) * (1.3 if turn == 0 else 1.0)
        log_mass = most[:, 0] + np.log(mass * step) - 0.5 * np.log(2.0 * np.pi * variance)
        self.evidence = float(np.sum(log_mass)) / max(len(s), 1)
        has = np.bincount(s.place, minlength=n) > 0
        precision = np.maximum(1.0 / var - 1.0 / variance, 0.0)
        precision = np.where(has, np.minimum(precision, 1e6), 0.0)
        site = np.where(
            precision > 0.0, (mean / var - cavity / variance) / np.maximum(precision, 1e-12), cavity
        )
        site = np.clip(site, self._span[0] - 4, self._span[1] + 4)
        old, was = self.capacity.precision, self.capacity.mean
        fresh = 0.7 * precision + 0.3 * old
        blend = 0.7 * precision * site + 0.3 * old * was
        self.capacity.set_sites(
            np.where(fresh > 1e-9, blend / np.maximum(fresh, 1e-9), site), fresh
        )

    def quadrature(self) -> Floats:
        """Curve of every sample at five nodes of its configuration's capacity, (n, 5)."""
        s = self.samples
        sd = np.sqrt(self.capacity.variance)
        nodes = self.capacity.posterior[s.place][:, None] + sd[s.place][:, None] * _HERMITE
        return self.shape(s.x[:, None] - nodes)

    def _base_sites(self) -> None:
        s, n = self.samples, len(self.base.places)
        values = self.quadrature()
        mean = values @ _WEIGHTS
        spread = np.square(values - mean[:, None]) @ _WEIGHTS
        variance = self._scale() ** 2 + spread
        rest = s.y - self.family.slope * s.x - mean
        seen = self.base.posterior[s.place]
        # t noise as a weighted normal; a sample at the ceiling says nothing of the base.
        robust = (TAIL + 1.0) / (TAIL + (rest - seen) ** 2 / variance)
        free = s.y < s.ceiling - 1e-9
        weight = np.where(free, robust / variance, 0.0)
        precision = np.bincount(s.place, weight, minlength=n).astype(float)
        total = np.bincount(s.place, weight * rest, minlength=n)
        self.base.set_sites(
            np.where(precision > 0, total / np.maximum(precision, 1e-12), self.base.level),
            precision,
        )

    def _learn_shape(self) -> None:
        s = self.samples
        chosen = np.unique(np.linspace(0, len(s) - 1, min(len(s), SHAPE_ROWS)).astype(int))
        sd = np.sqrt(self.capacity.variance)[s.place]
        nodes = self.capacity.posterior[s.place][:, None] + sd[:, None] * _HERMITE
        u = s.x[:, None] - nodes
        base = (self.base.posterior[s.place] + self.family.slope * s.x)[:, None]
        scale = np.sqrt(self._scale() ** 2 + self.base.variance[s.place])[:, None]
        start, spread = np.array(self.family.start), np.array(self.family.spread)

        def lost(theta: Floats) -> float:
            value = np.minimum(base[chosen] + self.family.curve(u[chosen], theta), s.ceiling)
            z = (s.y[chosen, None] - value) / scale[chosen]
            fit = np.sum(0.5 * (TAIL + 1.0) * np.log1p(z**2 / TAIL) @ _WEIGHTS)
            return float(fit + 0.5 * np.sum(((theta - start) / spread) ** 2))

        found = minimize(
            lost, self.theta, method="Nelder-Mead",
            options={"maxfev": 60, "initial_simplex": _simplex(self.theta, 0.2)},
        )  # fmt: skip
        self.theta = found.x
        below = (self.shape(u) + base < s.ceiling - 1e-9) & (s.y[:, None] < s.ceiling - 1e-9)
        z = (s.y[:, None] - base - self.shape(u)) / scale
        weight = below * _WEIGHTS * (TAIL + 1.0) / (TAIL + z**2) / scale**2
        self.shape = corrected(
            self.family, self.theta, u.ravel(),
            np.broadcast_to(s.y[:, None] - base, u.shape).ravel(), weight.ravel(), 0.3,
        )  # fmt: skip

    def _learn_misfit(self) -> None:
        """Robust spread of the residuals beyond what noise and capacities explain."""
        s = self.samples
        values = np.minimum(
            self.quadrature() + (self.base.posterior[s.place] + self.family.slope * s.x)[:, None],
            s.ceiling,
        )
        mean = values @ _WEIGHTS
        spread = np.square(values - mean[:, None]) @ _WEIGHTS
        free = (s.y < s.ceiling - 1e-9) | (mean < s.ceiling - 1e-9)
        if free.sum() < 3:
            return
        rest = np.minimum((s.y - mean) ** 2, 4.0)[free]
        known = (s.noise**2 + spread)[free]
        variance = self.misfit**2
        for _ in range(20):
            total = known + variance
            robust = (TAIL + 1.0) / (TAIL + rest / total)
            gain = np.sum(robust * rest * variance**2 / total**2 + variance * known / total)
            variance = (gain + 4.0 * 0.05**2) / (len(rest) + 4.0)
        self.misfit = float(np.sqrt(np.clip(variance, 1e-6, 4.0)))

    def at(self, places: Places, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean and variance of log KPI at points (m,), and u there."""
        capacity, variance = self.capacity.at(places)
        base, doubt = self.base.at(places)
        return self.predict(x, capacity, variance, base, doubt)

    def predict(
        self, x: Floats, capacity: Floats, variance: Floats, base: Floats, doubt: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Mean and variance of log KPI at loads (m,) of known latent moments, and u there."""
        nodes = capacity[:, None] + np.sqrt(variance)[:, None] * _HERMITE
        level = base + self.family.slope * x
        values = np.minimum(level[:, None] + self.shape(x[:, None] - nodes), self.samples.ceiling)
        mean = values @ _WEIGHTS
        spread = np.square(values - mean[:, None]) @ _WEIGHTS
        free = np.mean(values < self.samples.ceiling - 1e-9, axis=1)
        u = x - capacity
        return mean, spread + (doubt + np.interp(u, KNOTS, self.shape.doubt)) * free, u


def _simplex(theta: Floats, size: float) -> Floats:
    return np.vstack([theta, theta + size * np.eye(len(theta))])


def fitted(places: Places, samples: Samples) -> Law:
    """The family under which each configuration's samples are most likely given the others'."""
    laws = [Law(family, places, samples).fit(3) for family in FAMILIES]
    best = max(laws, key=lambda law: law.evidence)
    return best.fit(3)
