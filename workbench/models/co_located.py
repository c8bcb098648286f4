"""A function beside competitors, as Yala (arXiv 2405.05529) publishes its measurements: memory
contention from counters, an accelerator from the work that all put into it, and both composed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from workbench.models.base import Floats
from workbench.models.counter_models import (
    CacheLine,
    CounterBoosting,
    CounterLine,
    CounterNetwork,
    OwnCounterModel,
    cache_columns,
)
from workbench.models.counter_rows import CounterRows
from workbench.models.counter_scores import (
    CounterScore,
    HeldOutModel,
    Maker,
    band_of,
    group_reach,
    held_out_models,
    misses_of,
    predicted_by,
    score_of,
    taught_by,
)
from workbench.models.folds import Ints

OWN_TRAFFIC = ("flowsize", "pktsize")
"""Features that describe the function's own traffic; all else are counters of its competitors."""


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


class CoLocatedMethod(NamedTuple):
    """One way to predict the test rows.

    Attributes
    ----------
    rows : that it learns from, with the features that it knows.
    composed : with the accelerator as a pipeline, whose slower part decides.
    """

    name: str
    make: Maker
    rows: CounterRows
    composed: bool


@dataclass(frozen=True)
class CoLocatedScore:
    """One method on the test rows, over seeds.

    Attributes
    ----------
    score : means over the seeds. `mape_low`, `mape_high` : the least and the largest error.
    learned_from : rows.
    chosen : what ours came to, by seeds; empty of others.
    by_accelerator : of the test rows, those that the accelerator decides, not what was learned.
    predicted : of shape (m,), with the first seed, as `by_accelerator`.
    models : each has not seen a fold of the rows learned from: the interval is of their misses.
    """

    score: CounterScore
    mape_low: float
    mape_high: float
    learned_from: int
    chosen: tuple[str, ...]
    by_accelerator: int
    predicted: Floats
    models: list[HeldOutModel]


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


def co_located_methods(profile: CoLocatedProfile) -> list[CoLocatedMethod]:
    """Ours and others, first as their authors use these rows, then all on the same ones.

    As published, `linear` and `SLOMO` know no traffic and no accelerator and learn from
    `one_traffic`, and Yala's memory model learns from `many_traffics`. Of all rows each knows what
    ours knows: traffic, counters (Dobrescu's model: traffic and the competitors' references to the
    cache) and the accelerator.
    """
    taught, many = profile.taught, profile.many_traffics
    counters = tuple(name for name in taught.features if name not in OWN_TRAFFIC)
    bare = profile.one_traffic.only(counters)
    found = [
        CoLocatedMethod("ours", OwnCounterModel, taught, True),
        CoLocatedMethod("ours, of Yala's rows", OwnCounterModel, many, True),
        CoLocatedMethod("Yala", CounterBoosting, many, True),
        CoLocatedMethod("SLOMO without its extrapolation", CounterBoosting, bare, False),
        CoLocatedMethod("linear", CounterLine, bare, False),
        CoLocatedMethod("Yala, of all rows", CounterBoosting, taught, True),
        CoLocatedMethod(
            "MLP (paper C), of all rows",
            lambda seed: CounterNetwork(random_state=seed),
            taught,
            True,
        ),
        CoLocatedMethod("linear, of all rows", CounterLine, taught, True),
    ]
    if columns := cache_columns(taught.features):
        traffic = tuple(i for i, name in enumerate(taught.features) if name in OWN_TRAFFIC)
        found.append(
            CoLocatedMethod(
                "linear in cache references (Dobrescu), of all rows",
                lambda seed: CacheLine((*traffic, *columns), seed),
                taught,
                True,
            )
        )
    return found


def co_located_score(
    profile: CoLocatedProfile, method: CoLocatedMethod, seeds: int
) -> CoLocatedScore:
    """One method, with its interval, on the test rows, which it predicts once for each seed.

    The interval is learned with the first seed from runs of competitors among the rows learned
    from, each of which was held out; it knows nothing of an accelerator.
    """
    rows, true = method.rows, profile.unseen.y
    asked = profile.unseen.only(rows.features).x
    models = held_out_models(rows, method.make, 0)
    reach = group_reach(misses_of(rows.y, predicted_by(models, rows)), rows.groups, 0)
    left = at_accelerator(profile) if method.composed else np.full(len(true), np.inf)
    scores, chosen, first = [], set(), np.zeros(0)
    for seed in range(seeds):
        model = taught_by(method.make, rows, seed)
        said = np.minimum(model.predict(asked), left)
        scores.append(score_of(method.name, true, said, band_of(said, reach, float(rows.y.min()))))
        chosen.add(getattr(model, "chosen_", ""))
        first = first if seed else said
    errors = [one.mape for one in scores]
    return CoLocatedScore(
        _mean_of(scores), min(errors), max(errors), len(rows.y),
        tuple(sorted(chosen - {""})), int((first == left).sum()), first, models,
    )  # fmt: skip


def all_co_located(
    profile: CoLocatedProfile, seeds: int, tell: Callable[[str], None]
) -> list[CoLocatedScore]:
    """All of `co_located_methods`, ours first, and what the accelerator tells without any of them;
    `tell` hears which is at work."""
    methods = co_located_methods(profile)
    found = []
    for number, method in enumerate(methods, start=1):
        tell(f"model {number} of {len(methods)}: {method.name}")
        found.append(co_located_score(profile, method, seeds))
    left, true = at_accelerator(profile), profile.unseen.y
    alone = score_of("the accelerator alone", true, left)
    rows = len(profile.accelerator)
    found.append(CoLocatedScore(alone, alone.mape, alone.mape, rows, (), len(true), left, []))
    return found


def _mean_of(scores: list[CounterScore]) -> CounterScore:
    """Of the same rows and model with several seeds."""

    def mean(name: str) -> float:
        return float(np.mean([getattr(one, name) for one in scores]))

    return replace(
        scores[0],
        mape=mean("mape"),
        median=mean("median"),
        within_5=mean("within_5"),
        within_10=mean("within_10"),
        coverage=mean("coverage"),
        width=mean("width"),
    )
