"""An axis of a plot: from figures to pixels, and where its ticks are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_LOG_FROM = 30.0
"""Figures that differ by more than this are drawn in logs: a straight axis would hide the low."""


@dataclass(frozen=True)
class PixelAxis:
    """Figures from `low` to `high` on pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    @classmethod
    def over(cls, figures: Iterable[float], start: float, end: float) -> PixelAxis:
        """Around all figures, with a little room at either end."""
        known = tuple(figures)
        low, high = min(known), max(known)
        if low > 0 and high / low >= _LOG_FROM:
            room = (high / low) ** 0.04
            return cls(low / room, high * room, start, end, log=True)
        room = 0.06 * (high - low) or abs(high) or 1.0
        return cls(low - room if low < 0 else max(0.0, low - room), high + room, start, end, False)

    def at(self, figure: float) -> float:
        """The pixel of a figure; figures beyond the axis lie on its ends."""
        inside = min(max(figure, self.low), self.high)
        share = (self._scaled(inside) - self._scaled(self.low)) / (
            self._scaled(self.high) - self._scaled(self.low)
        )
        return self.start + share * (self.end - self.start)

    @property
    def ticks(self) -> tuple[float, ...]:
        """Round figures on the axis, about four to eight."""
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)))
            steps = (1.0, 2.0, 5.0) if len(decades) <= 3 else (1.0,)
            every = math.ceil(len(decades) / 8)
            found = [m * 10.0**d for d in decades[::every] for m in steps]
            return tuple(t for t in (*found, 10.0 ** (decades[-1] + 1)) if self._holds(t))
        rough = (self.high - self.low) / 5
        magnitude = 10.0 ** math.floor(math.log10(rough))
        step = next(m * magnitude for m in (1.0, 2.0, 5.0, 10.0) if m * magnitude >= rough)
        first = math.ceil(self.low / step)
        return tuple(n * step for n in range(first, first + 12) if self._holds(n * step))

    def _scaled(self, figure: float) -> float:
        return math.log(figure) if self.log else figure

    def _holds(self, figure: float) -> bool:
        return self.low <= figure <= self.high
