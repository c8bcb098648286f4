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
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from science import judging, playing, tables
from science.judging import Score
from science.playing import ITSELF, MET, REACHED, Curve, Goals
from science.plays import UNIFORM
from science.stored import Store

T = TypeVar("T")
FINAL = ("pooled", "interpolation", "curve-fit")
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
    judged: tuple[str, ...] = ()
    """Models of which the best on the whole training set is the reference; it is among the final
    models, whether it is in `models` or not."""
    only_stored: bool = False
    """Nothing is played: what the store has below that number of seeds is compared, however few."""

    @staticmethod
    def of(
        name: str, samplers: str = "", models: str = "", seeds: int = 20, quick: bool = False
    ) -> Plan:
        known = judging.models()
        judged = () if quick else known
        chosen = tuple(models.split(",")) if models else tuple(m for m in FINAL if m in known)
        played = tuple(samplers.split(",")) if samplers else playing.samplers()
        whole = len(playing.problem(name).configurations) * len(playing.problem(name).grid_loads())
        recorded = ":" in name
        most = whole if recorded else whole // (QUICK_SHARE if quick else SHARE)
        if not quick or recorded:
            return Plan(name, played, chosen, seeds, whole, most, judged)
        return Plan(name, played, chosen, seeds, whole // 10, most, judged)

    @property
    def rivals(self) -> tuple[str, ...]:
        """All models that may be the reference."""
        return tuple(dict.fromkeys((*self.models, *self.judged)))


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

    def cut(self, sampler: str, model: str) -> list[Curve]:
        """Curves that were left before they met the reference, because another model did."""
        goal = REACHED * self.reference[1]
        return [c for c in self.curves[sampler, model] if c.end == MET and c.held(goal, 2) is None]

    def needed(self, sampler: str, model: str, error: float) -> str:
        """Median (quartiles) of the samples to 1.1 times `error`, and at how many samples the
        plays ended that never came there."""
        counts = [n for n, _ in self.needs(sampler, model, error)]
        text = tables.spread(counts)
        never = [
            c for c, n in zip(self.curves[sampler, model], counts, strict=True) if n == math.inf
        ]
        over = [c for c in never if c.over]
        notes = []
        if over and "never" in text:
            word = "ends" if all(c.end == ITSELF for c in over) else "stopped"
            middle = tables.quartiles([c.samples[-1] if c.samples else 0 for c in over])[1]
            notes.append(f"{word} at {middle:,.0f}")
        if error == self.reference[1] and (cut := sum(c.end == MET for c in never)):
            notes.append(f"{cut} cut")
        if not notes:
            return text
        said = ", ".join(notes)
        return f"{text[:-1]}, {said})" if text.endswith(")") else f"{text} ({said})"

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
        asked = [
            model
            for model in plan.rivals
            if not plan.only_stored
            or model in plan.models
            or playing.reference_stored(store, plan.name, model)
        ]
        scores = _all(executor, partial(playing.reference_kept, store, plan.name), asked)
        references = dict(zip(asked, scores, strict=True))
        best = min(asked, key=lambda model: references[model].rmse)
        plan = replace(plan, models=tuple(dict.fromkeys((*plan.models, best))))
        goals = Goals(
            REACHED * references[best].rmse,
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
        found = Compared(plan, references, _stored(store, plan, goals, yardstick))
        for sampler in plan.samplers:
            _follow(store, executor, found, sampler)
    return found


def _stored(
    store: Store, plan: Plan, goals: Goals, yardstick: Goals
) -> dict[tuple[str, str], list[Curve]]:
    curves: dict[tuple[str, str], list[Curve]] = {}
    for sampler in plan.samplers:
        far, most = _reach(plan, goals, yardstick, sampler)
        known = playing.curves_stored(store, plan.name, sampler, plan.models, far, most)
        for model in plan.models:
            seeds = [known.get(seed, {}) for seed in range(plan.seeds)]
            curves[sampler, model] = [one[model] for one in seeds if model in one]
    return curves


def _follow(store: Store, executor: Executor, found: Compared, sampler: str) -> None:
    """On some seeds another model met the reference first: the one that is shown is fitted until
    it meets it too, or there are no more samples. Without that it would look like never."""
    plan, best = found.plan, found.best(sampler)
    cut = [curve.seed for curve in found.cut(sampler, best)]
    alone = Goals(REACHED * found.reference[1], {})
    if not plan.only_stored:
        jobs = [(sampler, seed) for seed in cut]
        _all(executor, partial(_play, store, replace(plan, models=(best,)), alone, alone), jobs)
    _, most = _reach(plan, alone, alone, sampler)
    known = playing.curves_stored(store, plan.name, sampler, (best,), alone, most)
    found.curves[sampler, best] = [
        known[c.seed][best] if c.seed in cut and c.seed in known else c
        for c in found.curves[sampler, best]
    ]


def teach(store: Store, plans: Sequence[Plan], workers: int) -> None:
    """The references of many problems side by side: one model is one process's work."""
    jobs = [(plan.name, model) for plan in plans for model in plan.rivals if not plan.only_stored]
    if not jobs:
        return
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


def stored(
    store: Store, name: str, samplers: Sequence[str], seeds: int
) -> dict[str, dict[int, float]]:
    """Samples to the reference by sampler and seed, each sampler with its own best model, as far as
    it was played and the references are stored. Plays and fits nothing."""
    plan = replace(Plan.of(name, ",".join(samplers), seeds=seeds), only_stored=True)
    known = [m for m in plan.models if playing.reference_stored(store, name, m)]
    if not known:
        return {sampler: {} for sampler in plan.samplers}
    found = measure(store, replace(plan, models=tuple(known)), 1)
    counts = {}
    for sampler in plan.samplers:
        best = found.best(sampler)
        reached = found.needs(sampler, best, found.reference[1])
        own = zip(found.curves[sampler, best], reached, strict=True)
        counts[sampler] = {curve.seed: samples for curve, (samples, _) in own}
    return counts


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
        row = [sampler, f"{seeds}", model, found.needed(sampler, model, error)]
        row += [tables.ratio(count, uniform[0]), tables.ratio(count, paper[0])]
        row += [tables.number(hours), tables.ratio(hours, uniform[1])]
        row.append(f"{found.last(sampler, model) / error:.2f} x")
        for one in same:
            to = found.references[one].rmse
            counts = [n for n, _ in found.needs(sampler, one, to)]
            base = middle(UNIFORM, one, to)[0] if UNIFORM in plan.samplers else math.nan
            few = f" ({len(counts)} seeds)" if 0 < len(counts) < seeds else ""
            row += [
                found.needed(sampler, one, to) + few,
                tables.ratio(tables.quartiles(counts)[1], base),
            ]
        rows.append(row)
    unknown = [model for model in plan.rivals if model not in found.references]
    references = ", ".join(
        f"{model} {score.rmse:.3f}" if score.sane else f"{model} failed ({score.trouble})"
        for model, score in sorted(found.references.items(), key=lambda one: one[1].rmse)
    )
    return "\n\n".join(
        [
            tables.table(head, rows),
            f"Reference: {name}, RMSE of log KPI {error:.3f} with the whole training set, the best "
            f"of {len(found.references)} ({references}"
            + (f"; not fitted to it yet: {', '.join(unknown)}" if unknown else "")
            + f"). Median of seeds (quartiles); *never*: not within "
            f"{plan.most:,} samples, uniform not within {plan.whole:,}; *ends at*: the sampler's "
            f"own rule ended the plays that never came there (median), nobody stopped it. "
            f"*Error at the end*: at the last budget that was looked at, over the reference."
            + _papers(same, paper[0]),
        ]
    )


def _papers(same: Sequence[str], samples: float) -> str:
    """What the column of the paper's models stands for, where any of them was fitted."""
    if not same or math.isnan(samples):
        return ""
    found = "which never does." if math.isinf(samples) else f"{samples:,.0f} samples."
    return f" *Of paper's*: of uniform sampling with the better of {' and '.join(same)}: {found}"
