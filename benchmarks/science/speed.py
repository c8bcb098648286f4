"""How long models take: the complete table with 5-fold cross-validation on the firewall's 14,400
samples, and a refit with the next ask at 1,000 samples. Says what dominates."""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from statistics import median

import msgspec
import numpy as np

from science import judging, playing, plays, tables
from science.stored import Store, version

SURFACE = "firewall-law"
FOLDS = 5
TARGET_S, TARGET_GIB, TARGET_ASK_MS = 600.0, 2.0, 100.0
ASKED_AT, ASKS = 1_000, 60


class Timed(msgspec.Struct, frozen=True):
    """Cross-validation of one model in a process of its own."""

    model: str
    wall_s: float
    cpu_s: float
    peak_mib: float
    rmse: float
    log_error: float
    coverage: float
    trouble: str = ""


class Run(msgspec.Struct, frozen=True):
    """All models beside each other."""

    wall_s: float
    models: list[Timed]


def timed(model: str) -> Timed:
    """5-fold cross-validation of a model on the whole training set."""
    import warnings

    from threadpoolctl import threadpool_limits

    from workbench.models.crossvalidation import cross_validate

    judged = playing.judge(SURFACE)
    table = judged.table(judging.whole_grid(judged.problem, "train-0"), "train-0")
    wall, cpu = time.perf_counter(), time.process_time()
    rmse = log_error = coverage = float("nan")
    trouble = ""
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            found = cross_validate(judging.factory(model), table, FOLDS)
        rmse, log_error = found.rmse, found.log_error
        coverage = found.coverage if found.coverage is not None else coverage
    except Exception as error:  # noqa: BLE001 - any model of any package
        trouble = f"{type(error).__name__}: {error}"[:200]
    return Timed(
        model,
        time.perf_counter() - wall,
        time.process_time() - cpu,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
        rmse,
        log_error,
        coverage,
        trouble,
    )


def all_timed(workers: int) -> Run:
    """Every model, each in a fresh process."""
    begin = time.perf_counter()
    with ProcessPoolExecutor(workers, max_tasks_per_child=1) as executor:
        found = list(executor.map(timed, judging.models()))
    return Run(time.perf_counter() - begin, found)


def ask_ms(sampler: str, at: int = ASKED_AT, asks: int = ASKS) -> tuple[float, float]:
    """Milliseconds from a sample told to the next ask, median and largest, around `at` samples."""
    given = playing.problem(SURFACE)
    played = plays.sampler_of(sampler, given.space(0))
    rng = np.random.default_rng(0)
    whole = judging.whole_grid(given, "train-0")
    for place in rng.choice(len(whole), at, replace=False):
        configuration, wl, _ = whole[place]
        played.tell([given.measure(configuration, wl, draw="train-0")])
    played.ask()
    taken = []
    for _ in range(asks):
        ask = played.ask()
        if ask is None:
            break
        sample = given.measure(ask.configuration, ask.wl, draw="train-0", repetition=ask.repetition)
        begin = time.perf_counter()
        played.tell([sample])
        played.ask()
        taken.append(1e3 * (time.perf_counter() - begin))
    return (median(taken), max(taken)) if taken else (float("nan"), float("nan"))


def report(store: Store, workers: int, samplers: Sequence[str] = ()) -> str:
    """Both tables, and what dominates."""
    modules = [judging.model_module(m) for m in judging.models()]
    key = f"speed/{workers}/{version(*modules)}"
    stored = list(store.lines(key, Run))
    if not stored:
        stored = [all_timed(workers)]
        store.add(key, stored[-1])
    found, wall = stored[-1].models, stored[-1].wall_s
    slowest = sorted(found, key=lambda t: -t.wall_s)
    total = sum(t.wall_s for t in found)
    share = sum(t.wall_s for t in slowest[:3]) / total
    rows = [
        [
            t.model,
            f"{t.wall_s:.0f}",
            f"{t.peak_mib:.0f}",
            tables.number(t.rmse),
            tables.number(t.log_error),
            f"{100 * t.coverage:.0f} %" if t.coverage == t.coverage else "-",
        ]
        for t in slowest
    ]
    peak = sum(sorted((t.peak_mib for t in found), reverse=True)[:workers]) / 1024.0
    names = ", ".join(t.model for t in slowest[:3])
    asked = [
        [name, *(f"{v:.0f}" if v == v else "-" for v in ask_ms(name))]
        for name in samplers or judging.samplers()
    ]
    failed = "".join(f"\n\n`{t.model}` failed: {t.trouble}" for t in found if t.trouble)
    return "\n\n".join(
        [
            tables.table(["model", "s", "peak MiB", "RMSE", "log error", "coverage"], rows),
            f"All {len(found)} models on {workers} processes beside each other: {wall:.0f} s "
            f"(target {TARGET_S:.0f} s on two cores), at most {peak:.2f} GiB resident in all of "
            f"them (target {TARGET_GIB:g} GiB). {names} take {100 * share:.0f} % of it. "
            f"`workbench models` fits them one after the other in its one worker process: "
            f"{total:.0f} s, and the reading of the session.{failed}",
            tables.table(["sampler", "next ask at 1,000 samples, ms", "largest"], asked),
            f"From a sample told to the next ask, median of {ASKS} (target {TARGET_ASK_MS:g} ms); "
            "the largest holds a refresh of hyperparameters where there is one. *-*: ended by "
            "its own rule before.",
        ]
    )
