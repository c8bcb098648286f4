"""Does what is stored still come out? What a version says that nobody raised.

Of every problem, sampler and final model the first seed that is stored is played again to its
first budgets: samples, lab seconds and errors are compared, and the errors tell of every point
that was asked. What a change does to later budgets only, this does not see. References, which are
one fit and have no beginning, are fitted again on recordings; on surfaces that takes minutes each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from science import judging, playing, surfaces, tables
from science.judging import Score
from science.playing import Fitting, Kept
from science.stored import Store

BUDGETS = 3
TOLERANCE = 1e-9
"""Relative difference of figures that are the same."""
REFERENCE = "(reference)"
Checked = tuple[str, str, str, bool]
"""Problem, sampler, model, whether it comes out as stored."""


def report(store: Store, names: Sequence[str], workers: int) -> str:
    """By sampler and model: how many are stored of these problems, and which differ."""
    jobs = [(name, sampler) for name in names for sampler in (*playing.samplers(), REFERENCE)]
    with ProcessPoolExecutor(workers) as executor:
        done = [one for own in executor.map(partial(_checked, store), jobs) for one in own]
    rows = []
    for pair in sorted({(sampler, model) for _, sampler, model, _ in done}):
        own = [(name, same) for name, *of, same in done if tuple(of) == pair]
        differs = ", ".join(name for name, same in own if not same)
        rows.append([*pair, f"{len(own)}", differs or "none"])
    return tables.table(["sampler", "model", "stored of problems", "differs on"], rows)


def _checked(store: Store, job: tuple[str, str]) -> list[Checked]:
    name, sampler = job
    models = judging.models()
    if sampler == REFERENCE:
        fitted = [] if name in surfaces.BY_NAME else models
        return [
            (name, sampler, model, same)
            for model in fitted
            if (same := same_reference(store, name, model)) is not None
        ]
    fittings: dict[tuple[int, int], Fitting] = {}  # one play is asked for all of its models
    found = []
    for model in models:
        same = same_beginning(store, name, sampler, model, fittings)
        if same is not None:
            found.append((name, sampler, model, same))
    return found


def same_beginning(
    store: Store,
    name: str,
    sampler: str,
    model: str,
    fittings: dict[tuple[int, int], Fitting] | None = None,
) -> bool | None:
    """Whether the first budgets cost and give what is stored; None where nothing is."""
    kept = [k for k in store.lines(playing.key(name, sampler, model), Kept) if k.curve.samples]
    if not kept:
        return None
    first = min(kept, key=lambda k: (k.seed, k.most))
    known = {} if fittings is None else fittings
    which = first.seed, first.most
    if which not in known:
        known[which] = Fitting(name, sampler, *which)
    old = first.curve
    for place in range(min(BUDGETS, len(old.samples))):
        new = known[which](place, [model])
        if isinstance(new, str):
            return False
        samples, lab_s, scores = new
        costs_same = samples == old.samples[place] and _close(lab_s, old.lab_s[place])
        if not (costs_same and same_score(scores[model], old.scores[place])):
            return False
    return True


def same_reference(store: Store, name: str, model: str) -> bool | None:
    """Whether a model errs as stored, taught by everything; None where that is not stored."""
    known = playing.reference_stored(store, name, model)
    return None if known is None else same_score(playing.reference(name, model), known)


def same_score(one: Score, other: Score) -> bool:
    """Errors alone: seconds are the machine's."""
    pairs = (one.rmse, other.rmse), (one.median, other.median), (one.rmse_kpi, other.rmse_kpi)
    return all(_close(a, b) for a, b in pairs)


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=TOLERANCE)
