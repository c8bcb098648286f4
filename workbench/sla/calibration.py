"""The risk of a recommendation that was selected because its estimate passed (METHOD.md 10).

The cheapest allocation whose estimate passes is, more often than its own error says, one whose
estimate was lucky (Smith & Winkler 2006): every allocation that fails just beyond the limit had its
own chance to pass, and the first of them is taken. docs/recommendation.md derives what is done:

    E[failing allocations that clear a margin z] = ρ ∫ Φ(-z - u) du = ρ (φ(z) - z Φ(-z)) = ρ L(z)

with ρ the number of failing allocations per standard deviation beyond the limit and L the unit
normal loss integral. The expectation is over where the limit happens to fall between the
allocations; it needs no independence of their errors. The risk of what is selected is the larger of
its own, Φ(-z), and that of any such allocation having passed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from workbench.models.base import Floats
from workbench.sla.performance import joint

WINDOW = 2.0
"""Standard deviations over which allocations are counted: wide against their error, which blurs
where they are, and narrow against how their density changes."""


@dataclass(frozen=True)
class Calibration:
    """How sure a margin is once it was selected.

    Attributes
    ----------
    density : ρ, contenders per standard deviation.
    threshold : the smallest margin whose probability is the asked confidence.
    settled : whether one passes whatever may follow, so that what follows cannot contend.
    """

    density: float
    threshold: float
    settled: bool

    def probability(self, margin: Floats) -> Floats:
        """That what was selected with these margins holds, in their shape."""
        return 1.0 - _risk(margin, self.density)


def calibrated(each: Floats, confidence: float) -> Calibration:
    """The calibration of one selection.

    Parameters
    ----------
    each : shape (m, n), margins of n limits of m allocations in the order of selection.
    confidence : asked, over 0.5.

    Notes
    -----
    Contenders are the allocations that do not pass by themselves and come before the first one
    that passes even if every allocation contended (Bonferroni): selection never gets beyond it.
    Those whose estimate fails count by their distance to the limit; those whose estimate holds,
    but not surely, count as if they failed at it. Allocations with the very same forecast share
    their error, since one function alone decides, and count once.
    """
    allowed = 1.0 - confidence
    margin = joint(each)
    sure = np.flatnonzero(margin >= -ndtri(allowed / max(len(margin), 1)))
    end = int(sure[0]) + 1 if sure.size else len(margin)
    path = np.unique(np.round(each[:end], 9), axis=0)
    contending = path[joint(path) < -ndtri(allowed)]
    # An allocation passes only if its worst limit does, so that is what it must be lucky in.
    distance = np.minimum(contending.min(axis=1, initial=np.inf), 0.0) / WINDOW
    # Twice the normal kernel: the half of it beyond the limit holds all of its weight.
    density = float(np.sum(2.0 * _phi(distance))) / WINDOW
    return Calibration(density, _threshold(density, allowed), bool(sure.size))


def _risk(margin: Floats, density: float) -> Floats:
    """Of a margin that was selected: its own, or that another one passed by luck."""
    own = ndtr(-margin)
    finite = np.clip(margin, -38.0, 38.0)
    loss = np.maximum(_phi(finite) - finite * ndtr(-finite), 0.0)
    return np.asarray(np.maximum(own, -np.expm1(-density * loss)))


def _threshold(density: float, allowed: float) -> float:
    """The margin whose risk is `allowed`, from above; the risk falls with the margin."""
    low, high = float(-ndtri(allowed)), 38.0
    if _risk(np.array([low]), density)[0] <= allowed:
        return low
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _risk(np.array([middle]), density)[0] > allowed:
            low = middle
        else:
            high = middle
    return high


def _phi(z: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * np.square(z)) / np.sqrt(2.0 * np.pi))
