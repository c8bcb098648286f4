"""What a chain adds to its prediction, learned from few samples without forgetting the profiles.

METHOD.md 9: below saturation times add and the order of the functions adds its own; at saturation
the bottleneck alone counts. Both are learned as two coefficients, each configuration's drawn to
what its order shares (`workbench.chains.shrinkage`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from workbench.chains.alignment import Bools, Measured
from workbench.chains.residual import residual_of
from workbench.chains.shrinkage import (
    MISFIT_GUESS,
    MISFITS,
    Belief,
    Prior,
    log_sum,
    log_weights,
    scatter,
    shrunk,
)
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration
from workbench.domain.retraining import Reach, TermChange
from workbench.domain.samples import KPI_UNITS
from workbench.models.base import Floats
from workbench.models.estimator import one_thread
from workbench.models.folds import Ints
from workbench.models.forecast import Forecast, Forecaster, Points
from workbench.models.scales import NORMAL_95

FEWEST_POINTS = 2
"""Operating points below which nothing can be told apart from one sample's luck."""
SHARED_SD = 0.05
"""Log standard deviation that all samples of one deployment share: its start's (METHOD.md 11)."""
CLEAR = 2.0
"""Log evidence by which a correction must beat the prediction as it is: about 7 to 1."""
_LEAST_SHARE = 0.05
"""Of the unloaded times, what is left of them whatever Δ takes away."""
_ENDS = (0.025, 0.5, 0.975)
_WIDEST = 2.1
"""Largest |log κ| that is thought of."""
_STRETCHES = np.linspace(-_WIDEST, _WIDEST, 29)
"""Log factors on the load at which the bottleneck is tabled."""


class Terms(Protocol):
    """What the stand-alone profiles say of a chain, before anything is added."""

    think_ms: float
    """How long the clients of a closed loop think; 0 where they do not, or there are none."""

    def bottleneck(self, points: Points) -> Floats:
        """Log of the largest of the functions' KPIs, max_i R_i, of shape (m,)."""
        ...

    def unloaded_sum(self, points: Points) -> Floats:
        """Sum of their unloaded KPIs, Σ_i R_i(1), in the KPI's unit, of shape (m,)."""
        ...


