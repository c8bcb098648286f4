"""How many independent batches do the batches of a visit amount to?

Student's t takes batches for independent. Where the work itself is correlated, with requests that
are slow for as long as the window lasts, ten batches may be worth two, and their interval covers
three quarters of what it says. What is needed is known (Flegal & Jones, Ann. Stat. 38, 2010:
batches that grow with the run; Meketon & Schmeiser, WSC 1984: overlapping ones), but seconds do not
hold enough long batches to choose from. So the batches stay, and count for fewer: with lag-1
correlation r, k of them are worth k(1-r)/(1+r), which is exact in the limit for an
autoregressive sequence of first order.

r of half a dozen batches is hardly known, and choosing by it alone stops too often on a lucky one.
It is looked for in five times as many parts, where even a weak correlation shows, and only then
taken from the batches as well, where what requests add by themselves no longer hides it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.measuring.records import Floats

PARTS = 5
"""Parts of a batch, of equal length."""
SUSPECT = 0.25
"""Correlation of neighbouring parts beyond which the batches are asked as well. Independent parts
of a window of 3 s exceed it in one of nine windows."""
HIGHEST = 0.97
LEAST = 1.2
"""Independent batches that a sample has at least: with one nothing could be said."""
CLEAR = 0.45
"""Correlation of neighbouring parts which is no chance: one in a hundred independent windows."""
ENOUGH = 4.5
"""Independent batches below which a sample whose correlation is clear is called `correlated` and
driven on. Where it may be chance its interval is as wide as if it were not, and that is all."""


@dataclass(frozen=True)
class DeviationSeries:
    """A figure's deviation, by batch or by part, of each window.

    Attributes
    ----------
    windows : arrays of shape (k,), one for each window, in their order; NaN where there is none.
    """

    windows: Sequence[Floats]

    @property
    def size(self) -> int:
        return sum(int(np.isfinite(w).sum()) for w in self.windows)

    def together(self, count: int) -> DeviationSeries:
        """Means of so many neighbours each."""
        rows = [w.reshape(-1, count) for w in self.windows]
        known = [np.isfinite(r).sum(axis=1) for r in rows]
        return DeviationSeries(
            [
                np.where(n > 0, np.nansum(r, axis=1) / np.maximum(n, 1), np.nan)
                for r, n in zip(rows, known, strict=True)
            ]
        )

    def lag1(self) -> float:
        """Correlation of neighbours within a window, about the mean of all; 0 if none varies."""
        mean = float(np.nanmean(np.concatenate(self.windows))) if self.size else 0.0
        deviations = [w - mean for w in self.windows]
        squares = float(np.nansum([np.nansum(d**2) for d in deviations]))
        products = np.concatenate([d[1:] * d[:-1] for d in deviations])
        pairs = int(np.isfinite(products).sum())
        if squares <= 0 or not pairs:
            return 0.0
        return float(np.nansum(products)) / squares * (self.size - len(self.windows)) / pairs


@dataclass(frozen=True)
class Worth:
    """How many independent batches a figure rests on, and whether these are enough."""

    batches: float
    enough: bool


def independent(batches: DeviationSeries, parts: DeviationSeries) -> Worth:
    """How many independent batches the batches are worth, `LEAST` to their number.

    Parameters
    ----------
    batches : Series, the figure of each batch in logs
    parts : Series, a figure of each part that shows what is alike, in any unit

    Notes
    -----
    A correlation is estimated too low by about (1 + 4r)/n (Kendall, Biometrika 41, 1954), which is
    made good for: with few batches that decides.
    """
    k, n = batches.size, parts.size
    if k < 4 or n < 2 * k:
        return Worth(float(k), True)
    raw = parts.lag1()
    fine = _within(raw + (1 + 4 * raw) / n)
    worth = min(float(k), _worth(n, fine))
    if fine > SUSPECT:
        own = max(batches.lag1(), parts.together(PARTS).lag1())
        coarse = _within((own + 1 / k) / (1 - 4 / k)) if k > 4 else HIGHEST
        worth = min(worth, _worth(k, coarse))
    return Worth(max(worth, LEAST), fine <= CLEAR or worth >= ENOUGH)


def _worth(count: int, r: float) -> float:
    return count * (1 - r) / (1 + r)


def _within(r: float) -> float:
    return float(np.clip(r, 0.0, HIGHEST))
