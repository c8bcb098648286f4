"""The catalogue's profiling functions of one load (paper D, section III.B).

Every function is `level + scale * z(r; shape)`, in the KPI or in its logarithm. That is all that
`workbench.models.regions` needs to fit it; a new one is one more entry here.
"""

# ruff: noqa: ARG005 - all entries are called alike, whatever each makes use of

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from workbench.models.base import Floats

_TINY = 1e-12
_LARGEST = 1e300


@dataclass(frozen=True)
class SearchedNumber:
    """Where one number of a shape is searched; lengths are in widths of the region."""

    low: float
    high: float
    count: int = 21
    log: bool = True

    def at(self, share: Floats) -> Floats:
        """Shares 0 to 1 of the axis as values."""
        if self.log:
            return np.asarray(self.low * (self.high / self.low) ** share)
        return np.asarray(self.low + (self.high - self.low) * share)


Shape = tuple[Floats, ...]


@dataclass(frozen=True)
class Frame:
    """A region's own axis: its place t = (r - first) / width is 0 to 1. Arrays of shape (k,)."""

    first: Floats
    width: Floats


@dataclass(frozen=True)
class ProfilingFunction:
    """One entry of the catalogue.

    Attributes
    ----------
    name, formula, coefficients : the function, its text and its coefficients' names; r is the load.
    evaluate : KPI at loads of shape (n,), for coefficients of shape (..., k), as shape (..., n).
    inverse : load at which the KPI is a figure, for coefficients of shape (k,); NaN where there is
        no such load; None if the function has no inverse.
    monotone : whether it only rises or only falls, whatever its coefficients.
    z : from places t in the region, the shape and first / width; None for a constant.
    named : coefficients, in their order, from level, scale and shape in a region's frame.
    domain : whether it is a sum in the KPI (`raw`) or in its logarithm (`log`).
    level : fitted freely, fitted at zero or above, absent, or given.
    sign : sign of the scale; 0 is either.
    shape : what is searched besides.
    """

    name: str
    formula: str
    coefficients: tuple[str, ...]
    evaluate: Callable[[Floats, Floats], Floats]
    inverse: Callable[[Floats, float], float] | None
    z: Callable[[Floats, Shape, Floats], Floats] | None
    named: Callable[[Floats, Floats, Shape, Frame], tuple[Floats, ...]]
    monotone: bool = True
    domain: Literal["raw", "log"] = "raw"
    level: Literal["free", "positive", "none"] | float = "free"
    sign: int = 0
    shape: tuple[SearchedNumber, ...] = ()

    @property
    def size(self) -> int:
        return len(self.coefficients)

    def __reduce__(self) -> tuple[Callable[[str, float], ProfilingFunction], tuple[str, float]]:
        """Between processes it travels by name."""
        return function_named, (self.name, self.level if isinstance(self.level, float) else 100.0)


def _exp(power: Floats) -> Floats:
    return np.asarray(np.exp(np.clip(power, -690.0, 690.0)))


def _over(distance: Floats) -> Floats:
    """1 / distance, and 0 at and behind the pole."""
    return np.divide(1.0, distance, out=np.zeros_like(distance), where=distance > 0.0)


def _each(coefficients: Floats) -> list[Floats]:
    """Coefficients of shape (..., k) as k arrays of shape (..., 1)."""
    return [coefficients[..., place, None] for place in range(coefficients.shape[-1])]


def _ratio(above: float, below: float) -> float:
    return above / below if below else math.nan


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else math.nan


def _constant(c: Floats, r: Floats) -> Floats:
    return c[..., 0, None] + np.zeros_like(r)


def _linear(c: Floats, r: Floats) -> Floats:
    a, b = _each(c)
    return np.asarray(a * r + b)


def _exponential(c: Floats, r: Floats) -> Floats:
    a, b = _each(c)
    return np.asarray(_exp(np.log(np.maximum(a, 1.0 / _LARGEST)) + b * r))


def _offset_exponential(c: Floats, r: Floats) -> Floats:
    a, b, c0 = _each(c)
    return np.asarray(a + _exp(b * (r - c0)))


def _power(c: Floats, r: Floats) -> Floats:
    a, b = _each(c)
    return np.asarray(_exp(np.log(np.maximum(a, 1.0 / _LARGEST)) + b * np.log(r)))


def _logarithmic(c: Floats, r: Floats) -> Floats:
    a, b = _each(c)
    return np.asarray(a + b * np.log(r))


def _reciprocal(c: Floats, r: Floats) -> Floats:
    a, b = _each(c)
    return np.asarray(a + b / r)


def _queueing(c: Floats, r: Floats) -> Floats:
    a, b = _each(c)
    room = b - r
    return np.asarray(np.where(room > 0.0, a * _over(room), _LARGEST))


def _logistic(c: Floats, r: Floats) -> Floats:
    a, b, m = _each(c)
    return np.asarray(a / (1.0 + _exp(-b * (r - m))))


def _quadratic(c: Floats, r: Floats) -> Floats:
    a, b, m = _each(c)
    return np.asarray(a + b * (r - m) ** 2)


CONSTANT = ProfilingFunction(
    "constant", "a", ("a",), _constant, None, None,
    lambda level, scale, shape, frame: (_exp(level),),
    domain="log",
)  # fmt: skip

LINEAR = ProfilingFunction(
    "linear", "a r + b", ("a", "b"), _linear,
    lambda c, kpi: _ratio(kpi - c[1], c[0]),
    lambda t, shape, offset: t,
    lambda level, scale, shape, f: (scale / f.width, level - scale * f.first / f.width),
)  # fmt: skip