class CorrectedForecaster:
    """A prediction with what the real chain adds to it, from measured samples.

    With `terms`: R = max(κ·max_i R_i, Σ_i R_i(1) + Δ), METHOD.md 9; where clients think, the
    bottleneck is max_i R_i(κ·n) instead, that of a function which carries 1/κ. Without: log KPI is
    that of the prediction plus an offset and a slope over log load; beyond the highest sample of a
    configuration this may fade, but neither grow nor change its sign, since a ratio that falls
    from 16 to 1 would else fall on below 1. Priors say κ = 1, Δ = 0, offset and slope 0.

    What either leaves over the load is modelled by a Gaussian process where samples that were held
    out ask for it (`workbench.chains.residual`). Where the samples do not speak for a correction
    (log evidence, `CLEAR`) it is not `applied`: forecasts are the prediction's own. What all
    samples of a configuration are off by alike may be luck of one start, and speaks for nothing
    unless configurations agree.

    The 95 % interval holds the uncertainty of the coefficients, the misfit of the curve, the luck
    of a start, and what the prediction is less sure of there than at the samples.

    Parameters
    ----------
    prediction : Forecaster
        What stand-alone profiles say; also says where these extrapolate.
    seen : Measured
        Samples of the chain.
    terms : Terms, optional
        Both terms, from the same profiles.
    shared_sd : float
        What samples of one deployment share, as a log standard deviation; the host's own where it
        is known.

    Raises
    ------
    DataError
        With fewer than two operating points, or if the profiles say what is not finite.

    Attributes
    ----------
    applied : whether there is anything to add.
    log_odds : log evidence for the correction, over that for the prediction as it is.
    coefficients : all that was learned, of shape (k,).
    """

    def __init__(
        self,
        prediction: Forecaster,
        seen: Measured,
        terms: Terms | None = None,
        *,
        shared_sd: float = SHARED_SD,
    ) -> None:
        self.kpi = prediction.kpi
        self.prediction, self.seen, self.shared_sd = prediction, seen, shared_sd
        table = seen.table
        said = prediction.forecast(seen.points)
        points = len(np.unique(table.points))
        if points < FEWEST_POINTS:
            raise DataError(
                f"{len(seen)} sample{'s' * (len(seen) != 1)} at {points} operating point cannot "
                f"tell what the chain adds",
                where=f"{table.target}, {self.kpi}",
                remedy=f"Measure at {FEWEST_POINTS} loads at least",
            )
        if not np.isfinite(said.mean).all():
            raise DataError("the prediction is not finite", where=f"{table.target}, {self.kpi}")
        # A part of a table keeps the numbers of the whole; the fit counts from 0.
        _, first = np.unique(table.configurations, return_index=True)
        self._number = {seen.points[place][0]: k for k, place in enumerate(first)}
        self._reach = {
            configuration: max(wl for c, wl in seen.points if c == configuration)
            for configuration in self._number
        }
        form: _Form = (
            _Slope(prediction, self._ends) if terms is None else _TwoTerms(terms, seen, self.kpi)
        )
        basis = form.lay(seen.points)
        self._form = form
        with one_thread():
            self._fit = shrunk(
                _AtSamples(form, basis, table.ceiling), table.y, table.noise, table.configurations
            )
        self.log_odds = self._fit.log_evidence - _evidence_as_it_is(
            table.y - np.minimum(said.mean, table.ceiling),
            table.noise,
            table.configurations,
            shared_sd,
        )
        self.applied = self.log_odds >= CLEAR

        numbers = self._numbers(seen.points)
        curve, _, active = self._curves(basis, numbers)
        left = table.y - curve[1]
        self._residual = residual_of(table.X[:, -1], numbers, table.points, left, table.noise)
        # What the bottleneck's profile is off by, κ has taken up, at loads where it was active.
        taught = active > 0.5
        self._taught_sd = tuple(
            float(np.median(side[taught])) if taught.any() else 0.0 for side in said.sd
        )

    @property
    def method(self) -> str:
        return self._form.name

    @property
    def coefficients(self) -> Floats:
        fit = self._fit
        middles = [_middle(belief) for belief in (fit.common, *fit.own)]
        head = [float(self.applied), fit.shape, fit.misfit, *fit.taus]
        tail = [] if self._residual is None else [self._residual.coefficients]
        return np.concatenate([head, *middles, *tail])

    @property
    def has_residual(self) -> bool:
        """Whether held-out samples asked for a process."""
        return self._residual is not None

    @property
    def reach(self) -> tuple[Reach, ...]:
        """The highest load of each configuration that was sampled."""
        return tuple(Reach(configuration, wl) for configuration, wl in self._reach.items())

    def changes(self) -> tuple[TermChange, ...]:
        """Each term before and after: of the order, then of each configuration."""
        rows: list[TermChange] = []
        beliefs: list[tuple[Configuration | None, Belief]] = [(None, self._fit.common)]
        beliefs += [(c, self._fit.own[k]) for c, k in self._number.items()]
        for configuration, belief in beliefs:
            for name, unit, before, values in self._form.terms(belief):
                low, middle, high = belief.quantiles(values[:, None], _ENDS)[:, 0]
                after = middle if self.applied else before
                rows.append(
                    TermChange(
                        name, configuration, before, float(after), float(low), float(high), unit
                    )
                )
        return tuple(rows)

    def forecast(self, points: Points) -> Forecast:
        """The prediction with what the chain adds; extrapolates above the highest sample too.

        A configuration that was not sampled gets what the order shares, and a wider interval; it
        extrapolates above the highest load of any.
        """
        said = self.prediction.forecast(points)
        if not self.applied or not len(points):
            return said
        numbers = self._numbers(points)
        (low, mean, high), spread, active = self._curves(self._form.lay(points), numbers)
        if self._residual is not None:
            left, variance = self._residual.at(np.log([wl for _, wl in points]), numbers)
            low, mean, high = low + left, mean + left, high + left
            spread = variance + self.shared_sd**2
        halves = []
        for side, taught, gap in zip(
            said.sd, self._taught_sd, (mean - low, high - mean), strict=True
        ):
            unsure = np.maximum(np.square(side) - taught**2, 0.0) * active
            halves.append(np.hypot(gap, NORMAL_95 * np.sqrt(spread + unsure)))
        beyond = np.array([wl for _, wl in points]) > self._ends(points) * (1.0 + 1e-9)
        ceiling = self.seen.table.ceiling
        return Forecast(
            np.minimum(mean, ceiling),
            np.minimum(mean - halves[0], ceiling),
            np.minimum(mean + halves[1], ceiling),
            said.extrapolates | beyond,
        )

    def carried_to(self, prediction: Forecaster, terms: Terms | None = None) -> CorrectedForecaster:
        """What the order shares, added to another prediction of the same functions.

        Such as one of several instances, which nobody measured: none of its configurations was
        sampled. `terms` are of that prediction, given where this model has some.
        """
        other = copy.copy(self)
        other.prediction, other._number = prediction, {}
        other._form = self._form.carried_to(prediction, terms)
        return other

    def _curves(self, basis: Basis, numbers: Ints) -> tuple[Floats, Floats, Floats]:
        """Ends and median of log KPI (3, m), variance of what is beside it, bottleneck's share."""
        ends = np.empty((3, len(numbers)))
        active = np.empty(len(numbers))
        for number in np.unique(numbers):
            rows = numbers == number
            belief = self._fit.new if number < 0 else self._fit.own[number]
            own = tuple(column[rows] for column in basis)
            first, second = belief.first[:, None], belief.second[:, None]
            curve = self._form.curve(first, second, self._fit.shape, own)
            curve = np.minimum(curve, self.seen.table.ceiling)
            ends[:, rows] = belief.quantiles(curve, _ENDS)
            active[rows] = belief.weight @ self._form.bottleneck(first, second, own)
        spread = np.full(len(numbers), self._fit.misfit**2 + self.shared_sd**2)
        return ends, spread, active

    def _numbers(self, points: Points) -> Ints:
        """The number of each point's configuration, -1 for one that was not sampled."""
        return np.array([self._number.get(c, -1) for c, _ in points], dtype=np.int64)

    def _ends(self, points: Points) -> Floats:
        """The highest load that was sampled in each point's configuration, else in any."""
        highest = max(self._reach.values())
        return np.array([self._reach.get(c, highest) for c, _ in points])


