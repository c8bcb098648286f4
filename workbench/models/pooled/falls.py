"""What a configuration carries less beyond a collapse, beside the law that knows none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from workbench.models.base import Floats
from workbench.models.falls import FALLEN, SIGNIFICANT, Fall, fall_of
from workbench.models.pooled.law import Law
from workbench.models.pooled.samples import Samples


def _one_of_several(samples: Samples, rows: np.ndarray, fall: Fall) -> bool:
    """What falls more than once is no collapse but a curve that no law describes."""
    x = samples.x[rows]
    rising = rows[np.argsort(x, kind="stable")]
    rising = rising[samples.x[rising] < fall.peak_wl - 1e-5]
    dips = np.maximum.accumulate(samples.y[rising]) - samples.y[rising] > FALLEN
    if np.count_nonzero(dips & (SIGNIFICANT * samples.noise[rising] < FALLEN)) > 1:
        return True
    if fall.recovered is None:
        return False
    above = rows[x >= fall.recovered - 1e-5]
    return fall_of(samples.x[above], samples.y[above], samples.noise[above]) is not None


class _Carried(Protocol):
    def own_moments(self, place: np.ndarray, x: Floats) -> tuple[Floats, Floats]: ...


@dataclass
class Falls:
    """Falls by the number of their configuration.

    Attributes
    ----------
    found : what fell, by configuration.
    held : flags (n,) of the samples that fell.
    """

    found: dict[int, Fall]
    held: np.ndarray

    def __post_init__(self) -> None:
        self._lines: dict[int, tuple[Floats, Floats, Floats]] = {}

    @classmethod
    def none(cls, samples: Samples) -> Falls:
        return cls({}, np.zeros(len(samples), dtype=bool))

    @classmethod
    def of(cls, law: Law, samples: Samples) -> Falls:
        """Those that are believed; of throughput alone, which follows the load below capacity."""
        falls = cls.none(samples)
        if not law.family.slope:
            return falls
        for place in np.unique(samples.place):
            rows = np.flatnonzero(samples.place == place)
            fall = fall_of(samples.x[rows], samples.y[rows], samples.noise[rows])
            if fall is not None and fall.believed and not _one_of_several(samples, rows, fall):
                falls.found[int(place)] = fall
                end = np.inf if fall.recovered is None else fall.recovered
                x = samples.x[rows]
                falls.held[rows[(x > fall.before + 1e-5) & (x < end - 1e-5)]] = True
        return falls

    def over(self, model: _Carried) -> None:
        """Hold what was carried against what the model says without falls: the line between loads
        is straight in logs, from the last load that was carried to the first that fell."""
        for place, fall in self.found.items():
            law, _ = model.own_moments(np.full(len(fall.fallen), place), fall.fallen)
            knots, down = [fall.before, *fall.fallen], [0.0, *(fall.carried - law)]
            doubt = [0.0, *(fall.sd**2)]
            if fall.recovered is not None:
                knots, down, doubt = [*knots, fall.recovered], [*down, 0.0], [*doubt, 0.0]
            self._lines[place] = np.array(knots), np.array(down), np.array(doubt)

    def at(self, c: np.ndarray, x: Floats) -> tuple[Floats, Floats]:
        """What falls away at loads x (m,) of configurations `c` (m,), in logs, and its variance.

        Between two loads nobody knows where on the way it fell: there it may be either.
        """
        down, doubt = np.zeros(len(x)), np.zeros(len(x))
        for place, (knots, line, variance) in self._lines.items():
            rows = np.flatnonzero(c == place)
            down[rows] = np.interp(x[rows], knots, line)
            share = np.interp(x[rows], knots, np.arange(len(knots), dtype=float)) % 1.0
            here = np.minimum(np.searchsorted(knots, x[rows]), len(knots) - 1)
            step = line[here] - line[np.maximum(here - 1, 0)]
            doubt[rows] = np.interp(x[rows], knots, variance) + share * (1.0 - share) * step**2
        return down, doubt

    @property
    def coefficients(self) -> Floats:
        lines = [self._lines[place][1] for place in sorted(self._lines)]
        return np.concatenate(lines) if lines else np.zeros(0)
