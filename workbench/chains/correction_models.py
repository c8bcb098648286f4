"""The forms of what a chain adds to its prediction: curves with two coefficients (METHOD.md 9)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from workbench.chains.alignment import Bools, Measured
from workbench.chains.shrinkage import Belief, Prior
from workbench.domain import kpis
from workbench.domain.errors import DataError
from workbench.models.base import Floats
from workbench.models.forecast import Forecaster, Points

REACH = 2.0
"""A law of two terms reaches to so many times the highest sampled load: a canary goes to half."""
_LEAST_SHARE = 0.05
"""Of the unloaded times, what is left of them whatever Δ takes away."""
_WIDEST = 2.1
"""Largest |log κ| that is thought of."""
UNKNOWN_KAPPA = Prior(0.15, 4.0, -_WIDEST, _WIDEST)
LITTLE_LEFT = Prior(0.03, 4.0, -_WIDEST, _WIDEST, taus=(0.02, 0.06, 0.2), tau=0.03)
"""How far log κ is thought to be from 0: where nothing says what CPU the functions need in the
chain, and where it was measured and they are asked by it already."""
_STRETCHES = np.linspace(-_WIDEST, _WIDEST, 29)
"""Log factors on the load at which the bottleneck is tabled."""


class ProfileTerms(Protocol):
    """What the stand-alone profiles say of a chain, before anything is added."""

    think_ms: float
    """How long the clients of a closed loop think; 0 where they do not, or there are none."""

    def bottleneck(self, points: Points) -> Floats:
        """Log of the largest of the functions' KPIs, max_i R_i, of shape (m,)."""
        ...

    def unloaded_sum(self, points: Points) -> Floats:
        """Sum of their unloaded KPIs, Σ_i R_i(1), in the KPI's unit, of shape (m,)."""
        ...


Basis = tuple[Floats, ...]
"""What the profiles say of m points: arrays of shape (m,) or (m, k)."""


class CurveForm(Protocol):
    """A curve of log KPI with two coefficients; those of shape (..., 1) meet points of (m,)."""

    name: str
    priors: tuple[Prior, Prior]
    shapes: tuple[float, ...]
    reach: float
    """Up to how many times the highest sampled load it is believed."""

    def lay(self, points: Points) -> Basis: ...

    def within(self, low: float, high: float) -> CurveForm:
        """The same for first coefficients in that range alone, which may be laid sooner."""
        ...

    def carried_to(self, prediction: Forecaster, terms: ProfileTerms | None) -> CurveForm: ...

    def curve(self, first: Floats, second: Floats, shape: float, basis: Basis) -> Floats: ...

    def bottleneck(self, first: Floats, second: Floats, basis: Basis) -> Floats:
        """1 where the loaded profiles decide, 0 where they do not, of the curve's shape."""
        ...

    def terms(self, belief: Belief) -> Sequence[tuple[str, str, float, Floats]]:
        """Name, unit, value without samples and values of the cells, for people."""
        ...


@dataclass(frozen=True)
class AtSamples:
    """A form at the samples that it is fitted to."""

    form: CurveForm
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


class TwoTermForm:
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
    reach = REACH

    def __init__(
        self, terms: ProfileTerms, seen: Measured, kpi: str, kappa: Prior = UNKNOWN_KAPPA
    ) -> None:
        self._terms, self._kpi, self._stretches = terms, kpi, _STRETCHES
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
            kappa,
            Prior(0.5, 1.0, -2.3, max(math.log1p(largest) + 0.5, 1.0)),
        )

    def lay(self, points: Points) -> Basis:
        unloaded = self._terms.unloaded_sum(points)
        if not self._terms.think_ms:
            return self._terms.bottleneck(points), unloaded
        stretched = [(c, wl * math.exp(log)) for log in self._stretches for c, wl in points]
        table = self._terms.bottleneck(stretched).reshape(len(self._stretches), len(points))
        return table.T, unloaded

    def within(self, low: float, high: float) -> CurveForm:
        other = copy.copy(self)
        step = _STRETCHES[1] - _STRETCHES[0]
        needed = (low - step < _STRETCHES) & (high + step > _STRETCHES)
        other._stretches = _STRETCHES[needed]
        return other

    def carried_to(self, prediction: Forecaster, terms: ProfileTerms | None) -> CurveForm:  # noqa: ARG002
        assert terms is not None  # a correction keeps its form
        other = copy.copy(self)
        other._terms = terms
        return other

    def curve(self, first: Floats, second: Floats, shape: float, basis: Basis) -> Floats:
        loaded, unloaded = self._loaded(first, basis), self._unloaded(second, basis)
        larger = np.maximum(loaded, unloaded)
        if not shape:
            return larger
        return np.asarray(larger + shape * np.log1p(np.exp(-np.abs(loaded - unloaded) / shape)))

    def bottleneck(self, first: Floats, second: Floats, basis: Basis) -> Floats:
        return np.asarray((self._loaded(first, basis) >= self._unloaded(second, basis)) * 1.0)

    def terms(self, belief: Belief) -> Sequence[tuple[str, str, float, Floats]]:
        delta = self._reference * np.expm1(belief.second)
        return (
            ("kappa", "", 1.0, np.exp(belief.first)),
            ("delta", kpis.of(self._kpi).unit, 0.0, delta),
        )

    def _loaded(self, first: Floats, basis: Basis) -> Floats:
        """Log of the bottleneck's KPI with log κ of shape (..., 1): added to log KPIs (m,), or
        looked up among those at stretched loads, (m, k)."""
        bottleneck = basis[0]
        if bottleneck.ndim == 1:
            return np.asarray(first + bottleneck)
        nodes = self._stretches
        place = np.clip((first - nodes[0]) / (nodes[1] - nodes[0]), 0.0, len(nodes) - 1.0)
        left = np.minimum(place.astype(np.int64), len(nodes) - 2)
        rows, share = np.arange(len(bottleneck)), place - left
        lower, upper = bottleneck[rows, left], bottleneck[rows, left + 1]
        return np.asarray((1.0 - share) * lower + share * upper)

    def _unloaded(self, second: Floats, basis: Basis) -> Floats:
        added = self._reference * np.expm1(second)
        return np.asarray(np.log(np.maximum(basis[1] + added, _LEAST_SHARE * basis[1])))


class SlopeForm:
    """log KPI = prediction + first + second·(log load - log of the highest sampled load)."""

    name = "offset"
    priors = (Prior(0.3, 1.0, -5.0, 5.0), Prior(0.15, 1.0, -2.0, 2.0))
    shapes: tuple[float, ...] = (0.0,)
    reach = 1.0

    def __init__(self, prediction: Forecaster, ends: Callable[[Points], Floats]) -> None:
        self._prediction, self._ends = prediction, ends

    def lay(self, points: Points) -> Basis:
        load = np.log([wl for _, wl in points])
        return self._prediction.forecast(points).mean, load - np.log(self._ends(points))

    def within(self, low: float, high: float) -> CurveForm:  # noqa: ARG002
        return self

    def carried_to(self, prediction: Forecaster, terms: ProfileTerms | None) -> CurveForm:  # noqa: ARG002
        return SlopeForm(prediction, self._ends)

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