def _middle(belief: Belief) -> Floats:
    """Medians of both coefficients, of shape (2,)."""
    both = np.column_stack([belief.first, belief.second])
    return np.asarray(belief.quantiles(both, (0.5,))[0])


def _evidence_as_it_is(gap: Floats, sd: Floats, groups: Ints, shared_sd: float) -> float:
    """Log evidence for the prediction as it is, which misses the samples by `gap` (n,)."""
    luck = np.linspace(-4.0, 4.0, 61)
    weight = -0.5 * np.square(luck) - log_sum(-0.5 * np.square(luck))
    found = []
    for misfit, prior in zip(MISFITS, log_weights(MISFITS, MISFIT_GUESS), strict=True):
        total = float(prior)
        for group in np.unique(groups):
            own = groups == group
            apart = gap[own] - shared_sd * luck[:, None]
            total += log_sum(weight + scatter(apart, sd[own], misfit).sum(axis=1))
        found.append(total)
    return log_sum(np.array(found))


# ------------------------------------------------------------------------- the two forms

Basis = tuple[Floats, ...]
"""What the profiles say of m points: arrays of shape (m,) or (m, k)."""


class _Form(Protocol):
    """A curve of log KPI with two coefficients; those of shape (..., 1) meet points of (m,)."""

    name: str
    priors: tuple[Prior, Prior]
    shapes: tuple[float, ...]

    def lay(self, points: Points) -> Basis: ...

    def carried_to(self, prediction: Forecaster, terms: Terms | None) -> _Form: ...

    def curve(self, first: Floats, second: Floats, shape: float, basis: Basis) -> Floats: ...

    def bottleneck(self, first: Floats, second: Floats, basis: Basis) -> Floats:
        """1 where the loaded profiles decide, 0 where they do not, of the curve's shape."""
        ...

    def terms(self, belief: Belief) -> Sequence[tuple[str, str, float, Floats]]:
        """Name, unit, value without samples and values of the cells, for people."""
        ...


@dataclass(frozen=True)
class _AtSamples:
    """A form at the samples that it is fitted to."""

    form: _Form
    basis: Basis
    ceiling: float

    @property
    def priors(self) -> tuple[Prior, Prior]:
        return self.form.priors

    @property
    def shapes(self) -> tuple[float, ...]:
        return self.form.shapes

    def at_samples(self, first: Floats, second: Floats, shape: float, chosen: Bools) -> Floats:
        own = tuple(column[chosen] for column in self.basis)
        curve = self.form.curve(first[:, None, None], second[None, :, None], shape, own)
        return np.minimum(curve, self.ceiling)


