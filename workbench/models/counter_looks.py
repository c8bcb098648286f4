"""What a watch says of rows whose KPI is known: its answers, and what it withholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.models.base import Floats
from workbench.models.counter_watch import OUTSIDE, CounterWatch


@dataclass(frozen=True)
class JudgedLooks:
    """Answers beside what was measured.

    Attributes
    ----------
    rows : asked for. `outside` : of these, without an answer, as they lie outside of what was
        learned. `missing` : as a counter of the model was not counted there.
    true, said, low, high : of the answered, each of shape (k,): the KPI, what was said of it, and
        the ends of its interval.
    why : of the first row without an answer; empty where all have one.
    """

    rows: int
    outside: int
    missing: int
    true: Floats
    said: Floats
    low: Floats
    high: Floats
    why: str

    @property
    def held(self) -> int:
        """Of the answered, those within their interval."""
        return int(((self.low <= self.true) & (self.true <= self.high)).sum())


def judged_looks(
    watch: CounterWatch, counted: Sequence[Mapping[str, float]], true: Sequence[float]
) -> JudgedLooks:
    """Ask a watch for each row of counters, by name, and hold it against the KPI there."""
    looks = [watch.look(row, {}) for row in counted]
    answers = np.array(
        [
            (figure, look.value, look.low, look.high)
            for look, figure in zip(looks, true, strict=True)
            if look.value is not None
        ],
        dtype=float,
    ).reshape(-1, 4)
    outside = sum(look.why.startswith(OUTSIDE) for look in looks)
    measured, said, low, high = answers.T
    return JudgedLooks(
        rows=len(looks),
        outside=outside,
        missing=len(looks) - outside - len(answers),
        true=measured,
        said=said,
        low=low,
        high=high,
        why=next((look.why for look in looks if look.why), ""),
    )
