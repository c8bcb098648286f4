"""log KPI = base(c) + shape((log wl - capacity(c)) / stretch(c)), at most the ceiling: the law.

Where base and steep piece are of different causes (loss), their KPIs add instead, and the base may
drift with the load: base(c) + drift(c, log wl).

Two latent surfaces over configurations c, and one shape for all. What the samples of one
configuration say about its capacity is rarely normal ("above 3,000", "between these two"), so each
likelihood is evaluated on a grid and its first two moments become the surface's site: expectation
propagation (Minka 2001; Rasmussen, Williams, 3.6). The tilted distribution's normaliser is the
density of a configuration's samples given all the *other* configurations, which chooses the
family of shapes at no further cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from workbench.models.base import Floats
from workbench.models.pooled.field import GaussianField, drawn
from workbench.models.pooled.samples import Samples
from workbench.models.pooled.shapes import FAMILIES, KNOTS, Family, FittedShape, corrected
from workbench.models.pooled.surface import Places, Surface


class Latent(NamedTuple):
    """What is known of configurations that no sample shows: mean and variance each, (k,)."""

    capacity: Floats
    variance: Floats
    base: Floats
    doubt: Floats
    stretch: Floats
    loose: Floats

    def at(self, numbers: np.ndarray | slice) -> Latent:
        """Of some of them, one after the other, however often."""
        return Latent(*(each[numbers] for each in self))

    def drifted(self, drift: Floats, loose: Floats) -> Latent:
        """With mean and variance of the drift in those of the base."""
        return self._replace(base=self.base + drift, doubt=self.doubt + loose)


NODES = np.linspace(-4.5, 4.5, 37)
"""Grid of a configuration's capacity, in standard deviations of the guess at hand."""
STRETCHES = np.linspace(-2.4, 2.4, 5)
"""Grid of the log of its stretch, likewise."""
TAIL = 4.0
"""Degrees of freedom of the noise (METHOD.md 12, 3)."""
TELLS = 0.2
"""Share of the level, or of the steep piece, in a sample from which on it says something of it."""
FAMILY_ROWS = 1500
"""Most samples among which families compete."""
BEGINNING, CLEARLY = 5, 0.1
"""Sweeps after which two beginnings are compared, and the evidence by which the second has to be
ahead."""
BEGUN = 4.0
"""Precision of a base line that is a first guess."""
SHAPE_ROWS = 1500
"""Most samples that fit a shape's parameters."""
_HERMITE, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_STRETCHED, _SHARE = np.array([-(3.0**0.5), 0.0, 3.0**0.5]), np.array([1.0, 4.0, 1.0]) / 6.0
# Capacity and stretch together: 15 nodes.
_NODES, _STRETCHED = (n.ravel() for n in np.meshgrid(_HERMITE, _STRETCHED))
_WEIGHTS = np.outer(_SHARE, _WEIGHTS).ravel()


