"""Plays, scores, prints and publishes: `python -m science [--quick] [--publish]`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec

from science import (
    comparing,
    coverage,
    judging,
    passes,
    playing,
    ranking,
    recordings,
    report,
    speed,
)
from science.comparing import Plan
from science.stored import Store
from science.surfaces import SURFACES

PARTS = ("problems", "passes", "ranking", "paper", "searches", "coverage", "speed")
QUICK_SAMPLERS = ("uniform", "heuristic", "pooled")
QUICK_MODELS = ("pooled",)
QUICK_S = 480.0
"""After that a quick run begins nothing new and says what it left out."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="science", description=__doc__)
    parser.add_argument("--problems", default="", help="surfaces and recordings, with commas")
    parser.add_argument("--samplers", default="", help="names, with commas; all by default")
    parser.add_argument("--models", default="", help="final models, with commas")
    parser.add_argument("--parts", default="", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--stored", action="store_true", help="play nothing: what is stored")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="one seed, one table per problem")
    parser.add_argument("--publish", action="store_true", help="write docs/science.md")
    given = parser.parse_args()
    store = Store(keep=not given.quick)
    begin, sections = time.perf_counter(), {}
    parts = given.parts.split(",") if given.parts else PARTS[:1] if given.quick else PARTS
    names = [s.name for s in SURFACES] + list(recordings.names())
    names = given.problems.split(",") if given.problems else names
    samplers, models, seeds = given.samplers, given.models, given.seeds
    if given.quick:
        known = judging.samplers()
        samplers = samplers or ",".join(s for s in QUICK_SAMPLERS if s in known)
        models, seeds = models or ",".join(QUICK_MODELS), 1

    def section(name: str, title: str, work: Callable[[], str]) -> None:
        if given.quick and time.perf_counter() - begin > QUICK_S:
            print(f"\n### {title}\n\nleft out: {QUICK_S:.0f} s are over", flush=True)
            return
        start = time.perf_counter()
        text = work()
        sections[name] = text
        print(f"\n### {title}\n\n{text}\n({time.perf_counter() - start:.0f} s)", flush=True)
        if given.publish:
            report.publish({name: text})

    if "problems" in parts:
        plans = [Plan.of(name, samplers, models, seeds, quick=given.quick) for name in names]
        plans = [replace(plan, only_stored=given.stored) for plan in plans]
        comparing.teach(store, plans, given.workers)
        for name, plan in zip(names, plans, strict=True):
            title = f"{name}: {playing.problem(name).note}"
            section(name, title, lambda plan=plan: compared(store, plan, given))
    if "passes" in parts:
        section("passes", "What two passes differ by", passes.report)
    if "ranking" in parts:
        section("ranking", "Paper A's Table 3", lambda: ranking.report(store, given.workers))
    if "paper" in parts:
        for name in ("firewall-law", "streaming-law"):
            section(f"paper-{name}", f"Paper B's figures on {name}", lambda n=name: paper(store, n))
    if "searches" in parts and find_spec("MLRsearch"):
        few = given.quick
        section(
            "searches",
            "Breakpoint searches",
            lambda: racing(store, given.workers, 10 if few else 50, 3 if few else 20),
        )
    if "coverage" in parts:
        section("coverage", "Intervals", lambda: coverage.report(store, given.workers))
    if "speed" in parts:
        section("speed", "Speed", lambda: speed.report(store, given.workers))


def racing(store: Store, workers: int, devices: int, grids: int) -> str:
    from science import racing  # MLRsearch is no dependency of anything else

    return racing.report(store, workers, devices, grids)


def compared(store: Store, plan: Plan, given: argparse.Namespace) -> str:
    found = comparing.measure(store, plan, given.workers)
    text = comparing.printed(found)
    if given.publish:
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
