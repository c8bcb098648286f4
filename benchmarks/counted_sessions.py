"""`python counted_sessions.py FUNCTION SESSION...`: models of a KPI from a session's counters.

By experiment (a configuration in one pass): what is predicted was never seen. Where the session has
competitors (`counted_proxies.yaml`, `counted_packets.yaml`, `counted_nat.yaml`), each is also held
out of training whole.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.domain import kpis
from workbench.domain.competitors import COMPETITOR, NONE
from workbench.domain.errors import DataError
from workbench.domain.samples import Measurement
from workbench.engine.answers.counter_learning import counted_rows
from workbench.models.counter_rows import without_idle_features
from workbench.models.counter_scores import makers_for, out_of_group
from workbench.models.counter_watch import CounterWatch
from workbench.store.session_file import SessionFile

KPIS = (kpis.THROUGHPUT, "throughput_pps", kpis.P95)
"""Asked for where the samples have them."""
CEILING_MS = 1000.0
MOST_LOST_POINTS = 3.0
"""By which coverage may fall beside a competitor that was not trained with (issue 23)."""


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
    for name, make in makers_for(rows).items():
        off = np.abs(out_of_group(rows, make, 0) / rows.y - 1.0)
        lines.append(
            f"| {name} | {np.mean(off <= 0.05):.0%} | {np.median(off):.1%} | {off.mean():.1%} |"
        )
    score = CounterWatch(counted.rows).score
    lines += ["", f"the interval of `watch` holds {score.coverage or 0.0:.0%}, and its upper end "
              f"is {1.0 + (score.width or 0.0):.2f} times its lower one (median)"]  # fmt: skip
    return "\n".join(lines)


@dataclass(frozen=True)
class HeldOut:
    """Windows beside a competitor that training had not seen.

    Attributes
    ----------
    outside : of the windows, those answered by "outside of what was learned".
    held : of the others, those within their interval.
    """

    competitor: str
    windows: int
    outside: int
    held: int

    def lost(self, usual: float) -> float:
        """By how much the coverage of what was answered is below the usual one, from 0 to 1."""
        answered = self.windows - self.outside
        return max(0.0, usual - self.held / answered) if answered else 0.0


def held_out(taken: Sequence[Measurement], function: str, kpi: str) -> list[HeldOut]:
    """Of each competitor that a session has."""
    by_competitor: dict[str, list[Measurement]] = {}
    for one in taken:
        asked = str(one.sample.point.configuration.workload.get(COMPETITOR, NONE))
        by_competitor.setdefault(asked, []).append(one)
    found = []
    for competitor in sorted(by_competitor.keys() - {NONE}):
        others = [m for c, those in by_competitor.items() if c != competitor for m in those]
        watch = CounterWatch(counted_rows(others, function, kpi, CEILING_MS).rows)
        unseen = counted_rows(by_competitor[competitor], function, kpi, CEILING_MS).rows
        looks = [
            watch.look(dict(zip(unseen.features, row.tolist(), strict=True)), {})
            for row in unseen.x
        ]
        within = [
            look.low <= true <= look.high
            for look, true in zip(looks, unseen.y.tolist(), strict=True)
            if look.low is not None and look.high is not None
        ]
        found.append(HeldOut(competitor, len(looks), len(looks) - len(within), sum(within)))
    return found


def usual_coverage(taken: Sequence[Measurement], function: str, kpi: str) -> float:
    """Of experiments held out, with every competitor in training."""
    return CounterWatch(counted_rows(taken, function, kpi, CEILING_MS).rows).score.coverage or 0.0


def competitor_table(unseen: Sequence[HeldOut], usual: float) -> str:
    """What became of each competitor that training had not seen."""
    lines = [
        f"with all competitors in training, by experiment, the interval holds {usual:.0%}",
        "",
        "| held out of training | windows | outside of what was learned | others held | lost |",
        "|---|---|---|---|---|",
    ]
    for one in unseen:
        answered = one.windows - one.outside
        share = f"{one.held / answered:.0%}" if answered else "none was answered"
        lines.append(
            f"| {one.competitor} | {one.windows} | {one.outside} | {share} | "
            f"{100 * one.lost(usual):.0f} points (at most {MOST_LOST_POINTS:g}) |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("function")
    parser.add_argument("sessions", nargs="+", type=Path)
    given = parser.parse_args()
    everything = [m for path in given.sessions for m in asyncio.run(measurements(path))]
    alone = [m for m in everything if m.sample.point.target == given.function]
    try:
        for asked in (k for k in KPIS if any(k in m.sample.kpis for m in alone)):
            print(table(alone, given.function, asked), end="\n\n", flush=True)
            if unseen := held_out(alone, given.function, asked):
                usual = usual_coverage(alone, given.function, asked)
                print(competitor_table(unseen, usual), end="\n\n", flush=True)
    except DataError as error:  # too few experiments, of all or beside what is held out
        parser.exit(1, f"{error}\n")