class _TwoTerms:
    """max(κ·max_i R_i, Σ_i R_i(1) + Δ) with κ = exp(first) and Δ = ref·(exp(second) - 1).

    Clients that think find a function of 1/κ of the capacity saturated at 1/κ of the load, and no
    slower below that: n/X - Z by the operational laws (Denning & Buzen 1978), so that the load is
    scaled and not the time. Without think time both are the same.

    On this scale a Δ far above the unloaded times (ref is their median) is shared by ratio, a small
    one by difference. Queues do not meet their asymptotes with a kink: the maximum may be rounded,
    to the norm of order 1/shape of the two terms, where the samples say so.
    """

    name = "two-terms"
    shapes: tuple[float, ...] = (0.0, 0.125, 0.25)

    def __init__(self, terms: Terms, seen: Measured, kpi: str) -> None:
        self._terms, self._kpi = terms, kpi
        bottleneck, unloaded = self.lay(seen.points)
        if not (np.isfinite(bottleneck).all() and np.isfinite(unloaded).all()):
            raise DataError("the terms are not finite", where=f"{seen.table.target}, {kpi}")
        if (unloaded <= 0.0).any():
            raise DataError(
                "the sum of the unloaded KPIs is not above zero",
                where=f"{seen.table.target}, {kpi}",
                remedy="Correct it without terms",
            )
        self._reference = float(np.median(unloaded))
        largest = math.exp(float(seen.table.y.max())) / self._reference
        self.priors = (
            Prior(0.15, 4.0, -_WIDEST, _WIDEST),
            Prior(0.5, 1.0, -2.3, max(math.log1p(largest) + 0.5, 1.0)),
        )

    def lay(self, points: Points) -> Basis:
        unloaded = self._terms.unloaded_sum(points)
        if not self._terms.think_ms:
            return self._terms.bottleneck(points), unloaded
        stretched = [(c, wl * math.exp(log)) for log in _STRETCHES for c, wl in points]
        table = self._terms.bottleneck(stretched).reshape(len(_STRETCHES), len(points))
        return table.T, unloaded

    def carried_to(self, prediction: Forecaster, terms: Terms | None) -> _Form:  # noqa: ARG002
        assert terms is not None  # a correction keeps its form
        other = copy.copy(self)
        other._terms = terms
        return other

    def curve(self, first: Floats, second: Floats, shape: float, basis: Basis) -> Floats:
        loaded, unloaded = _loaded(first, basis[0]), self._unloaded(second, basis)
        larger = np.maximum(loaded, unloaded)
        if not shape:
            return larger
        return np.asarray(larger + shape * np.log1p(np.exp(-np.abs(loaded - unloaded) / shape)))

    def bottleneck(self, first: Floats, second: Floats, basis: Basis) -> Floats:
        return np.asarray((_loaded(first, basis[0]) >= self._unloaded(second, basis)) * 1.0)

    def terms(self, belief: Belief) -> Sequence[tuple[str, str, float, Floats]]:
        delta = self._reference * np.expm1(belief.second)
        return (
            ("kappa", "", 1.0, np.exp(belief.first)),
            ("delta", KPI_UNITS.get(self._kpi, ""), 0.0, delta),
        )

    def _unloaded(self, second: Floats, basis: Basis) -> Floats:
        added = self._reference * np.expm1(second)
        return np.asarray(np.log(np.maximum(basis[1] + added, _LEAST_SHARE * basis[1])))


def _loaded(first: Floats, bottleneck: Floats) -> Floats:
    """Log of the bottleneck's KPI with log κ of shape (..., 1): from log KPIs (m,), to which it is
    added, or from those at stretched loads, (m, k), between which it is looked up."""
    if bottleneck.ndim == 1:
        return np.asarray(first + bottleneck)
    step = _STRETCHES[1] - _STRETCHES[0]
    place = np.clip((first - _STRETCHES[0]) / step, 0.0, len(_STRETCHES) - 1.0)
    left = np.minimum(place.astype(np.int64), len(_STRETCHES) - 2)
    rows, share = np.arange(len(bottleneck)), place - left
    return np.asarray((1.0 - share) * bottleneck[rows, left] + share * bottleneck[rows, left + 1])


class _Slope:
    """log KPI = prediction + first + second·(log load - log of the highest sampled load)."""

    name = "offset"
    priors = (Prior(0.3, 1.0, -5.0, 5.0), Prior(0.15, 1.0, -2.0, 2.0))
    shapes: tuple[float, ...] = (0.0,)

    def __init__(self, prediction: Forecaster, ends: Callable[[Points], Floats]) -> None:
        self._prediction, self._ends = prediction, ends

    def lay(self, points: Points) -> Basis:
        load = np.log([wl for _, wl in points])
        return self._prediction.forecast(points).mean, load - np.log(self._ends(points))

    def carried_to(self, prediction: Forecaster, terms: Terms | None) -> _Form:  # noqa: ARG002
        return _Slope(prediction, self._ends)

    def curve(self, first: Floats, second: Floats, shape: float, basis: Basis) -> Floats:  # noqa: ARG002
        line = first + second * basis[1]
        # Past the samples: between what it is there and nothing.
        beyond = np.clip(line, np.minimum(first, 0.0), np.maximum(first, 0.0))
        return np.asarray(basis[0] + np.where(basis[1] > 0.0, beyond, line))

    def bottleneck(self, first: Floats, second: Floats, basis: Basis) -> Floats:
        return np.ones(np.broadcast_shapes(first.shape, second.shape, basis[0].shape))

    def terms(self, belief: Belief) -> Sequence[tuple[str, str, float, Floats]]:
        return (
            ("ratio at the highest load", "", 1.0, np.exp(belief.first)),
            ("slope of log ratio over log load", "", 0.0, belief.second),
        )
