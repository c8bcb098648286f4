"""Two coefficients per configuration, drawn to what all configurations share: exact, on a grid.

Configuration c has coefficients (a_c, b_c), normal around (a, b) that its order of functions
shares, with standard deviations tau; (a, b) have heavy-tailed priors around "nothing is added".
Log KPIs scatter around the curve of (a_c, b_c) by Student's t with four degrees of freedom: a
sample in twenty is off by a factor of two (METHOD.md 11). Its variance is the sample's own and a
misfit's that all share. tau and misfit are those of the largest evidence (empirical Bayes: Carlin
& Louis 2000, Bayes and Empirical Bayes Methods for Data Analysis, ch. 3).

With two coefficients a grid integrates all that exactly. It matters here: curves have a kink where
one term takes over from another, and samples on one side of it say nothing of the other term. Its
coefficient then keeps its prior, and the interval says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Protocol

import numpy as np
from scipy.special import gammaln

from workbench.chains.alignment import Bools
from workbench.models.base import Floats

DEGREES = 4.0
"""Of the samples' scatter (METHOD.md 11)."""
MISFITS = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""Log standard deviations of what no curve explains."""
MISFIT_GUESS = 0.06
TAUS = (0.04, 0.1, 0.3)
TAU_GUESS = 0.08
"""Before any sample, configurations of an order are thought to differ by this."""
_WIDE, _WIDE_MISFIT = 97, 0.2
_FINE = 41
_REACH = 14.0
"""Log density below the highest from which a cell of the grid is left out."""


@dataclass(frozen=True)
class Prior:
    """Of a common coefficient: Student's t around 0, on a range.

    `taus` are tried for what configurations differ by; before any sample it is thought to be `tau`.
    """

    scale: float
    degrees: float
    low: float
    high: float
    taus: tuple[float, ...] = TAUS
    tau: float = TAU_GUESS

    def log_density(self, at: Floats) -> Floats:
        return student(at, self.scale, self.degrees)


class CurveFamily(Protocol):
    """A curve of log KPI with two coefficients, at the samples that it is fitted to."""

    @property
    def priors(self) -> tuple[Prior, Prior]:
        """Of the coefficients that all configurations share."""
        ...

    @property
    def shapes(self) -> tuple[float, ...]:
        """What else may differ between curves, one for all configurations; equally likely."""
        ...

    def at_samples(self, first: Floats, second: Floats, shape: float, chosen: Bools) -> Floats:
        """Log KPI at the chosen samples, of shape (len(first), len(second), chosen)."""
        ...


@dataclass(frozen=True)
class Belief:
    """What is known of the two coefficients: cells with their weights, all of shape (k,)."""

    first: Floats
    second: Floats
    weight: Floats

    def quantiles(self, values: Floats, at: tuple[float, ...]) -> Floats:
        """Quantiles of `values` of shape (k, m), one row of which belongs to a cell: (at, m)."""
        order = np.argsort(values, axis=0)
        # A cell stands for its middle: half of its own weight lies below it.
        weight = self.weight[order]
        below = np.cumsum(weight, axis=0) - 0.5 * weight
        ordered = np.take_along_axis(values, order, axis=0)
        columns = [np.interp(at, below[:, m], ordered[:, m]) for m in range(values.shape[1])]
        return np.array(columns).reshape(-1, len(at)).T


@dataclass(frozen=True)
class Shrunk:
    """The fit.

    Attributes
    ----------
    common : of (a, b).
    own : of (a_c, b_c), in the order of the configurations' numbers.
    new : of a configuration without samples.
    shape, misfit, taus : the hyperparameters of the largest evidence.
    log_evidence : of the samples, all coefficients and hyperparameters integrated out but the
        shape, which pays for having been chosen.
    """

    common: Belief
    own: tuple[Belief, ...]
    new: Belief
    shape: float
    misfit: float
    taus: tuple[float, float]
    log_evidence: float


def student(gap: Floats, scale: Floats | float, degrees: float = DEGREES) -> Floats:
    """Log density of Student's t at `gap`, with the given scale."""
    constant = gammaln((degrees + 1.0) / 2.0) - gammaln(degrees / 2.0)
    constant -= 0.5 * math.log(degrees * math.pi)
    tail = 0.5 * (degrees + 1.0) * np.log1p(np.square(gap / scale) / degrees)
    return np.asarray(constant - np.log(scale) - tail)


