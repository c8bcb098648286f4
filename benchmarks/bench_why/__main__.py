"""`python -m bench_why [--times N]`: causes injected on the Docker lab, what is said of them."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench_why.causes import CAUSES, HEALTHY
from bench_why.playing import Trial, play
from workbench.diagnosis.readings import Reading
from workbench.domain.errors import WorkbenchError

RESULTS = Path(__file__).parents[1] / "results" / "why.json"


def table(trials: Sequence[Trial]) -> str:
    """What was said of each injected cause; the host's own neighbours are told apart."""
    lines = [
        "| injected | for tuning | trials | right first | among two | the host's own neighbours "
        "| said else | baseline right | cores of others |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    by_cause: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        by_cause[trial.cause].append(trial)
    for name, found in by_cause.items():
        right = sum(t.said == t.right for t in found)
        two = sum(t.right == t.said or t.right == t.second != HEALTHY for t in found)
        trivial = sum(t.baseline == t.right for t in found)
        host = sum(t.of_the_host for t in found)
        wrong = [t.said or "nothing" for t in found if t.said != t.right and not t.of_the_host]
        other = ", ".join(f"{cause} {n}" for cause, n in Counter(wrong).most_common()) or "-"
        others = sum(t.others_cores for t in found) / len(found)
        lines.append(
            f"| {name} | {'yes' if found[0].tuned else 'held out'} | {len(found)} | {right} | "
            f"{two} | {host} | {other} | {trivial} | {others:.1f} |"
        )
    return "\n".join(lines)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3, help="trials of each cause")
    parser.add_argument("--only", default="", help="causes whose names hold this")
    parser.add_argument("--show", action="store_true", help="the table of what is stored, no trial")
    given = parser.parse_args()
    trials = [Trial(**one) for one in json.loads(RESULTS.read_text())] if RESULTS.exists() else []
    alone: dict[tuple[str, float], Reading] = {}
    for number in range(0 if given.show else given.times):
        for cause in CAUSES:
            if given.only not in cause.name:
                continue
            try:
                trial = await play(cause, alone)
            except WorkbenchError as error:
                print(f"{cause.name}, trial {number + 1}: {error}", file=sys.stderr, flush=True)
                continue
            trials.append(trial)
            RESULTS.write_text(json.dumps([asdict(t) for t in trials], indent=1) + "\n")
            print(f"{cause.name}: {trial.mean_ms:.3g} ms: {trial.sentence}", flush=True)
    print(table(trials))


if __name__ == "__main__":
    asyncio.run(main())