EXPONENTIAL = ProfilingFunction(
    # Paper D's Eq. 2 has a exp(b (r - c)), in which a and c cannot be told apart: c is 0.
    "exponential", "a exp(b r)", ("a", "b"), _exponential,
    lambda c, kpi: _ratio(_log(_ratio(kpi, c[0])), c[1]),
    lambda t, shape, offset: t,
    lambda level, scale, shape, f: (_exp(level - scale * f.first / f.width), scale / f.width),
    domain="log",
)  # fmt: skip

OFFSET_EXPONENTIAL = ProfilingFunction(
    # Of paper D's Eq. 3 and paper B's Eq. 2. The factor of exp is 1, so that c is its amplitude.
    "offset exponential", "a + exp(b (r - c))", ("a", "b", "c"), _offset_exponential,
    lambda c, kpi: c[2] + _ratio(_log(kpi - c[0]), c[1]),
    lambda t, shape, offset: _exp(np.minimum(shape[0] * (t - 1.0), 50.0)),
    lambda level, scale, shape, f: (
        level,
        shape[0] / f.width,
        f.first + f.width - np.log(np.maximum(scale, _TINY)) * f.width / shape[0],
    ),
    level="positive", sign=1, shape=(SearchedNumber(0.03, 300.0),),
)  # fmt: skip

POWER = ProfilingFunction(
    "power", "a r^b", ("a", "b"), _power,
    lambda c, kpi: math.exp(_ratio(_log(_ratio(kpi, c[0])), c[1])),
    lambda t, shape, offset: np.log(np.maximum(t + offset, _TINY)),
    lambda level, scale, shape, f: (_exp(level - scale * np.log(f.width)), scale),
    domain="log",
)  # fmt: skip

LOGARITHMIC = ProfilingFunction(
    "logarithmic", "a + b ln r", ("a", "b"), _logarithmic,
    lambda c, kpi: math.exp(_ratio(kpi - c[0], c[1])),
    lambda t, shape, offset: np.log(np.maximum(t + offset, _TINY)),
    lambda level, scale, shape, f: (level - scale * np.log(f.width), scale),
)  # fmt: skip

RECIPROCAL = ProfilingFunction(
    "reciprocal", "a + b / r", ("a", "b"), _reciprocal,
    lambda c, kpi: _ratio(c[1], kpi - c[0]),
    lambda t, shape, offset: _over(t + offset),
    lambda level, scale, shape, f: (level, scale * f.width),
)  # fmt: skip

QUEUEING = ProfilingFunction(
    "queueing", "a / (b - r)", ("a", "b"), _queueing,
    lambda c, kpi: c[1] - _ratio(c[0], kpi),
    lambda t, shape, offset: _over(1.0 + shape[0] - t),
    lambda level, scale, shape, f: (
        scale * f.width,
        f.first + f.width * (1.0 + shape[0]),
    ),
    level="none", sign=1, shape=(SearchedNumber(1e-4, 1e4),),
)  # fmt: skip

LOGISTIC = ProfilingFunction(
    "logistic", "a / (1 + exp(-b (r - c)))", ("a", "b", "c"), _logistic,
    lambda c, kpi: c[2] - _ratio(_log(_ratio(c[0], kpi) - 1.0), c[1]),
    lambda t, shape, offset: 1.0 / (1.0 + _exp(-shape[0] * (t - shape[1]))),
    lambda level, scale, shape, f: (
        scale, shape[0] / f.width, f.first + shape[1] * f.width
    ),
    level="none", sign=1,
    shape=(SearchedNumber(1.0, 100.0, 7), SearchedNumber(-0.5, 1.5, 7, log=False)),
)  # fmt: skip

QUADRATIC = ProfilingFunction(
    "quadratic", "a + b (r - c)^2", ("a", "b", "c"), _quadratic, None,
    lambda t, shape, offset: np.square(t - shape[0]),
    lambda level, scale, shape, f: (
        level, scale / f.width**2, f.first + shape[0] * f.width
    ),
    monotone=False, shape=(SearchedNumber(-1.0, 2.0, 13, log=False),),
)  # fmt: skip


def hyperbolic(top: float) -> ProfilingFunction:
    """The saturated piece of both papers' Eq. 2, that nears `top` (100 for a percentage)."""

    def evaluate(c: Floats, r: Floats) -> Floats:
        d, g = _each(c)
        room = r - g
        before = np.where(d > 0.0, 0.0, top)
        return np.asarray(np.where(room > 0.0, top * (1.0 - d * _over(room)), before))

    return ProfilingFunction(
        "hyperbolic", f"{top:g} (1 - d / (r - g))", ("d", "g"), evaluate,
        lambda c, kpi: c[1] + _ratio(c[0], 1.0 - kpi / top),
        lambda t, shape, offset: _over(t + shape[0]),
        lambda level, scale, shape, f: (
            -scale * f.width / top, f.first - shape[0] * f.width
        ),
        level=float(top), sign=-1, shape=(SearchedNumber(1e-4, 1e6, 25),),
    )  # fmt: skip


def profiling_functions(top: float = 100.0) -> tuple[ProfilingFunction, ...]:
    """The catalogue, simple ones first, for a KPI that saturates at `top` (its unit)."""
    return (
        CONSTANT,
        LINEAR,
        EXPONENTIAL,
        POWER,
        LOGARITHMIC,
        RECIPROCAL,
        hyperbolic(top),
        QUEUEING,
        OFFSET_EXPONENTIAL,
        LOGISTIC,
        QUADRATIC,
    )


def function_named(name: str, top: float = 100.0) -> ProfilingFunction:
    """An entry of the catalogue. Raises `KeyError` with all names."""
    entries = {function.name: function for function in profiling_functions(top)}
    if name not in entries:
        raise KeyError(f"{name} is not in the catalogue: {', '.join(entries)}")
    return entries[name]