def scatter(gap: Floats, sd: Floats, misfit: float) -> Floats:
    """Log density of samples that miss a curve by `gap` and have standard deviations `sd`."""
    scale = np.hypot(sd, misfit) * math.sqrt((DEGREES - 2.0) / DEGREES)
    return student(gap, scale)


def log_sum(values: Floats) -> float:
    """Log of the sum of exponentials."""
    top = float(np.max(values))
    return top + math.log(float(np.sum(np.exp(values - top))))


def log_weights(values: tuple[float, ...], guess: float) -> Floats:
    """Of a hyperparameter's values: log-normal around the guess, a factor of e wide."""
    weights = -0.5 * np.square(np.log(np.array(values) / guess))
    return np.asarray(weights - log_sum(weights))


def shrunk(family: CurveFamily, y: Floats, sd: Floats, groups: np.ndarray) -> Shrunk:
    """Fit `family` to log KPIs `y` (n,) of known noise `sd` (n,), of configurations `groups` (n,).

    The grid is laid over the priors' range first, then twice over the region that the samples
    leave; a wide misfit at first keeps every peak wider than a cell, whatever the shape.
    """
    own = [groups == number for number in np.unique(groups)]
    guess = family.priors[0].tau, family.priors[1].tau
    fits = [_Fit(family, shape, y, sd, own) for shape in family.shapes]
    wide = _Grid.over([(p.low, p.high) for p in family.priors], _WIDE)
    grid = _Grid.over(fits[0].region(wide, _WIDE_MISFIT, guess), _FINE)
    tried = [fit.hyper(grid, each=False) for fit in fits]
    best = int(np.argmax([evidence for _, _, evidence in tried]))
    fit, misfit = fits[best], tried[best][0]
    grid = _Grid.over(fit.region(grid, misfit, guess), _FINE)
    misfit, taus, evidence = fit.hyper(grid, each=len(own) > 1)
    common, each, new = fit.posteriors(grid, misfit, taus)
    return Shrunk(
        grid.belief(common),
        tuple(grid.belief(one) for one in each),
        grid.belief(new),
        family.shapes[best],
        misfit,
        taus,
        evidence - math.log(len(family.shapes)),
    )


# ------------------------------------------------------------------------- the grid


@dataclass(frozen=True)
class _Grid:
    first: Floats
    second: Floats

    @classmethod
    def over(cls, ranges: list[tuple[float, float]], count: int) -> _Grid:
        first, second = (np.linspace(low, high, count) for low, high in ranges)
        return cls(first, second)

    @property
    def log_cell(self) -> float:
        return float(
            np.log(self.first[1] - self.first[0]) + np.log(self.second[1] - self.second[0])
        )

    def belief(self, log_density: Floats) -> Belief:
        weight = np.exp(log_density - log_density.max())
        kept = np.nonzero(weight > 1e-5 * weight.max())
        return Belief(
            self.first[kept[0]], self.second[kept[1]], weight[kept] / float(weight[kept].sum())
        )


def _spread(axis: Floats, tau: float) -> Floats:
    """Row i: how likely a coefficient lies in each cell if the common one lies in cell i."""
    apart = -0.5 * np.square((axis[:, None] - axis[None, :]) / tau)
    weight = np.exp(apart)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _smoothings(
    axis: Floats, taus: tuple[float, ...], guess: float
) -> list[tuple[float, Floats, float]]:
    """Each tau with its `_spread` and its log weight."""
    weights = log_weights(taus, guess)
    return [(t, _spread(axis, t), float(w)) for t, w in zip(taus, weights, strict=True)]


