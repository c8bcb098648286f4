"""How far a row of counters lies from those that were learned."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from workbench.models.base import Floats
from workbench.models.counter_contention import BEYOND, traffic_of
from workbench.models.counter_extremes import INSIDE, MostContended
from workbench.models.counter_rows import CounterRows, least_above_0
from workbench.models.folds import Ints, folds_of, splits_of

USUAL = 0.9
"""Share of held-out rows that are as near as a function may stay for good: one that serves one load
stays at one distance, which need not be the mean."""
LEAST_SPREAD = 0.02
"""Sd of a logarithm that is taken for 0: a counter that hardly varied would rule all others."""
LEAST_APART_SD = 0.1
"""Of the logarithm of distances."""
MOST_HELD_OUT = 40
"""Experiments that are held out one by one; of more, as many folds of them."""


class HeldOutPlaces(NamedTuple):
    """Of rows by what was learned without their experiment, each of shape (n,).

    Attributes
    ----------
    silent : they lie outside, or have too little traffic or too much of others.
    strayed : `LearnedPlaces.strayed`.
    """

    silent: NDArray[np.bool_]
    strayed: Floats


class LearnedPlaces:
    """Rows (n, d) as places: logs of counters, standardised; distances are root mean squares.

    Attributes
    ----------
    limit : beyond it from the nearest learned row, counters are outside: `INSIDE` of the rows are
        nearer to those of other experiments.
    contention : the most that others took of the function.
    idle_below : traffic per second, below which there is less than was learned from: logs are cut
        at the least figure, so that distances do not show it.
    """

    def __init__(self, rows: CounterRows) -> None:
        self.least = np.array([least_above_0(column) for column in rows.x.T])
        logs = self._logs(rows.x)
        self.centre = logs.mean(axis=0)
        self.spread = np.maximum(logs.std(axis=0), LEAST_SPREAD)
        self.places = (logs - self.centre) / self.spread
        nearest = self.between(rows.groups).min(axis=1)
        self.limit = float(np.quantile(nearest, INSIDE))
        far = np.log(np.maximum(nearest, 1e-6))
        self._usual = float(np.quantile(far, USUAL))
        self._sd = max(float(far.std()), LEAST_APART_SD)
        self.contention = MostContended(rows)
        self.traffic, self.idle_below = traffic_of(rows.features), -math.inf
        if self.traffic is not None:
            learned = rows.x[:, rows.features.index(self.traffic)]
            self.idle_below = float(learned.min()) * math.exp(-BEYOND)

    def of(self, x: Floats) -> Floats:
        """Places of rows (m, d) of counters."""
        return np.asarray((self._logs(x) - self.centre) / self.spread)

    def between(self, groups: Ints) -> Floats:
        """Distances of the rows (n, n) to each other, infinite within one of the groups (n,)."""
        far = cdist(self.places, self.places) / math.sqrt(self.places.shape[1])
        return np.where(groups[:, None] == groups, np.inf, far)

    def apart(self, x: Floats) -> Floats:
        """Distances of rows (m, d) of counters to all learned ones, of shape (m, n)."""
        places = self.of(x)
        # A figure that is not finite is as far as can be.
        far = cdist(np.nan_to_num(places, nan=np.inf), self.places) / math.sqrt(places.shape[1])
        return np.asarray(np.nan_to_num(far, nan=np.inf, posinf=np.inf))

    def strayed(self, apart: float) -> float:
        """How much further than `USUAL` of held-out rows that is, in standard deviations of their
        logarithms: what a one-sided test of drift adds up. Below 0 where it is nearer."""
        return (math.log(max(apart, 1e-6)) - self._usual) / self._sd

    def _logs(self, x: Floats) -> Floats:
        return np.asarray(np.log(np.maximum(x, self.least)))


def held_out_places(rows: CounterRows) -> HeldOutPlaces:
    """Each experiment by a limit that was learned without it (in folds, of more than
    `MOST_HELD_OUT`). Needs three experiments."""
    silent, strayed = np.zeros(len(rows.y), dtype=bool), np.zeros(len(rows.y))
    for seen, out in splits_of(folds_of(rows.groups, MOST_HELD_OUT, 0)):
        learned = LearnedPlaces(rows.taken(seen))
        nearest = learned.apart(rows.x[out]).min(axis=1)
        silent[out] = (nearest > learned.limit) | learned.contention.exceeded(rows.x[out])
        if learned.traffic is not None:
            column = rows.features.index(learned.traffic)
            silent[out] |= rows.x[out, column] < learned.idle_below
        strayed[out] = [learned.strayed(each) for each in nearest.tolist()]
    return HeldOutPlaces(silent, strayed)
