"""What two passes over a recording differ by: no model of the first says the second better."""

from __future__ import annotations

import math
from statistics import median

from science import recordings, tables
from science.recordings import TEST, TRAINING, Recorded
from workbench.models.selection import stated


def report() -> str:
    """A row for each recorded problem."""
    rows = []
    for bundle in recordings.bundles():
        for name, problem in recordings.problems_of(bundle).items():
            ratios = differences(problem)
            rows.append(
                [
                    name,
                    str(len(ratios)),
                    f"{math.exp(median(ratios)):.2f}",
                    f"{median(map(abs, ratios)):.3f}",
                    f"{math.sqrt(sum(r * r for r in ratios) / len(ratios)):.3f}",
                    str(sum(abs(r) > math.log(2.0) for r in ratios)),
                ]
            )
    head = ["recording", "points in both", "second over first, median", "abs(log ratio), median"]
    return tables.table([*head, "RMS", "over factor 2"], rows)


def differences(problem: Recorded) -> list[float]:
    """Log ratios of the second pass to the first, at every point at which both state the KPI."""
    found = []
    for configuration, judging in problem.passes[TEST].items():
        taught = {s.point.wl: s for s in problem.passes[TRAINING][configuration]}
        for sample in judging:
            other = taught.get(sample.point.wl)
            if other and stated(sample, problem.kpi) and stated(other, problem.kpi):
                second, first = (one.kpis[problem.kpi].value for one in (sample, other))
                found.append(math.log(second / first))
    return found
