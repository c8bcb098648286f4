"""A function beside competitors, as Yala (arXiv 2405.05529) publishes its measurements: memory
contention from counters, an accelerator from the work that all put into it, and both composed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.models.base import Floats
from workbench.models.counter_models import (
    CounterBoosting,
    CounterLine,
    CounterModel,
    OwnCounterModel,
)
from workbench.models.counter_rows import CounterRows
from workbench.models.folds import Ints

OWN_TRAFFIC = ("flowsize", "pktsize")
"""Features that describe the function's own traffic; all else are counters of its competitors."""
CO_LOCATED = ("ours", "Yala", "SLOMO without its extrapolation", "linear")


@dataclass(frozen=True)
class CoLocatedProfile:
    """What was published of one function.

    Attributes
    ----------
    one_traffic, many_traffics : training rows under one traffic profile (SLOMO's) and under many
        (Yala's); features are `flowsize`, `pktsize` and counters, y the throughput.
    accelerator : of shape (k, 2): matches per MB of traffic, and 1 / throughput of the accelerator
        alone.
    unseen : test rows, with the same features.
    match_rate, others_work : of shape (m,), of the test rows: the function's matches per MB, and
        the sum of its competitors' 1 / throughput at the accelerator.
    """

    one_traffic: CounterRows
    many_traffics: CounterRows
    accelerator: Floats
    unseen: CounterRows
    match_rate: Floats
    others_work: Floats

    @property
    def taught(self) -> CounterRows:
        """All training rows; those with the same competitors are of one group."""
        one, many = self.one_traffic, self.many_traffics
        x = np.concatenate([one.x, many.x])
        return CounterRows(
            one.features, x, np.concatenate([one.y, many.y]), competitor_runs(one.features, x)
        )


def competitor_runs(features: tuple[str, ...], x: Floats) -> Ints:
    """Number of the run of competitors that each row of `x` (n, d) is from: rows with equal
    counters share it, whatever the function's own traffic was."""
    counters = [i for i, name in enumerate(features) if name not in OWN_TRAFFIC]
    numbers = np.unique(x[:, counters], axis=0, return_inverse=True)[1]
    return np.asarray(numbers.reshape(-1), dtype=np.int64)


def at_accelerator(profile: CoLocatedProfile) -> Floats:
    """Throughput that the accelerator leaves for each test row, of shape (m,): it serves one after
    the other, so that 1 / throughput is its own work, linear in the matches, and that of others."""
    slope, offset = np.polyfit(profile.accelerator[:, 0], profile.accelerator[:, 1], 1)
    work = offset + slope * profile.match_rate + profile.others_work
    return np.asarray(1.0 / np.maximum(work, 1e-12))


def predicted(profile: CoLocatedProfile, method: str, seed: int) -> tuple[Floats, CounterModel]:
    """Throughput of the test rows, of shape (m,), by one of `CO_LOCATED`, and its fitted model.

    `linear` and `SLOMO` know no traffic and no accelerator, and learn from `one_traffic`; Yala's
    memory model learns from `many_traffics`, ours from all. Both of the latter are composed with
    the accelerator as a pipeline: the slower of the two decides.
    """
    counters = tuple(name for name in profile.unseen.features if name not in OWN_TRAFFIC)
    if method in CO_LOCATED[2:]:
        rows = profile.one_traffic.only(counters)
        model = CounterLine(seed) if method == "linear" else CounterBoosting(seed)
        model.fit(rows.x, rows.y)
        return model.predict(profile.unseen.only(counters).x), model
    rows = profile.taught if method == "ours" else profile.many_traffics
    model = OwnCounterModel(seed) if method == "ours" else CounterBoosting(seed)
    model.fit(rows.x, rows.y, rows.groups)
    memory = model.predict(profile.unseen.x)
    return np.minimum(memory, at_accelerator(profile)), model
