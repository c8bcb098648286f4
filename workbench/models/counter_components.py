"""How few directions counters vary in, and how a KPI goes with each: paper C's view of latency.

Paper C, section V-C and Fig. 11: principal components of the counters, in which points of high and
of low latency lie apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from workbench.models.counter_rows import CounterRows
from workbench.models.counter_weights import correlations

MOST_COMPONENTS = 5
COUNTERS_NAMED = 3


@dataclass(frozen=True)
class CounterComponent:
    """One direction in which counters vary.

    Attributes
    ----------
    number : from 1, by falling share.
    share : of the variance of the standardised counters, from 0 to 1.
    pearson, low, high : its correlation with the KPI and the 95 % bootstrap interval of that;
        whole experiments are drawn, and of fewer than three there is none.
    told : share of the KPI's variance that a line over this and the earlier ones tells.
    counters : those that it is made of most, the strongest first; `-` before what falls with it.
    """

    number: int
    share: float
    pearson: float
    low: float | None
    high: float | None
    told: float
    counters: tuple[str, ...]


def components_of(rows: CounterRows, seed: int) -> list[CounterComponent]:
    """The first principal components of standardised counters (n, d); none where nothing varies.

    Their signs are such that the strongest counter of each rises with it.
    """
    spread = rows.x.std(axis=0)
    varied = np.flatnonzero(spread > 0.0)
    if len(rows.y) < 2 or not len(varied):
        return []
    standard = (rows.x[:, varied] - rows.x[:, varied].mean(axis=0)) / spread[varied]
    variances, directions = np.linalg.eigh(standard.T @ standard / len(standard))
    shares = np.maximum(variances[::-1], 0.0) / len(varied)
    # What is left of rank that the rows do not have is rounding, and no direction.
    count = min(MOST_COMPONENTS, len(varied), len(standard) - 1, int((shares > 1e-12).sum()))
    first = directions[:, ::-1][:, :count]
    strongest = np.abs(first).argmax(axis=0)
    first = first * np.sign(first[strongest, np.arange(count)])
    numbers = tuple(map(str, range(1, count + 1)))
    scores = replace(rows, features=numbers, x=standard @ first)
    found = correlations(scores, seed)
    # Components do not correlate with each other, so that what they tell adds up.
    told = np.cumsum([one.pearson**2 for one in found])
    names = [rows.features[column] for column in varied]
    return [
        CounterComponent(
            i + 1, float(shares[i]), one.pearson, one.low, one.high, min(float(told[i]), 1.0),
            tuple(
                ("-" if first[c, i] < 0.0 else "") + names[c]
                for c in np.argsort(-np.abs(first[:, i]))[:COUNTERS_NAMED]
            ),
        )
        for i, one in enumerate(found)
    ]  # fmt: skip
