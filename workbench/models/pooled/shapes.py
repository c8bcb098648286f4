"""How log KPI follows u = log(wl / capacity): a family for each mechanism, and what data add.

All return log KPI above the base level, monotone in u, of the shape of u.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.special import log_ndtr, ndtr

from workbench.models.base import Floats
from workbench.models.pooled.surface import matern


def queue(u: Floats, theta: Floats) -> Floats:
    """Flat, then a line of slope `a` in logs; closed loop: a = 1, log softmax of METHOD.md 12."""
    a, k = np.exp(theta)
    return np.asarray(a * np.logaddexp(0.0, k * u) / k)


def loss(u: Floats, theta: Floats) -> Floats:
    """Log of E[(1 - C'/wl)+], C' log-normal around C with `width` (METHOD.md 12); what is lost for
    other reasons comes beside it, with the sharpness exp(theta[2]) (`Family.power`)."""
    height, width = theta[0], np.exp(theta[1])
    share = ndtr(u / width) - np.exp(width**2 / 2 - u + log_ndtr(u / width - width))
    return np.asarray(height + np.log(np.maximum(share, 1e-12)))


def plateau(u: Floats, theta: Floats) -> Floats:
    """A line that ends at the capacity: what throughput falls behind the load, in logs."""
    a, k = np.exp(theta)
    return np.asarray(-a * np.logaddexp(0.0, k * u) / k)


@dataclass(frozen=True)
class Family:
    """A mechanism: its curve, where its parameters start and how far they may move (sd)."""

    name: str
    curve: Callable[[Floats, Floats], Floats]
    start: tuple[float, ...]
    spread: tuple[float, ...]
    slope: float = 0.0
    """Slope of the base line over log wl: 1 where the KPI follows the load below saturation."""
    beside: bool = False
    """Base and steep piece are of different causes and add; else the piece multiplies the base."""

    def power(self, theta: Floats) -> float:
        """Sharpness of the sum: 1 adds the KPIs, a large one takes the larger of both."""
        return float(np.exp(theta[2])) if self.beside else 1.0


FAMILIES = (
    Family("closed loop", queue, (0.0, np.log(8.0)), (0.2, 1.0)),
    Family("queue", queue, (np.log(4.0), np.log(10.0)), (0.8, 1.0)),
    Family(
        "loss",
        loss,
        (np.log(1000.0), np.log(0.08), np.log(1.5)),
        (0.7, 0.8, 0.3),
        beside=True,
    ),
    Family("plateau", plateau, (0.0, np.log(8.0)), (0.2, 1.0), 1.0),
)

KNOTS = np.sinh(np.linspace(-np.arcsinh(40.0), np.arcsinh(40.0), 91)) * 0.1
"""In u, from -4 to 4, dense around the breakpoint."""
_STRETCHED = np.arcsinh(KNOTS / 0.1)
_PRIORS = tuple(
    size**2
    * (matern(np.abs(_STRETCHED[:, None] - _STRETCHED) / length) + 1e-6 * np.eye(len(KNOTS)))
    for length in (0.8, 0.3)
    for size in (0.15, 0.3, 0.6, 1.2)
)
"""What data may add: smooth or in steps, little or much."""


@dataclass(frozen=True)
class FittedShape:
    """A family's curve with fitted parameters, tabulated together with what data added."""

    family: Family
    theta: Floats
    table: Floats
    """At `KNOTS`."""
    _fine: Floats
    doubt: Floats
    """Variance at `KNOTS` of what data added: the shape is not known where they are few."""

    @classmethod
    def of(
        cls,
        family: Family,
        theta: Floats,
        extra: Floats | None = None,
        doubt: Floats | None = None,
    ) -> FittedShape:
        table = family.curve(KNOTS, theta) + (0.0 if extra is None else extra)
        sign = -1.0 if family.slope else 1.0
        table = sign * np.maximum.accumulate(sign * table)
        fine = family.curve(FINE, theta)
        if extra is not None:
            fine = fine + np.interp(FINE, KNOTS, extra)
        doubt = np.zeros(len(KNOTS)) if doubt is None else doubt
        return cls(family, theta, table, sign * np.maximum.accumulate(sign * fine), doubt)

    def __call__(self, u: Floats) -> Floats:
        return np.asarray(np.interp(u, FINE, self._fine))

    def slope(self, u: Floats) -> Floats:
        """Derivative with respect to u."""
        return (self(u + 0.01) - self(u - 0.01)) / 0.02


FINE = np.concatenate(
    [
        np.linspace(-12, -1, 23)[:-1],
        np.linspace(-1, 1.5, 501),
        np.linspace(1.5, 12, 43)[1:],
    ]
)
"""Where a shape is tabulated; it is interpolated and ends flat beyond."""


def corrected(
    family: Family, theta: Floats, u: Floats, rest: Floats, weight: Floats
) -> FittedShape:
    """The family's curve plus what weighted data (all of shape (n,)) leave of it.

    The addition is a Gaussian process over asinh(u / 0.1), of the standard deviation and reach
    under which the data are most likely.
    """
    place = np.clip(np.searchsorted(KNOTS, u) - 1, 0, len(KNOTS) - 2)
    share = np.clip((u - KNOTS[place]) / (KNOTS[place + 1] - KNOTS[place]), 0.0, 1.0)
    normal = np.zeros((len(KNOTS),) * 2)
    right = np.zeros(len(KNOTS))
    for i, a in ((place, 1.0 - share), (place + 1, share)):
        np.add.at(right, i, weight * a * rest)
        for j, b in ((place, 1.0 - share), (place + 1, share)):
            np.add.at(normal, (i, j), weight * a * b)
    best = -np.inf
    for prior in _PRIORS:
        inner = prior @ normal
        np.einsum("ii->i", inner)[:] += 1.0
        factor = lu_factor(inner, overwrite_a=True, check_finite=False)
        mean = lu_solve(factor, prior @ right, check_finite=False)
        evidence = 0.5 * float(right @ mean)
        evidence -= 0.5 * float(np.sum(np.log(np.abs(np.diag(factor[0])))))
        if evidence > best:
            best, extra, chosen = evidence, np.asarray(mean, dtype=float), (factor, prior)
    doubt = np.maximum(np.diag(lu_solve(*chosen, check_finite=False)), 0.0)
    return FittedShape.of(family, theta, extra, np.asarray(doubt, dtype=float))
