"""How much others may have slowed a function, for what is said of it to be what was learned.

A function's load moves all of its counters; who competes moves a few of them, for the same load.
Where many go with the load, a distance over all of them hardly shows such a few.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from workbench.models.base import Floats
from workbench.models.counter_contention import (
    BEYOND,
    FEWEST_QUIET,
    LEAST_SD,
    SIGNS,
    quiet_line,
    quiet_of,
    traffic_of,
)
from workbench.models.counter_rows import CounterRows
from workbench.models.folds import Ints

INSIDE = 0.99
"""Share of held-out rows that count as inside of what was learned."""


class MostContended:
    """The most that signs of others' load (`counter_contention.SIGNS`) were over what the
    function's own traffic explains, in any learned row.

    What traffic explains is a line in logs through the rows in which nobody competed. Each sign may
    be over the most by as much as `INSIDE` of the rows are over the most of other experiments, at
    least `LEAST_SD`. Where nobody competed at all the most is the chance of quiet rows and no
    measure of others; there, as with fewer than `FEWEST_QUIET` rows alone or without a counter that
    tells traffic, there are no signs, and nothing is exceeded.

    Attributes
    ----------
    signs : their names. most : of each, in logs over what traffic explains, of shape (signs,).
    limits : by how much each may be over that, in logs, of shape (signs,).
    """

    def __init__(self, rows: CounterRows) -> None:
        traffic, quiet = traffic_of(rows.features), quiet_of(rows)
        known = traffic is not None and quiet.sum() >= FEWEST_QUIET and not quiet.all()
        self.signs = [name for name in SIGNS if known and name in rows.features]
        if traffic is None or not self.signs:
            return
        self._traffic = rows.features.index(traffic)
        self._columns = [rows.features.index(name) for name in self.signs]
        load = np.log(np.maximum(rows.x[:, self._traffic], 1.0))
        self._ends = float(load[quiet].min()) - BEYOND, float(load[quiet].max()) + BEYOND
        self._lines = [quiet_line(load, logs, quiet) for logs in self._logs(rows.x).T]
        over = self.over(rows.x)
        self.most = over.max(axis=0)
        apart = over - _most_of_others(over, rows.groups)
        self.limits = np.maximum(np.quantile(apart, INSIDE, axis=0), LEAST_SD)

    def over(self, x: Floats) -> Floats:
        """Logs of rows (m, d) of counters over what their traffic explains, of shape (m, signs)."""
        load = np.clip(np.log(np.maximum(x[:, self._traffic], 1.0)), *self._ends)
        explained = [np.polyval(line, load) for line in self._lines]
        return np.asarray(self._logs(x) - np.column_stack(explained))

    def exceeded(self, x: Floats) -> NDArray[np.bool_]:
        """Whether rows (m, d) of counters have more of a sign than was learned, of shape (m,)."""
        if not self.signs:
            return np.zeros(len(x), dtype=bool)
        return np.asarray((self.over(x) > self.most + self.limits).any(axis=1))

    def why(self, x: Floats) -> str:
        """What a row (d,) of counters has more of than was learned; empty where nothing is."""
        if not self.exceeded(x[None])[0]:
            return ""
        over = self.over(x[None])[0]
        sign = int((over - self.most - self.limits).argmax())
        return (
            f"{SIGNS[self.signs[sign]].says} {math.exp(over[sign]):.1f} times what its traffic "
            f"explains, learned up to {math.exp(self.most[sign]):.1f}"
        )

    def _logs(self, x: Floats) -> Floats:
        floors = [SIGNS[name].floor for name in self.signs]
        return np.asarray(np.log(x[:, self._columns] + floors))


def _most_of_others(over: Floats, groups: Ints) -> Floats:
    """The most of each sign in other experiments than that of each row, of shape (n, signs). Needs
    two experiments."""
    numbers = np.unique(groups, return_inverse=True)[1].reshape(-1)
    most = np.array([over[numbers == one].max(axis=0) for one in range(numbers.max() + 1)])
    others = np.array([np.delete(most, one, axis=0).max(axis=0) for one in range(len(most))])
    return np.asarray(others[numbers])