class _Fit:
    def __init__(
        self, family: CurveFamily, shape: float, y: Floats, sd: Floats, own: list[Bools]
    ) -> None:
        self._family, self._shape, self._y, self._sd, self._own = family, shape, y, sd, own

    def _gaps(self, grid: _Grid) -> list[Floats]:
        """What each cell misses the samples of each configuration by."""
        return [
            self._y[own] - self._family.at_samples(grid.first, grid.second, self._shape, own)
            for own in self._own
        ]

    def _likelihoods(self, gaps: list[Floats], misfit: float) -> list[Floats]:
        return [
            scatter(gap, self._sd[own], misfit).sum(axis=2)
            for gap, own in zip(gaps, self._own, strict=True)
        ]

    def _prior(self, grid: _Grid) -> Floats:
        first, second = self._family.priors
        return np.asarray(
            first.log_density(grid.first)[:, None] + second.log_density(grid.second)[None, :]
        )

    def region(
        self, grid: _Grid, misfit: float, taus: tuple[float, float]
    ) -> list[tuple[float, float]]:
        """The range of either coefficient that common or own beliefs leave, a cell more."""
        common, each, _ = self.posteriors(grid, misfit, taus)
        kept = np.zeros_like(common, dtype=bool)
        for log_density in (common, *each):
            kept |= log_density > log_density.max() - _REACH
        found = []
        for axis, other in ((grid.first, 1), (grid.second, 0)):
            places = np.flatnonzero(kept.any(axis=other))
            low, high = max(places[0] - 1, 0), min(places[-1] + 1, len(axis) - 1)
            found.append((float(axis[low]), float(axis[high])))
        return found

    def hyper(self, grid: _Grid, *, each: bool) -> tuple[float, tuple[float, float], float]:
        """Misfit and taus of the largest evidence, and the evidence over all of them; of taus only
        the guess unless `each` is tried."""
        gaps, prior = self._gaps(grid), self._prior(grid)
        firsts, seconds = (
            _smoothings(axis, one.taus if each else (one.tau,), one.tau)
            for axis, one in zip((grid.first, grid.second), self._family.priors, strict=True)
        )
        found: list[tuple[float, float, tuple[float, float]]] = []
        for misfit, weight in zip(MISFITS, log_weights(MISFITS, MISFIT_GUESS), strict=True):
            likelihoods = [_scaled(one) for one in self._likelihoods(gaps, misfit)]
            for (one, across, likely), (other, along, likely_too) in product(firsts, seconds):
                total = prior + grid.log_cell
                for top, likelihood in likelihoods:
                    total = total + top + _log(across @ likelihood @ along.T)
                value = log_sum(total) + weight + likely + likely_too
                found.append((float(value), misfit, (one, other)))
        _, misfit, best = max(found)
        return misfit, best, log_sum(np.array([value for value, _, _ in found]))

    def posteriors(
        self, grid: _Grid, misfit: float, taus: tuple[float, float]
    ) -> tuple[Floats, list[Floats], Floats]:
        """Log densities over the grid: common, of each configuration, of a new one."""
        across, along = _spread(grid.first, taus[0]), _spread(grid.second, taus[1])
        common = self._prior(grid)
        seen = []
        for log_likelihood in self._likelihoods(self._gaps(grid), misfit):
            _, likelihood = _scaled(log_likelihood)
            smooth = _log(across @ likelihood @ along.T)
            common = common + smooth
            seen.append((log_likelihood, smooth))
        each = []
        for log_likelihood, smooth in seen:
            _, others = _scaled(common - smooth)
            each.append(log_likelihood + _log(across.T @ others @ along))
        _, shared = _scaled(common)
        return common, each, _log(across.T @ shared @ along)


def _scaled(log_values: Floats) -> tuple[float, Floats]:
    top = float(log_values.max())
    return top, np.exp(log_values - top)


def _log(values: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(values, 1e-300)))
