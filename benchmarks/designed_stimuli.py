"""`python benchmarks/designed_stimuli.py FUNCTION`: stimuli by design, or at random?

Of the rows that counted_sessions.py keeps, or of sessions that are named. One that was measured
beside competitors has more samples than a model may be given: it gets n of them,
and is asked about the others. Which n is decided by their stimuli alone (load, competitor,
intensity, place), never by what was measured: at random; in regular steps of load under each
competitor alike (load and resource stimulus of paper C, III-A, crossed); or each as far as can be
from those that are taken already (a greedy maximin design). Told is the error after n, over draws;
a design begins with another stimulus in each, steps at another load.
Draws are of one session: how much another session would differ they do not say. What is found of
kept rows is added to `results/counted_tables.json`, by KPI (`--kpi`, all of them without).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from counted_pages import design_table, read_results, write_results
from counted_sessions import of_files, of_kept
from kept_counters import KeptFunction, KeptWindow, rows_of_kept
from scipy import stats

from workbench.domain.competitors import FULL, KINDS, PLACES, Competitor
from workbench.domain.errors import DataError
from workbench.models.base import Floats
from workbench.models.counter_models import OwnCounterModel
from workbench.models.counter_rows import CounterRows, without_idle_features
from workbench.models.folds import Ints

SHARES = (0.2, 0.3, 0.4, 0.6)
"""Of the samples, that a model is given."""
DRAWS = 10


def place_of(one: KeptWindow) -> tuple[float, ...]:
    """Of its stimulus: log load, who competes (one of each), intensity and place."""
    asked = Competitor.parse(one.beside)
    kinds = [float(asked is not None and asked.kind == kind) for kind in KINDS]
    much = asked.intensity / FULL if asked else 0.0
    where = [float(asked is not None and asked.place == place) for place in PLACES]
    return (math.log(one.wl), *kinds, much, *where)


def places_of(taken: Sequence[KeptWindow]) -> Floats:
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


def by_sample(taken: Sequence[KeptWindow], kpi: str) -> tuple[CounterRows, Sequence[KeptWindow]]:
    """The row of each sample, and its window; one that lacks a counter is left out.

    Raises `DataError` where a sample has several windows: one would tell of the other.
    """
    several = len(taken) - len({(one.session, one.sample) for one in taken})
    if several:
        raise DataError(
            f"{several} windows are of samples that have another: one of each is due",
            remedy="Take a session that settles in one window",
        )
    features = rows_of_kept(taken, kpi).rows.features
    whole = [one for one in taken if all(name in one.counted for name in features)]
    rows = rows_of_kept(whole, kpi).rows
    if len(rows.y) != len(whole):
        raise DataError(f"{len(whole)} samples have {len(rows.y)} rows, where one of each is due")
    return without_idle_features(rows)[0], whole


def ratio(these: Floats, those: Floats) -> tuple[float, float, float]:
    """Of errors in the same draws: the geometric mean, and its 95 % interval."""
    logs = np.log(these / those)
    low, high = np.exp(stats.t.interval(0.95, DRAWS - 1, logs.mean(), stats.sem(logs)))
    return float(np.exp(logs.mean())), float(low), float(high)


def errors_of(rows: CounterRows, places: Floats, count: int) -> Floats:
    """Of each draw at random, in steps and designed: shape (3, draws)."""
    found = np.empty((3, DRAWS))
    for number in range(DRAWS):
        draw = np.random.default_rng(number)
        order = draw.permutation(len(rows.y))
        ways = (
            order[:count].tolist(),
            gridded(places, count, draw),
            designed(places, count, int(order[0])),
        )
        for way, chosen in enumerate(ways):
            seen = np.zeros(len(rows.y), dtype=bool)
            seen[chosen] = True
            found[way, number] = error(rows, seen)
    return found


def compared(kept: KeptFunction, kpi: str) -> dict[str, Any]:
    """After each share of the samples the errors, and how they compare."""
    rows, taken = by_sample(kept.having(kpi), kpi)
    places, shares = places_of(taken), []
    for share in SHARES:
        count = max(4, round(share * len(taken)))
        random, steps, design = errors_of(rows, places, count)
        shares.append(
            {
                "given": count,
                "random": float(random.mean()),
                "steps": float(steps.mean()),
                "designed": float(design.mean()),
                "over_random": ratio(design, random),
                "over_steps": ratio(design, steps),
            }
        )
    return {"samples": len(taken), "draws": DRAWS, "shares": shares}


def run(given: argparse.Namespace) -> None:
    (kept,) = (
        [of_files(given.function, given.sessions)] if given.sessions else of_kept([given.function])
    )
    for kpi in (k for k in kept.kpis if k.startswith(given.kpi)):
        found = compared(kept, kpi)
        print(design_table(kept.name, kpi, found), end="\n\n", flush=True)
        if given.sessions:
            continue
        known = read_results()["designed"].get(kept.name, {})
        same = known.get("kpis", {}) if known.get("rows") == kept.fingerprint else {}
        of = {"rows": kept.fingerprint, "kpis": {**same, kpi: found}}
        write_results({"designed": {kept.name: of}})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("function")
    parser.add_argument("sessions", nargs="*", type=Path)
    parser.add_argument("--kpi", default="", help="how it begins: throughput, p95")
    try:
        run(parser.parse_args())
    except DataError as refused:
        parser.exit(1, f"{refused}\n")
