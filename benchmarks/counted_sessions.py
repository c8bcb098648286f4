"""`python counted_sessions.py FUNCTION SESSION...`: models of a KPI from a session's counters.

By experiment (a configuration in one pass): what is predicted was never seen. `--record CAMPAIGN`
records one, on the namespace lab, and does not wait for a quiet host as runs do: what neighbours
take is what the counters are to tell.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from workbench.domain import kpis
from workbench.domain.samples import Measurement
from workbench.engine.answers.counter_learning import counted_rows
from workbench.engine.runs import busy_host
from workbench.models.counter_rows import without_idle_features
from workbench.models.counter_scores import makers_for, out_of_group
from workbench.models.counter_watch import CounterWatch
from workbench.store.session_file import SessionFile

KPIS = (kpis.THROUGHPUT, kpis.P95)
CEILING_MS = 1000.0


async def measurements(path: Path) -> list[Measurement]:
    file = await SessionFile.open(path, read_only=True)
    try:
        found: list[Measurement] = []
        while page := await file.measurements(len(found), 50):
            found += page
        return found
    finally:
        await file.close()


def table(taken: Sequence[Measurement], function: str, kpi: str) -> str:
    counted = counted_rows(taken, function, kpi, CEILING_MS)
    rows, dropped = without_idle_features(counted.rows)
    lines = [
        f"{kpi} of {function}: {len(rows.y)} windows of {counted.window_s:g} s in "
        f"{rows.group_count} experiments, {len(rows.features)} counters "
        f"({len(dropped)} constant or double ones left out)",
        "",
        "| model | within 5 % | median error | mean error |",
        "|---|---|---|---|",
    ]
    for name, make in makers_for(rows.features).items():
        off = np.abs(out_of_group(rows, make, 0) / rows.y - 1.0)
        lines.append(
            f"| {name} | {np.mean(off <= 0.05):.0%} | {np.median(off):.1%} | {off.mean():.1%} |"
        )
    score = CounterWatch(counted.rows).score
    lines += ["", f"the interval of `watch` holds {score.coverage or 0.0:.0%}, and its upper end "
              f"is {1.0 + (score.width or 0.0):.2f} times its lower one (median)"]  # fmt: skip
    return "\n".join(lines)


def record(campaign: Path) -> None:
    """Run a campaign on the namespace lab in this process. Ends the process where that fails."""
    import sys

    from workbench.cli import main

    busy_host.STREAK = 1_000_000  # samples that a busy host spoiled, before the run would wait
    sys.argv = ["workbench", "run", str(campaign), "--lab", "netns", "--headless"]
    main()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, metavar="CAMPAIGN")
    parser.add_argument("function", nargs="?")
    parser.add_argument("sessions", nargs="*", type=Path)
    given = parser.parse_args()
    if given.record is not None:
        record(given.record)
    elif not given.function or not given.sessions:
        parser.error("name a function and the files of sessions, or --record CAMPAIGN")
    else:
        everything = [m for path in given.sessions for m in asyncio.run(measurements(path))]
        for asked in KPIS:
            print(table(everything, given.function, asked), end="\n\n")
