"""Where more load is asked for and less is carried: throughput that falls under overload.

Beyond its capacity a function mostly carries what it can. Some carry much less, as a proxy that
spends its quota on connections that then time out. One low window is luck and passes for an
outlier; two samples that agree, or one that is far below, are what the function does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.models.base import Floats
from workbench.models.scales import NORMAL_95

FALLEN = math.log(1.5)
"""Below the most that was carried, in logs, from which it is a fall."""
ALONE = math.log(2.5)
"""The same of a single sample: as far as windows hardly ever scatter (METHOD.md 11: one in twenty
by a factor of two)."""
_SAME = 1e-5
"""Log loads that differ by less are one."""
_FEWEST = 3
"""Loads: one below, the most, one that fell."""
SIGNIFICANT = 4.0
"""Standard errors by which a fall has to stand out."""


@dataclass(frozen=True)
class Fall:
    """What is carried falls between two neighbouring loads; all in natural logs.

    Attributes
    ----------
    peak_wl, peak : the load at which most was carried, and that; the second most where a single
        sample carried most.
    before, first : the last load before the fall and the first one after it.
    fallen : loads (k,) at which little was carried, rising.
    carried, sd : what was, and its standard deviation, (k,).
    recovered : the first load above at which no less than before is carried, None if there is none.
    samples : how many samples fell.
    """

    peak_wl: float
    peak: float
    before: float
    first: float
    fallen: Floats
    carried: Floats
    sd: Floats
    recovered: float | None
    samples: int

    @property
    def repeated(self) -> bool:
        return self.samples > 1

    @property
    def believed(self) -> bool:
        """Two samples agree, or a single one at the highest load fell too far for scatter."""
        far = self.recovered is None and self.peak - float(self.carried[0]) > ALONE
        return self.repeated or far

    @property
    def depth(self) -> tuple[float, float, float]:
        """Share of the most that is still carried, with its 95 % interval."""
        deepest = int(np.argmin(self.carried))
        down, sd = float(self.carried[deepest]) - self.peak, float(self.sd[deepest])
        low, middle, high = (math.exp(down + z * sd) for z in (-NORMAL_95, 0.0, NORMAL_95))
        return middle, low, min(high, 1.0)


def fall_of(x: Sequence[float] | Floats, y: Sequence[float] | Floats, sd: Floats) -> Fall | None:
    """The first fall of log throughput `y` over log load `x`, each (n,) with `sd` (n,).

    Samples of one load are taken together. A fall begins at the first load above that of the most
    at which `FALLEN` less is carried, by four standard errors and by all its samples.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.size < _FEWEST:
        return None
    order = np.argsort(x, kind="stable")
    apart = np.flatnonzero(np.diff(x[order]) > _SAME) + 1
    groups = np.split(order, apart)
    loads = np.array([x[group[0]] for group in groups])
    if loads.size < _FEWEST:
        return None
    weights = [1.0 / np.maximum(sd[g], 0.02) ** 2 for g in groups]
    means = [float(np.average(y[g], weights=w)) for g, w in zip(groups, weights, strict=True)]
    mean = np.array(means)
    error = np.array([1.0 / math.sqrt(float(w.sum())) for w in weights])
    least = np.array([float(y[g].max()) for g in groups])
    top = int(np.argmax(mean))
    # One lucky window is not what a function can carry: then the next best says it.
    if groups[top].size < 2:
        top = int(np.argsort(mean)[-2])
    down = mean[top] - mean
    fell = (down > FALLEN) & (down > SIGNIFICANT * np.hypot(error, error[top]))
    fell &= mean[top] - least > FALLEN
    fell[: top + 1] = False
    if not fell.any():
        return None
    first = int(np.argmax(fell))
    back = np.flatnonzero(~fell[first:])
    end = first + int(back[0]) if back.size else loads.size
    return Fall(
        float(loads[top]), float(mean[top]), float(loads[first - 1]), float(loads[first]),
        loads[first:end], mean[first:end], error[first:end],
        float(loads[end]) if end < loads.size else None,
        sum(groups[i].size for i in range(first, end)),
    )  # fmt: skip
