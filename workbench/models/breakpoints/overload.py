"""What a function carries near capacity and beyond: a law with two parameters.

With ρ the load over nominal capacity C, throughput over C is

    x(ρ) = ρ                              ρ <= 1 - w
           ρ - (ρ - 1 + w)² / 4w          between: a parabola, which loses more and more
           1                              ρ >= 1 + w

times ρ^(-D) beyond ρ = 1, with w the width of the knee (METHOD.md 11: 0 to 30 %) and D how fast
capacity decays. Usage is full where throughput begins to fall short, at 1 - w; below 1 - 2w it is
ρ (utilisation law, Denning & Buzen 1978), and between the service slows in proportion to the load.
With w = D = 0 this is the law of a queue: it carries what is offered up to C, and C beyond.

Places are logs of ρ over ρ_g, the load whose loss stands at the goal: the breakpoint `capacity`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from workbench.models.base import Floats

_GAIN_SHARE = 0.10
_GAIN_STEP = math.log(1.1)
"""Over which the gain of throughput is taken (METHOD.md 7.3)."""
_LUCK = 0.035
"""Log standard deviation of a window, which in a wide knee moves the loss and not the load at which
it is met."""

EDGE = 0.02
"""Shortfall of throughput that requests in flight at a window's edge explain: a quota gap of
0.1 s against windows of several seconds."""
FULL = 0.95
"""Share of the plateau from which on usage counts as full: it states no place any more."""


@dataclass(frozen=True)
class Shape:
    """How throughput goes on beside capacity.

    Attributes
    ----------
    decay : log capacity lost per log overload ln(load / throughput), D = decay / (1 - decay).
    width : w, of the knee.
    prior : probability before any reading.
    """

    decay: float
    width: float
    prior: float = 1.0

    def overload(self, shortfall: Floats) -> Floats:
        """ln ρ of samples that lost these shares of their load."""
        w = self.width
        far: Floats = -(1.0 - self.decay) * np.log1p(-shortfall)
        if not w:
            return far
        half = 1.0 - w + 2.0 * w * np.maximum(shortfall, 0.0)
        bent = np.log(half + np.sqrt(np.maximum(half * half - (1.0 - w) ** 2, 0.0)))
        # The decay of a wide knee counts where the knee has ended.
        found: Floats = np.where(shortfall < w / (1.0 + w), bent, np.maximum(far, bent_end(w)))
        return found

    def blur(self, shortfall: Floats) -> Floats:
        """Standard deviation of `overload` beyond that of a narrow knee: in a wide one a little
        loss more or less spans many loads."""
        low, high = np.maximum(shortfall - _LUCK, 0.0), np.minimum(shortfall + _LUCK, 0.999)
        excess = self.overload(high) - self.overload(low) - np.log1p(-low) + np.log1p(-high)
        found: Floats = 0.5 * np.maximum(excess, 0.0)
        return found

    def goal(self, loss: float) -> float:
        """ln ρ_g."""
        return float(self.overload(np.array([loss]))[0])

    def about_goal(self, loss: float) -> tuple[float, float]:
        """Places at which no loss, and twice the goal, is lost: a long run, too, tells a loss of
        some per cent no better, and in a wide knee that spans many loads."""
        none, twice = self.overload(np.array([0.0, 2.0 * loss]))
        return float(none) - self.goal(loss), float(twice) - self.goal(loss)

    def usage_place(self, share: Floats) -> Floats:
        """ln ρ of samples that used these shares of the plateau and lost nothing."""
        w, share = self.width, np.minimum(share, 1.0)
        # ρ / (2 - 2w - ρ), which grows from 1 - 2w to 1.
        bent = np.maximum(2.0 * (1.0 - w) * share / (1.0 + share), 1.0 - 2.0 * w)
        found: Floats = np.log(np.minimum(share, bent))
        return found

    def carried_place(self, share: Floats) -> tuple[Floats, Floats]:
        """ln ρ of samples that lost nothing worth a word, and how far it may be off: while usage
        grows by its share of the plateau, then anywhere until the loss can be seen."""
        place = self.usage_place(share)
        edge = np.full_like(place, EDGE)
        seen = self.overload(edge) + self.blur(edge)
        full = share > FULL
        middle: Floats = np.where(full, 0.5 * (place + seen), place)
        blur: Floats = np.where(full, np.maximum(seen - place, 0.0) / math.sqrt(12.0), 0.0)
        return middle, blur

    def gain_ends(self) -> float:
        """ln ρ from which on throughput gains less than a tenth of the load's increase."""
        return _gain_ends(self)

    def log_throughput(self, place: Floats) -> Floats:
        """ln x at ln ρ."""
        rho, w = np.exp(place), self.width
        x = np.minimum(rho, 1.0)
        if w:
            bent = rho - (rho - 1.0 + w) ** 2 / (4.0 * w)
            x = np.where(np.abs(rho - 1.0) < w, bent, x)
        found: Floats = np.log(x) - self.decay / (1.0 - self.decay) * np.maximum(place, 0.0)
        return found


def bent_end(width: float) -> float:
    """ln ρ where a knee has ended."""
    return math.log1p(width)


@cache
def _gain_ends(shape: Shape) -> float:
    places = np.linspace(-0.5, 0.7, 2401)
    gain = (shape.log_throughput(places + _GAIN_STEP) - shape.log_throughput(places)) / _GAIN_STEP
    return float(places[int(np.argmax(gain < _GAIN_SHARE))])


_DECAYS = (0.0, 0.08, 0.16, 0.25, 0.34, 0.43, 0.52, 0.6)
_DECAY_PRIOR = (0.65, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05)
_WIDTHS = (0.0, 0.1, 0.2, 0.3)
_WIDTH_PRIOR = (0.4, 0.2, 0.2, 0.2)
SHAPES: tuple[Shape, ...] = tuple(
    Shape(decay, width, a * b)
    for width, a in zip(_WIDTHS, _WIDTH_PRIOR, strict=True)
    for decay, b in zip(_DECAYS, _DECAY_PRIOR, strict=True)
    if not width or decay in (0.0, 0.25)
)
"""Most functions lose nothing in overload, some 20-60 % at twice the load, which is a decay of 0.24
to 0.57; knees are up to 30 % wide (METHOD.md 11)."""
PLAIN = (Shape(0.0, 0.0),)
"""No law: readings are what they say."""
