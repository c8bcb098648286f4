"""When profiles pay for themselves, against greedy scaling: paper A, Table 1."""

from __future__ import annotations

import math

from workbench.domain.recommendations import Recommendation


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
