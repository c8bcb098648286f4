"""Two ways to an allocation side by side: paper A, Table 1."""

from __future__ import annotations

import math
from collections.abc import Iterator

from workbench.domain.recommendations import ComparisonRow, Recommendation


def compare(recommendation: Recommendation) -> tuple[ComparisonRow, ...]:
    """Greedy scaling, where it was run, and what the profiles recommend, where something holds."""
    return tuple(_rows(recommendation))


def _rows(recommendation: Recommendation) -> Iterator[ComparisonRow]:
    greedy, chosen = recommendation.greedy, recommendation.chosen
    if greedy is not None and greedy.steps:
        last = greedy.steps[-1]
        yield ComparisonRow(
            "greedy",
            last.allocation,
            last.replicas,
            greedy.cost,
            greedy.cost_unit,
            greedy.met,
            greedy.lab_iterations,
            greedy.lab_s,
            greedy.lab_s,
        )
    if chosen is not None:
        verified = recommendation.verified
        yield ComparisonRow(
            "profiled",
            chosen.allocation,
            chosen.replicas,
            chosen.cost,
            chosen.cost_unit,
            verified.met if verified else recommendation.met,
            recommendation.lab_iterations,
            recommendation.lab_s,
            recommendation.lab_s + recommendation.profiling_s,
        )


def slas_to_break_even(recommendation: Recommendation) -> int | None:
    """After how many SLAs on the same profiles greedy scaling has cost more lab time.

    Each is taken to cost what this one did. None where greedy scaling was not run on the lab, or
    costs less for each SLA.
    """
    greedy = recommendation.greedy
    if greedy is None or not greedy.lab_iterations:
        return None
    saved = greedy.lab_s - recommendation.lab_s
    if saved <= 0.0:
        return None
    return max(1, math.floor(recommendation.profiling_s / saved) + 1)