class Law:
    """Fitted by `fit`; `sweep` alone takes new sites with all else frozen.

    Attributes
    ----------
    capacity, base : Surface
    shape : Shape
    misfit : float, standard deviation of what the law leaves beyond the noise.
    evidence : float, mean log density of a configuration's samples given the others.
    stretch, stretch_variance : of shape (k,), log of what widens the shape at a configuration
        (luck of its own, no surface), mean and variance; `tau` is its standard deviation a priori.
    field : Field or None, of the base's drift with the load; `drift`, `drift_variance` (n,) are
        its moments at the samples.
    """

    def __init__(self, family: Family, places: Places, samples: Samples) -> None:
        self.family = family
        self.samples = samples
        self.theta = np.array(family.start)
        self.shape = FittedShape.of(family, self.theta)
        self.misfit = 0.1
        self.tau = 0.0
        self.stretch = np.zeros(len(places))
        self.stretch_variance = np.zeros(len(places))
        self.field: GaussianField | None = None
        self.drift, self.drift_variance = np.zeros(len(samples)), np.zeros(len(samples))
        low, high = float(samples.x.min()), float(samples.x.max())
        rest = samples.y - family.slope * samples.x
        level = float(np.quantile(rest, 0.9 if family.slope else 0.1))
        self.capacity = Surface(places, 0.5 * (low + high), 0.5, 0.1)
        self.base = Surface(places, level, 0.2, 0.05)
        self._span = (low - 2.0, high + 2.0)
        self._begin_base(rest)
        self.evidence = -np.inf

    def with_one_base(self) -> Law:
        """A law that is to be learned from the same samples, but begins with the same base line for
        all configurations, whatever their own lowest samples are."""
        other = Law(self.family, self.base.places, self.samples)
        one = np.full(len(other.base.mean), other.base.level)
        other.base.set_sites(one, np.where(other.base.precision > 0.0, BEGUN, 0.0))
        return other

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
            np.asarray(total / np.maximum(count, 1), dtype=float), np.where(count > 0, BEGUN, 0.0)
        )

    def fit(self, rounds: int = 6, freely: bool = False) -> Law:
        """Alternate sites, shape, misfit and the surfaces' amplitudes; `freely` the drift and
        the stretches too."""
        if freely:
            self.tau = 0.1
            self.stretch_variance[:] = self.tau**2
        for turn in range(rounds):
            self.sweep(3)
            if freely and self.family.beside:
                self._learn_drift(anew=turn % 2 == 0)
            self._learn_shape()
            self._learn_misfit()
            if freely:
                self._learn_tau()
            if turn % 2 == 1:
                self.capacity.learn()
                self.base.learn()
        if self.field is not None:
            s = self.samples
            self.drift_variance = self.drift_at(self.capacity.places.of(s.place), s.place, s.x)[1]
        self.sweep(3)
        return self

    def over(self, samples: Samples) -> Law:
        """The same law over more samples of the same configurations."""
        self.samples = samples
        self.drift, self.drift_variance = np.zeros(len(samples)), np.zeros(len(samples))
        return self

    def sweep(self, times: int, of: np.ndarray | None = None) -> None:
        """Expectation propagation, sites at once, damped; only those `of` some configurations."""
        chosen = np.arange(len(self.capacity.places)) if of is None else of
        for _ in range(times):
            self._capacity_sites(chosen)
            self._base_sites()

    def _scale(self) -> Floats:
        return np.asarray(np.sqrt(self.samples.noise**2 + self.misfit**2))

    def level(self) -> Floats:
        """Base line of log KPI at the samples, (n,)."""
        s = self.samples
        return np.asarray(self.base.posterior[s.place] + self.family.slope * s.x + self.drift)

    def kpi(self, level: Floats, u: Floats) -> Floats:
        """log KPI, not cut at the ceiling, from base level and u of one shape or that broadcast."""
        if not self.family.beside:
            return np.asarray(level + self.shape(u))
        p = self.family.power(self.theta)
        return np.asarray(np.logaddexp(p * level, p * (self.base.level + self.shape(u))) / p)

    def share(self, level: Floats, value: Floats) -> Floats:
        """d log KPI / d level where the KPI, not cut, is `value`; the steep piece has the rest."""
        if not self.family.beside:
            return np.ones(np.broadcast(level, value).shape)
        return np.asarray(np.exp(self.family.power(self.theta) * (level - value)))

    def slope(self, level: Floats, u: Floats) -> Floats:
        """d log KPI / du, not cut at the ceiling."""
        return (self.kpi(level, u + 0.01) - self.kpi(level, u - 0.01)) / 0.02

    def follow(self, samples: Samples) -> None:
        """Take samples that begin with those at hand; the drift is looked up for the new ones."""
        known = len(self.drift)
        place, x = samples.place[known:], samples.x[known:]
        self.samples = samples
        mean, variance = self.drift_at(self.capacity.places.of(place), place, x)
        self.drift = np.concatenate([self.drift, mean])
        self.drift_variance = np.concatenate([self.drift_variance, variance])

    def drift_at(
        self, places: Places, c: np.ndarray, x: Floats, spread: bool = True
    ) -> tuple[Floats, Floats]:
        """Mean and variance of the drift at points, each (m,)."""
        if self.field is None or not len(x):
            return np.zeros(len(x)), np.zeros(len(x))
        return self.field.at(places, c, x, spread)

    def _capacity_sites(self, of: np.ndarray) -> None:
        whole, n = self.samples, len(of)
        number = np.full(len(self.capacity.places), -1)
        number[of] = np.arange(n)
        rows = np.flatnonzero(number[whole.place] >= 0)
        rows = rows[np.argsort(whole.place[rows], kind="stable")]
        place, x, y = number[whole.place[rows]], whole.x[rows], whole.y[rows]
        starts = np.flatnonzero(np.r_[True, place[1:] != place[:-1]]) if len(rows) else place
        cavity, variance = (moment[of] for moment in self.capacity.cavity())
        centre = np.clip(cavity, *self._span)
        width = np.minimum(np.sqrt(variance), 0.5 * (self._span[1] - self._span[0]))
        stretch, loose = self.stretch[of], np.sqrt(self.stretch_variance[of])
        noise = (self._scale() ** 2 + self.base.variance[whole.place])[rows, None, None]
        level = self.level()[rows, None, None]
        for turn in range(3):
            nodes = centre[:, None] + width[:, None] * NODES
            step = width * (NODES[1] - NODES[0])
            if self.tau > 0.0:
                widths = stretch[:, None] + loose[:, None] * STRETCHES
            else:
                widths = np.zeros((n, 1))
            u = (x[:, None] - nodes[place])[:, None, :] * np.exp(-widths[place])[:, :, None]
            value = np.minimum(self.kpi(level, u), whole.ceiling)
            # Between two nodes the curve moves by this much: a grid cannot tell them apart.
            blur = _differences(value) * 0.5
            doubt = noise + np.square(blur, out=blur)
            off = np.square(y[:, None, None] - value) / doubt
            dense = -0.5 * ((TAIL + 1.0) * np.log1p(off / TAIL) + np.log(doubt))
            total = np.zeros((n, *dense.shape[1:]))
            if len(rows):
                total[place[starts]] = np.add.reduceat(dense, starts, axis=0)
            outside = np.maximum(self._span[0] - nodes, 0) + np.maximum(nodes - self._span[1], 0)
            prior = -0.5 * (nodes - cavity[:, None]) ** 2 / variance[:, None] - 2.0 * outside**2
            total += prior[:, None, :]
            if self.tau > 0.0:
                total -= 0.5 * np.square(widths / self.tau)[:, :, None]
            most = total.max(axis=(1, 2))
            weight = np.exp(total - most[:, None, None])
            if self.tau > 0.0:
                along = weight.sum(axis=2)
                along /= along.sum(axis=1, keepdims=True)
                stretch = np.sum(along * widths, axis=1)
                spread = np.sum(along * np.square(widths - stretch[:, None]), axis=1)
                apart = loose * (STRETCHES[1] - STRETCHES[0])
                loose = np.minimum(np.sqrt(np.maximum(spread, (0.3 * apart) ** 2)), self.tau)
            weight = weight.sum(axis=1)
            mass = weight.sum(axis=1)
            mean = (weight * nodes).sum(axis=1) / mass
            var = (weight * (nodes - mean[:, None]) ** 2).sum(axis=1) / mass
            # Half a step is the least that this grid can see.
            var = np.maximum(var, (0.3 * step) ** 2)
            centre, width = mean, np.sqrt(var) * (1.3 if turn == 0 else 1.0)
        if n == len(number):
            log_mass = most + np.log(mass * step) - 0.5 * np.log(2.0 * np.pi * variance)
            self.evidence = float(np.sum(log_mass)) / max(len(whole), 1)
        has = np.bincount(place, minlength=n) > 0
        if self.tau > 0.0:
            self.stretch, self.stretch_variance = self.stretch.copy(), self.stretch_variance.copy()
            self.stretch[of] = np.where(has, stretch, 0.0)
            self.stretch_variance[of] = np.where(has, loose**2, self.tau**2)
        precision = np.maximum(1.0 / var - 1.0 / variance, 0.0)
        precision = np.where(has, np.minimum(precision, 1e6), 0.0)
        site = np.where(
            precision > 0.0, (mean / var - cavity / variance) / np.maximum(precision, 1e-12), cavity
        )
        site = np.clip(site, self._span[0] - 4, self._span[1] + 4)
        sites, precisions = self.capacity.mean.copy(), self.capacity.precision.copy()
        old, was = precisions[of], sites[of]
        fresh = 0.7 * precision + 0.3 * old
        blend = 0.7 * precision * site + 0.3 * old * was
        sites[of] = np.where(fresh > 1e-9, blend / np.maximum(fresh, 1e-9), site)
        precisions[of] = fresh
        self.capacity.set_sites(sites, precisions)

    def _learn_tau(self) -> None:
        """Spread of the stretches: their square over what is known of each (MacKay 1992)."""
        known = 1.0 - self.stretch_variance / self.tau**2
        square = np.sum(self.stretch**2) + 2.0 * 0.1**2
        self.tau = float(np.clip(np.sqrt(square / (np.sum(np.maximum(known, 0)) + 2.0)), 0.02, 0.5))
        self.stretch_variance = np.minimum(self.stretch_variance, self.tau**2)
        empty = np.bincount(self.samples.place, minlength=len(self.stretch)) == 0
        self.stretch_variance[empty] = self.tau**2

    def quadrature(self) -> tuple[Floats, Floats]:
        """u and log KPI, not cut, of every sample at nodes of its capacity and stretch, each
        (n, 15)."""
        s = self.samples
        u = self._nodes(
            s.x, self.capacity.posterior[s.place], self.capacity.variance[s.place],
            self.stretch[s.place], self.stretch_variance[s.place],
        )  # fmt: skip
        return u, self.kpi(self.level()[:, None], u)

    def _nodes(
        self, x: Floats, capacity: Floats, variance: Floats, stretch: Floats, loose: Floats
    ) -> Floats:
        """u at the nodes, (m, 15)."""
        nodes = x[:, None] - capacity[:, None] - np.sqrt(variance)[:, None] * _NODES
        widths = stretch[:, None] + np.sqrt(loose)[:, None] * _STRETCHED
        return np.asarray(nodes * np.exp(-widths))

    def _of_level(self) -> tuple[Floats, Floats, Floats]:
        """What each sample says of its level beyond the one at hand: difference, its variance,
        robust, and the share of the level in it, each (n,)."""
        s = self.samples
        _, values = self.quadrature()
        mean = values @ _WEIGHTS
        spread = np.square(values - mean[:, None]) @ _WEIGHTS
        variance = self._scale() ** 2 + spread
        share = self.share(self.level()[:, None], values) @ _WEIGHTS
        rest = s.y - mean
        # t noise as a weighted normal.
        robust = (TAIL + 1.0) / (TAIL + rest**2 / variance)
        share = np.maximum(share, 1e-3)
        return rest / share, variance / robust / share**2, share

    def _base_sites(self) -> None:
        s, n = self.samples, len(self.base.places)
        rest, variance, share = self._of_level()
        # A sample at the ceiling, or one of the steep piece alone, says nothing of the base.
        free = (s.y < s.ceiling - 1e-9) & (share > TELLS)
        weight = np.where(free, 1.0 / variance, 0.0)
        precision = np.bincount(s.place, weight, minlength=n).astype(float)
        seen = self.base.posterior[s.place]
        total = np.bincount(s.place, weight * (seen + rest), minlength=n)
        self.base.set_sites(
            np.where(precision > 0, total / np.maximum(precision, 1e-12), self.base.level),
            precision,
        )

    def _learn_drift(self, anew: bool) -> None:
        """The field of what the level lacks at its samples."""
        s = self.samples
        rest, variance, share = self._of_level()
        free = np.flatnonzero((s.y < s.ceiling - 1e-9) & (share > TELLS))
        if len(free) < 4:
            return
        places = self.capacity.places.of(s.place)
        field = GaussianField(0.3, 1.0, places.columns)
        if self.field is not None:
            field.theta = self.field.theta
        self.field = field.fit(
            places.of(free), s.place[free], s.x[free], self.drift[free] + rest[free],
            variance[free], learn=anew,
        )  # fmt: skip
        self.drift_rows = free[field.chosen]
        self.drift = field.mean(places, s.place, s.x)

    def _learn_shape(self) -> None:
        s = self.samples
        chosen = np.unique(np.linspace(0, len(s) - 1, min(len(s), SHAPE_ROWS)).astype(int))
        u, _ = self.quadrature()
        level = self.level()[:, None]
        scale = np.sqrt(self._scale() ** 2 + self.base.variance[s.place])[:, None]
        start, spread = np.array(self.family.start), np.array(self.family.spread)
        few, below, y, wide = u[chosen], level[chosen], s.y[chosen, None], scale[chosen]

        def lost(theta: Floats) -> float:
            curve = self.family.curve(few, theta)
            value = below + curve
            if self.family.beside:
                p = self.family.power(theta)
                value = np.logaddexp(p * below, p * (self.base.level + curve)) / p
            z = (y - np.minimum(value, s.ceiling)) / wide
            fit = np.sum(0.5 * (TAIL + 1.0) * np.log1p(z**2 / TAIL) @ _WEIGHTS)
            return float(fit + 0.5 * np.sum(((theta - start) / spread) ** 2))

        found = minimize(
            lost, self.theta, method="Nelder-Mead",
            options={"maxfev": 60, "initial_simplex": _simplex(self.theta, 0.2)},
        )  # fmt: skip
        # What data add is weighed by the shape as it was.
        self.theta = found.x
        value = self.kpi(level, u)
        free = (value < s.ceiling - 1e-9) & (s.y[:, None] < s.ceiling - 1e-9)
        z = (s.y[:, None] - value) / scale
        weight = free * _WEIGHTS * (TAIL + 1.0) / (TAIL + z**2) / scale**2
        rest = s.y[:, None] - level - self.family.curve(u, self.theta)
        if self.family.beside:
            steep = np.maximum(1.0 - self.share(level, value), 1e-3)
            rest = self.shape(u) + (s.y[:, None] - value) / steep
            rest -= self.family.curve(u, self.theta)
            weight = weight * steep**2 * (steep > TELLS)
        self.shape = corrected(self.family, self.theta, u.ravel(), rest.ravel(), weight.ravel())

    def _learn_misfit(self) -> None:
        """Robust spread of the residuals beyond what noise and capacities explain."""
        s = self.samples
        values = np.minimum(self.quadrature()[1], s.ceiling)
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

    def drift_without(self, *dealt: np.ndarray) -> list[tuple[Floats, Floats]]:
        """Mean and variance of the drift at the samples, each without those of its fold (n,), for
        each way in which folds were `dealt`."""
        found = [(self.drift.copy(), self.drift_variance.copy()) for _ in dealt]
        if self.field is not None:
            rows = self.drift_rows
            held = self.field.without(*(folds[rows] for folds in dealt))
            for (mean, variance), (own, doubt) in zip(found, held, strict=True):
                mean[rows], variance[rows] = own, doubt
        return found

    def moments(
        self, place: np.ndarray, x: Floats, drift: Floats, loose: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Mean and variance of log KPI at loads x (m,) of own configurations `place` (m,), and u
        there; mean and variance of the drift (m,) are given."""
        return self.predict(x, self.latent.at(place).drifted(drift, loose))

    @property
    def latent(self) -> Latent:
        """Of the own configurations, (k,)."""
        return Latent(
            self.capacity.posterior, self.capacity.variance, self.base.posterior,
            self.base.variance, self.stretch, self.stretch_variance,
        )  # fmt: skip

    def predict(self, x: Floats, latent: Latent) -> tuple[Floats, Floats, Floats]:
        """Mean and variance of log KPI at loads (m,) of known latent moments, and u there; the
        base's (m,) include the drift."""
        capacity, variance, base, doubt, stretch, loose = latent
        level = (base + self.family.slope * x)[:, None]
        whole = self.kpi(level, self._nodes(x, capacity, variance, stretch, loose))
        values = np.minimum(whole, self.samples.ceiling)
        mean = values @ _WEIGHTS
        spread = np.square(values - mean[:, None]) @ _WEIGHTS
        free = np.mean(values < self.samples.ceiling - 1e-9, axis=1)
        u = (x - capacity) * np.exp(-stretch)
        share = self.share(level, whole) @ _WEIGHTS
        steep = (1.0 - share) if self.family.beside else 1.0
        shape = steep**2 * np.interp(u, KNOTS, self.shape.doubt)
        return mean, spread + (share**2 * doubt + shape) * free, u


def _differences(value: Floats) -> Floats:
    """`numpy.gradient` over the last axis, without what it asks of its arguments each time."""
    found = np.empty_like(value)
    np.subtract(value[..., 2:], value[..., :-2], out=found[..., 1:-1])
    found[..., 1:-1] *= 0.5
    found[..., 0] = value[..., 1] - value[..., 0]
    found[..., -1] = value[..., -1] - value[..., -2]
    return found


def _simplex(theta: Floats, size: float) -> Floats:
    return np.vstack([theta, theta + size * np.eye(len(theta))])


def _begun(family: Family, places: Places, samples: Samples) -> Law:
    """From the lowest samples of each configuration, or from one base line for all where that is
    clearly likelier: where most were sampled beyond their capacities only, the former leads to
    equal capacities, and all that is steep becomes misfit."""
    own = Law(family, places, samples)
    one = own.with_one_base()
    for law in (own, one):
        law.sweep(BEGINNING)
    return one if one.evidence > own.evidence + CLEARLY else own


def fitted(places: Places, samples: Samples) -> Law:
    """The family under which each configuration's samples are most likely given the others'."""
    rows = drawn(len(samples), FAMILY_ROWS)
    few = samples.of(rows)
    laws = [_begun(family, places, few).fit(3) for family in FAMILIES]
    best = max(laws, key=lambda law: law.evidence)
    if len(rows) < len(samples):
        best = best.over(samples)
    return best.fit(3, freely=True)
