"""A KPI of a function that no model was trained on, by models of other functions' counters.

Paper C, section V-B, applies its model to a topology with a function that it had not seen. Here
the answer is marked, and withheld where the function's counters lie outside of what others taught.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from workbench.domain.errors import DataError
from workbench.models.counter_looks import judged_looks
from workbench.models.counter_rows import CounterRows
from workbench.models.counter_scores import FEWEST_GROUPS
from workbench.models.counter_watch import CounterWatch
from workbench.models.estimator import seeded_subset
from workbench.models.folds import folds_of

MOST_LEARNED = 300
"""Rows of the other functions together, drawn evenly of each."""
MOST_PREDICTED = 500


@dataclass(frozen=True)
class Transfer:
    """What models of other functions say of one that they were not trained on.

    Attributes
    ----------
    function : the one not trained on. `learned_from` : the others.
    features : counters that all of them have, and that vary. `learned` : rows of the others.
    rows : of the function. `outside` : of these, without an answer, as they lie outside of what was
        learned.
    coverage : share of the answered whose 95 % interval held; None where none was answered, as
        `median_error` of the answered and `width`, the median of upper / lower - 1.
    unguarded_error : median error of all rows, had the model answered whatever it was asked.
    why_outside : of the first row without an answer; empty where all have one.
    """

    function: str
    learned_from: tuple[str, ...]
    features: tuple[str, ...]
    learned: int
    rows: int
    outside: int
    coverage: float | None
    median_error: float | None
    width: float | None
    unguarded_error: float
    why_outside: str


def transferred(by_function: Mapping[str, CounterRows], unseen: str, seed: int) -> Transfer:
    """Learn on all functions but `unseen`, then predict it.

    Where functions share experiments, as those of one chain do, what is predicted is of experiments
    that nobody was learned from in. Each of the others is held out whole, too, and intervals are as
    wide as the worse misses (`CounterWatch`); of a single other function that cannot be done.

    Parameters
    ----------
    by_function : rows of each function, whose features are named without it, and whose groups are
        equal for equal experiments only.

    Raises
    ------
    DataError
        If there is no other function, no counter that all have, or too few experiments.
    """
    others = tuple(name for name in by_function if name != unseen)
    if unseen not in by_function or not others:
        raise DataError(
            f"counters of {unseen} and of another function are needed; there are those of "
            f"{', '.join(by_function) or 'none'}",
            where="--unseen",
            remedy="Name a function that is there beside others, of counters measured alike",
        )
    common = tuple(
        name
        for name in by_function[unseen].features
        if all(name in by_function[other].features for other in others)
    )
    if not common:
        raise DataError(
            f"no counter of {unseen} is one of {', '.join(others)}, too",
            where="--unseen",
            remedy="Measure all of them with the same counters",
        )
    tried = by_function[unseen].only(common)
    taught = [by_function[other].only(common) for other in others]
    tried, taught = _apart(tried, taught, seed)
    rows = _together(taught, seed)
    watch = CounterWatch(rows, seed)
    asked = tried.taken(seeded_subset(len(tried.y), MOST_PREDICTED, seed))
    return _judged(watch, asked, unseen, others)


def of_own_experiments(by_function: Mapping[str, CounterRows]) -> dict[str, CounterRows]:
    """The same rows, no two functions of which share an experiment: each was measured alone."""
    found, first = {}, 0
    for function, rows in by_function.items():
        numbers = np.unique(rows.groups, return_inverse=True)[1].reshape(-1)
        found[function] = replace(rows, groups=numbers + first)
        first += rows.group_count
    return found


def _apart(
    tried: CounterRows, taught: list[CounterRows], seed: int
) -> tuple[CounterRows, list[CounterRows]]:
    """Where both have experiments in common, half of the tried ones are kept from the others.

    Raises `DataError` where nothing is left to learn from.
    """
    known = np.unique(np.concatenate([rows.groups for rows in taught]))
    if not np.isin(tried.groups, known).any():
        return tried, taught
    own = np.unique(tried.groups)
    kept = own[folds_of(own, 2, seed) == 1]
    held_back = kept if kept.size else own
    learned = np.setdiff1d(np.union1d(known, own), held_back)
    left = int(np.isin(known, learned).sum())
    if left <= FEWEST_GROUPS:
        raise DataError(
            f"{left} of {len(np.union1d(known, own))} experiments are left to learn from, where "
            f"{FEWEST_GROUPS + 1} are needed: those that the functions share are half kept, to "
            "try the models on",
            where="--unseen",
            remedy="Give more experiments, or experiments of the other functions alone",
        )
    return tried.taken(np.flatnonzero(~np.isin(tried.groups, learned))), [
        rows.taken(np.flatnonzero(np.isin(rows.groups, learned))) for rows in taught
    ]


def _together(taught: list[CounterRows], seed: int) -> CounterRows:
    """Rows of the other functions as one table, in which each function is a company of its own:
    who learns from it holds each out whole."""
    share = max(1, MOST_LEARNED // len(taught))
    parts = [rows.taken(seeded_subset(len(rows.y), share, seed)) for rows in taught]
    return CounterRows(
        parts[0].features,
        np.concatenate([part.x for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.groups for part in parts]),
        np.concatenate([np.full(len(part.y), i + 1) for i, part in enumerate(parts)]),
    )


def _judged(
    watch: CounterWatch, tried: CounterRows, unseen: str, others: tuple[str, ...]
) -> Transfer:
    counted = [dict(zip(tried.features, row, strict=True)) for row in tried.x.tolist()]
    found = judged_looks(watch, counted, tried.y.tolist())
    whatever = watch.model.predict(tried.only(watch.features).x)
    answered = len(found.true)
    return Transfer(
        function=unseen,
        learned_from=others,
        features=watch.features,
        learned=len(watch.rows.y),
        rows=found.rows,
        outside=found.rows - answered,
        coverage=found.held / answered if answered else None,
        median_error=float(np.median(np.abs(found.said / found.true - 1.0))) if answered else None,
        width=float(np.median(found.high / found.low - 1.0)) if answered else None,
        unguarded_error=float(np.median(np.abs(whatever / tried.y - 1.0))),
        why_outside=found.why,
    )
