"""`python benchmarks/designed_stimuli.py FUNCTION SESSION`: stimuli by design, or at random?

A session that was measured beside competitors (docs/counters.md) has more samples than a model may
be given: it gets n of them, and is asked about the others. Which n is decided by their stimuli
alone (load, competitor, intensity, place), never by what was measured: at random; in regular steps
of load under each competitor alike (load and resource stimulus of paper C, III-A, crossed);
or each as far as can be from those that are taken already (a greedy maximin design). Told is the
error after n, over draws; a design begins with another stimulus in each, steps at another load.
"""

from __future__ import annotations

import argparse
import asyncio
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from counted_sessions import CEILING_MS, KPIS, measurements
from scipy import stats

from workbench.domain.competitors import COMPETITOR, FULL, KINDS, NONE, PLACES, Competitor
from workbench.domain.errors import DataError
from workbench.domain.samples import Measurement
from workbench.engine.answers.counter_learning import counted_rows
from workbench.models.base import Floats
from workbench.models.counter_models import OwnCounterModel
from workbench.models.counter_rows import CounterRows, without_idle_features
from workbench.models.folds import Ints

SHARES = (0.2, 0.3, 0.4, 0.6)
"""Of the samples, that a model is given."""
DRAWS = 10


def place_of(one: Measurement) -> tuple[float, ...]:
    """Of its stimulus: log load, who competes (one of each), intensity and place."""
    point = one.sample.point
    asked = Competitor.parse(str(point.configuration.workload.get(COMPETITOR, NONE)))
    kinds = [float(asked is not None and asked.kind == kind) for kind in KINDS]
    much = asked.intensity / FULL if asked else 0.0
    where = [float(asked is not None and asked.place == place) for place in PLACES]
    return (math.log(point.wl), *kinds, much, *where)


def places_of(taken: Sequence[Measurement]) -> Floats:
    """Of shape (n, d), each column from 0 to 1."""
    places = np.array([place_of(one) for one in taken])
    spread = np.ptp(places, axis=0)
    return np.asarray((places - places.min(axis=0)) / np.where(spread > 0.0, spread, 1.0))


def designed(places: Floats, count: int, first: int) -> list[int]:
    """Greedy maximin: the next is the one furthest from all that are taken."""
    taken, apart = [first], np.linalg.norm(places - places[first], axis=1)
    while len(taken) < count:
        apart[taken] = -1.0
        taken.append(int(apart.argmax()))
        apart = np.minimum(apart, np.linalg.norm(places - places[taken[-1]], axis=1))
    return taken


def gridded(places: Floats, count: int, draw: np.random.Generator) -> list[int]:
    """The same number of each competitor's samples, their loads those next to regular steps."""
    kinds = np.unique(places[:, 1:], axis=0, return_inverse=True)[1].ravel()
    members = [np.flatnonzero(kinds == kind) for kind in draw.permutation(kinds.max() + 1)]
    many = [len(part) for part in np.array_split(np.arange(count), len(members))]
    if any(n > len(own) for n, own in zip(many, members, strict=True)):
        raise DataError(f"{count} samples cannot be split evenly over {len(members)} competitors")
    taken: list[int] = []
    begin = draw.random()
    for n, own in zip(many, members, strict=True):
        left = own.tolist()
        for load in (np.arange(n) + begin) / max(n, 1):
            nearest = min(left, key=lambda one: abs(places[one, 0] - load))
            left.remove(nearest)
            taken.append(nearest)
    return taken


def error(rows: CounterRows, seen: Ints) -> float:
    """Median share by which the rows that are not seen are missed."""
    model = OwnCounterModel(0).fit(rows.x[seen], rows.y[seen], rows.groups[seen])
    off = np.abs(model.predict(rows.x[~seen]) / rows.y[~seen] - 1.0)
    return float(np.median(off))


def by_sample(taken: Sequence[Measurement], function: str, kpi: str) -> CounterRows:
    """The row of each sample, in their order; such campaigns settle in one window.

    Raises `DataError` where a sample has none.
    """
    rows = counted_rows(taken, function, kpi, CEILING_MS).rows
    if len(rows.y) != len(taken):
        raise DataError(
            f"{len(taken)} samples have {len(rows.y)} windows, where one of each is due"
        )
    return without_idle_features(rows)[0]


def ratio(these: Floats, those: Floats) -> str:
    """Of errors in the same draws: the geometric mean, and its 95 % interval."""
    logs = np.log(these / those)
    low, high = np.exp(stats.t.interval(0.95, DRAWS - 1, logs.mean(), stats.sem(logs)))
    return f"{np.exp(logs.mean()):.2f} ({low:.2f} to {high:.2f})"


def table(taken: Sequence[Measurement], function: str, kpi: str) -> str:
    rows, places = by_sample(taken, function, kpi), places_of(taken)
    lines = [
        f"{kpi} of {function}: {len(taken)} samples, median error on those that a model is not "
        f"given, mean and 95 % interval over {DRAWS} draws",
        "",
        "| given | at random | in steps | designed | designed / random, 95 % | designed / steps |",
        "|---|---|---|---|---|---|",
    ]
    for share in SHARES:
        count = max(4, round(share * len(taken)))
        random, steps, design = np.empty((3, DRAWS))
        for number in range(DRAWS):
            draw = np.random.default_rng(number)
            order = draw.permutation(len(taken))
            for found, chosen in (
                (random, order[:count].tolist()),
                (steps, gridded(places, count, draw)),
                (design, designed(places, count, int(order[0]))),
            ):
                seen = np.zeros(len(taken), dtype=bool)
                seen[chosen] = True
                found[number] = error(rows, seen)
        lines.append(
            f"| {count} | {random.mean():.1%} | {steps.mean():.1%} | {design.mean():.1%} | "
            f"{ratio(design, random)} | {ratio(design, steps)} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("function")
    parser.add_argument("session", type=Path)
    given = parser.parse_args()
    everything = asyncio.run(measurements(given.session))
    alone = [m for m in everything if m.sample.point.target == given.function]
    for asked in KPIS:
        print(table(alone, given.function, asked), end="\n\n")
