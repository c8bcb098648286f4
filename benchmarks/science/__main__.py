"""Plays, scores, prints and publishes: `python -m science [--quick] [--publish]`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from science import (
    accuracy,
    both_ways,
    checking,
    comparing,
    coverage,
    judging,
    overview,
    passes,
    playing,
    ranking,
    recordings,
    report,
    speed,
    visits,
)
from science.comparing import Plan
from science.stored import Store
from science.surfaces import BY_NAME, SURFACES

PARTS = (
    *("problems", "overview", "passes", "both-ways", "accuracy", "ranking", "paper"),
    *("searches", "visits", "coverage", "speed"),
)
PARTS_HELP = f"""of {", ".join(PARTS)}; all by default. `check` plays the beginnings of
what is stored again, and names what comes out otherwise: its version was not raised"""
QUICK_SAMPLERS = ("uniform", "heuristic", "pooled")
QUICK_MODELS = ("pooled",)
QUICK_S = 420.0
"""After that a quick run begins no further recording and says which it left out."""
QUICK = """A quick run: one seed, nothing read from what is stored and nothing stored. Surfaces end
at 1/90 of their training set, uniform sampling at 1/10; the reference is that of {models} alone."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="science", description=__doc__)
    parser.add_argument("--problems", default="", help="surfaces and recordings, with commas")
    parser.add_argument("--samplers", default="", help="names, with commas; all by default")
    parser.add_argument("--models", default="", help="final models, with commas")
    parser.add_argument("--parts", default="", help=PARTS_HELP)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--stored", action="store_true", help="play nothing: what is stored")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--quick", action="store_true", help="one seed, one table per problem, all anew"
    )
    parser.add_argument("--publish", action="store_true", help="write docs/science.md")
    given = parser.parse_args()
    names = [s.name for s in SURFACES] + list(recordings.names())
    if not given.quick:
        names += recordings.twins()
    names = given.problems.split(",") if given.problems else names
    if given.quick:
        quick(given, names)
    else:
        full(given, names)


def full(given: argparse.Namespace, names: Sequence[str]) -> None:
    """All parts that are wanted, from the store and into it."""
    store = Store()
    store.pack()  # what an interrupted run left
    parts = given.parts.split(",") if given.parts else PARTS

    def section(name: str, title: str, work: Callable[[], str]) -> None:
        start = time.perf_counter()
        text = work()
        store.pack()
        print(f"\n### {title}\n\n{text}\n({time.perf_counter() - start:.0f} s)", flush=True)
        # What a recording says the other way round stands in one table of all of them.
        if given.publish and name not in recordings.twins():
            report.publish({name: text})

    if "check" in parts:
        print(checking.report(store, names, given.workers))
    if "problems" in parts:
        plans = [Plan.of(name, given.samplers, given.models, given.seeds) for name in names]
        if given.stored:
            plans = [played(store, plan, all_of=bool(given.samplers)) for plan in plans]
        comparing.teach(store, plans, given.workers)
        for plan in plans:
            section(plan.name, titled(plan.name), lambda plan=plan: compared(store, plan, given))
    if "overview" in parts:
        section("overview", "All surfaces", lambda: overview.report(store, given.seeds))
    if "passes" in parts:
        section("passes", "What two passes differ by", passes.report)
    if "both-ways" in parts:
        title = "Either pass as the training pass"
        section("both-ways", title, lambda: both_ways.report(store, given.seeds))
    if "accuracy" in parts:
        section("accuracy", "Stated accuracy", lambda: accuracy.report(given.workers))
    if "ranking" in parts:
        section("ranking", "Paper A's Table 3", lambda: ranking.report(store, given.workers))
    if "paper" in parts:
        for name in ("firewall-law", "streaming-law"):
            section(f"paper-{name}", f"Paper B's figures on {name}", lambda n=name: paper(store, n))
    if "searches" in parts and find_spec("MLRsearch"):
        section("searches", "Breakpoint searches", lambda: racing(store, given.workers, 50, 20))
    if "visits" in parts:
        section("visits", "Breakpoint search in campaigns", lambda: visits.report(given.workers))
    if "coverage" in parts:
        section("coverage", "Intervals", lambda: coverage.report(store, given.workers))
    if "speed" in parts:
        section("speed", "Speed", lambda: speed.report(store, given.workers))


def quick(given: argparse.Namespace, names: Sequence[str]) -> None:
    """One table per problem, played anew: every surface, then recordings while there is time."""
    begin = time.perf_counter()
    samplers = given.samplers or ",".join(s for s in QUICK_SAMPLERS if s in judging.samplers())
    models = given.models or ",".join(QUICK_MODELS)
    print(QUICK.format(models=models), flush=True)
    plans = [Plan.of(name, samplers, models, seeds=1, quick=True) for name in names]
    surfaces = [plan for plan in plans if plan.name in BY_NAME]
    with TemporaryDirectory() as folder, ProcessPoolExecutor(given.workers) as executor:
        store = Store(Path(folder), Path(folder))
        # One surface is one process's work: side by side they leave no core waiting.
        done = executor.map(partial(comparing.compare, store, workers=1), surfaces)
        for plan, text in zip(surfaces, done, strict=True):
            print(f"\n### {titled(plan.name)}\n\n{text}", flush=True)
        for plan in (plan for plan in plans if plan not in surfaces):
            if time.perf_counter() - begin > QUICK_S:
                print(f"\n### {titled(plan.name)}\n\nleft out: {QUICK_S:.0f} s are over")
            else:
                text = comparing.compare(store, plan, given.workers)
                print(f"\n### {titled(plan.name)}\n\n{text}", flush=True)
    print(f"({time.perf_counter() - begin:.0f} s)")


def played(store: Store, plan: Plan, *, all_of: bool) -> Plan:
    """Nothing is to be played: rows for `all_of` the plan's samplers, or for those with curves."""
    kept = playing.samplers_stored(store, plan.name)
    samplers = tuple(s for s in plan.samplers if all_of or s in kept)
    return replace(plan, samplers=samplers, only_stored=True)


def titled(name: str) -> str:
    return f"{name}: {playing.problem(name).note}"


def racing(store: Store, workers: int, devices: int, grids: int) -> str:
    from science import racing  # MLRsearch is no dependency of anything else

    return racing.report(store, workers, devices, grids)


def compared(store: Store, plan: Plan, given: argparse.Namespace) -> str:
    found = comparing.measure(store, plan, given.workers)
    text = comparing.printed(found)
    if given.publish and plan.name not in recordings.twins():
        # What a recording has to tell fits in its table.
        figures = [] if plan.name in recordings.names() else report.figure_12(found)
        text = "\n\n".join([text, *figures, report.needs_boxes(found)])
    return text


def paper(store: Store, name: str) -> str:
    whole = len(judging.whole_grid(playing.problem(name), "test"))
    most = whole // comparing.SHARE
    return "\n\n".join(
        [
            report.figure_5(store, name),
            report.figure_9(name),
            report.figure_10(name, most),
            report.figure_13(store, name, most),
            report.picking_order(name, most),
        ]
    )


if __name__ == "__main__":
    main()
