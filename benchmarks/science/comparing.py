"""Samplers against each other on one problem: with the same final model, and each with its best.

Two errors are to be reached. For *same model* it is 1.1 times what that model reaches with the
whole training set; for *own best* it is 1.1 times what the best model reaches with it, the
reference of the issue. A sampler's own best model is the one with which its median seed needs the
fewest samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from science import judging, playing, tables
from science.judging import Score
from science.playing import REACHED, UNIFORM, Curve, Goals
from science.stored import Store

T = TypeVar("T")
FINAL = ("interpolation", "curve-fit", "pooled")
"""Models that are fitted to what samplers bought, where they are registered."""
SAME = ("interpolation", "curve-fit")
"""Those of paper B's Fig. 12."""
SHARE, QUICK_SHARE = 5, 90
"""Plays end at a fifth of the training set: a sampler that needs more has failed. Quick ones
end at a ninetieth, and uniform at a tenth."""


@dataclass(frozen=True)
class Plan:
    """What is to be compared on one problem."""

    name: str
    samplers: tuple[str, ...]
    models: tuple[str, ...]
    seeds: int
    whole: int
    """Points of the training set, which uniform sampling may take all."""
    most: int
    """Samples that the others may take."""
    only_stored: bool = False
    """Nothing is played: what the store has below that number of seeds is compared, however few."""

    @staticmethod
    def of(
        name: str, samplers: str = "", models: str = "", seeds: int = 20, quick: bool = False
    ) -> Plan:
        known = judging.models()
        chosen = tuple(models.split(",")) if models else tuple(m for m in FINAL if m in known)
        played = tuple(samplers.split(",")) if samplers else judging.samplers()
        whole = len(playing.problem(name).configurations) * len(playing.problem(name).grid_loads())
        recorded = ":" in name
        most = whole if recorded else whole // (QUICK_SHARE if quick else SHARE)
        if not quick or recorded:
            return Plan(name, played, chosen, seeds, whole, most)
        return Plan(name, played, chosen, seeds, whole // 10, most)


@dataclass(frozen=True)
class Compared:
    """Curves of every sampler, final model and seed, and what the models reach with everything."""

    plan: Plan
    references: dict[str, Score]
    curves: dict[tuple[str, str], list[Curve]]

    @property
    def reference(self) -> tuple[str, float]:
        """The best model on the whole training set, and its error."""
        name = min(self.references, key=lambda model: self.references[model].rmse)
        return name, self.references[name].rmse

    def needs(self, sampler: str, model: str, error: float) -> list[tuple[float, float]]:
        """Samples and lab seconds of every seed to reach 1.1 times `error`."""
        return [c.reaches(REACHED * error) for c in self.curves[sampler, model]]

    def last(self, sampler: str, model: str) -> float:
        """Median error at the largest budget that was looked at."""
        errors = [c.scores[-1].rmse for c in self.curves[sampler, model] if c.scores]
        return tables.quartiles(errors)[1] if errors else math.inf

    def best(self, sampler: str, models: Sequence[str] = ()) -> str:
        """The final model, of those given or of all, that needs the fewest samples to the
        reference, then has the least error at the end."""

        def cost(model: str) -> tuple[float, float]:
            needed = [n for n, _ in self.needs(sampler, model, self.reference[1])]
            return tables.quartiles(needed or [math.inf])[1], self.last(sampler, model)

        return min(models or self.plan.models, key=cost)


def measure(store: Store, plan: Plan, workers: int) -> Compared:
    """Everything that is not stored yet, on `workers` processes."""
    with ProcessPoolExecutor(workers) as executor:
        scores = _all(executor, partial(playing.reference_kept, store, plan.name), plan.models)
        references = dict(zip(plan.models, scores, strict=True))
        goals = Goals(
            REACHED * min(score.rmse for score in scores),
            {m: REACHED * references[m].rmse for m in SAME if m in plan.models},
        )
        # Uniform sampling is the yardstick: models that can reach the reference show where.
        yardstick = Goals(
            goals.best,
            {
                m: own if references[m].rmse > goals.best else goals.best
                for m, own in goals.own.items()
            },
        )
        jobs = [(sampler, seed) for seed in range(plan.seeds) for sampler in plan.samplers]
        if not plan.only_stored:
            _all(executor, partial(_play, store, plan, goals, yardstick), jobs)
    curves: dict[tuple[str, str], list[Curve]] = {}
    for sampler in plan.samplers:
        far, most = _reach(plan, goals, yardstick, sampler)
        for model in plan.models:
            stored = playing.curves_stored(store, plan.name, sampler, model, far, most)
            curves[sampler, model] = [stored[s] for s in range(plan.seeds) if s in stored]
    return Compared(plan, references, curves)


def teach(store: Store, plans: Sequence[Plan], workers: int) -> None:
    """The references of many problems side by side: one model is one process's work."""
    jobs = [(plan.name, model) for plan in plans for model in plan.models]
    with ProcessPoolExecutor(workers) as executor:
        list(executor.map(partial(playing.reference_kept, store), *zip(*jobs, strict=True)))


def _reach(plan: Plan, goals: Goals, yardstick: Goals, sampler: str) -> tuple[Goals, int]:
    """How far the plays of a sampler go."""
    return (yardstick, plan.whole) if sampler == UNIFORM else (goals, plan.most)


def _play(store: Store, plan: Plan, goals: Goals, yardstick: Goals, job: tuple[str, int]) -> None:
    sampler, seed = job
    far, most = _reach(plan, goals, yardstick, sampler)
    playing.curves_kept(store, plan.name, sampler, seed, plan.models, far, most)


def _all(executor: Executor, work: Callable[..., T], jobs: Iterable[object]) -> list[T]:
    return list(executor.map(work, jobs))


def compare(store: Store, plan: Plan, workers: int) -> str:
    """The table of a problem."""
    return printed(measure(store, plan, workers))


def printed(found: Compared) -> str:
    """One row per sampler: with its own best model, then with each model of `SAME`."""
    name, error = found.reference
    plan = found.plan
    same = [model for model in SAME if model in plan.models]
    head = ["sampler", "seeds", "own best model", "samples", "of uniform", "of paper's"]
    head += ["lab hours", "of uniform", "error at the end"]
    for model in same:
        head += [f"{model}: samples", "of uniform"]

    def middle(sampler: str, model: str, to: float) -> tuple[float, float]:
        needed = found.needs(sampler, model, to)
        return tables.quartiles([n for n, _ in needed])[1], tables.quartiles(
            [s / 3600.0 for _, s in needed]
        )[1]

    uniform = paper = (math.nan, math.nan)
    if UNIFORM in plan.samplers:
        uniform = middle(UNIFORM, found.best(UNIFORM), error)
        if same:
            paper = middle(UNIFORM, found.best(UNIFORM, same), error)
    rows: list[Sequence[str]] = []
    for sampler in sorted(plan.samplers, key=lambda s: (s != UNIFORM, s)):
        model = found.best(sampler)
        count, hours = middle(sampler, model, error)
        counts = [n for n, _ in found.needs(sampler, model, error)]
        seeds = len(counts)
        row = [sampler, f"{seeds}", model, tables.spread(counts)]
        row += [tables.ratio(count, uniform[0]), tables.ratio(count, paper[0])]
        row += [tables.number(hours), tables.ratio(hours, uniform[1])]
        row.append(f"{found.last(sampler, model) / error:.2f} x")
        for one in same:
            to = found.references[one].rmse
            counts = [n for n, _ in found.needs(sampler, one, to)]
            base = middle(UNIFORM, one, to)[0] if UNIFORM in plan.samplers else math.nan
            few = f" ({len(counts)} seeds)" if 0 < len(counts) < seeds else ""
            row += [tables.spread(counts) + few, tables.ratio(tables.quartiles(counts)[1], base)]
        rows.append(row)
    references = ", ".join(
        f"{model} {score.rmse:.3f}" if score.sane else f"{model} failed ({score.trouble})"
        for model, score in sorted(found.references.items(), key=lambda one: one[1].rmse)
    )
    return "\n\n".join(
        [
            tables.table(head, rows),
            f"Reference: {name}, RMSE of log KPI {error:.3f} with the whole training set "
            f"({references}). Median of seeds (quartiles); *never*: not within "
            f"{plan.most:,} samples, uniform not within {plan.whole:,}. *Error at the end*: at the "
            f"last budget that was looked at, over the reference." + _papers(same, paper[0]),
        ]
    )


def _papers(same: Sequence[str], samples: float) -> str:
    """What the column of the paper's models stands for, where any of them was fitted."""
    if not same:
        return ""
    found = "which never does." if math.isinf(samples) else f"{samples:,.0f} samples."
    return f" *Of paper's*: of uniform sampling with the better of {' and '.join(same)}: {found}"
