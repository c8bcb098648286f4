"""What passive functions made of their copies: a KPI, and whether the mirror can be believed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from workbench.domain.samples import Estimate, Finding
from workbench.measuring.intervals import exact_share_interval
from workbench.measuring.records import Copies, Drive

CAPTURE_LOSS = "capture_loss_pct"
MIRROR_LIMIT = 0.001
"""Share of the copies that may be lost before the function: 0.1 % is the floor of losses
(METHOD.md 8)."""


def state(drives: Sequence[Drive]) -> dict[str, Estimate]:
    """The share of the copies that a passive function did not process, with its exact interval: of
    whole drives, warm-up included. Of several functions the one that lost most.

    Absent where there is no passive function, or none that says what it has processed.
    """
    stated = []
    for copies in _by_function(drives).values():
        pairs = [(c.mirrored, c.captured) for c in copies if c.captured is not None and c.mirrored]
        total = sum(mirrored for mirrored, _ in pairs)
        if not total:
            continue
        shares = np.array([max(0.0, 1.0 - captured / mirrored) for mirrored, captured in pairs])
        weights = np.array([mirrored for mirrored, _ in pairs])
        share = float(np.average(shares, weights=weights))
        stated.append(exact_share_interval(share, total, shares))
    if not stated:
        return {}
    worst = max(stated, key=lambda estimate: estimate.value)
    return {CAPTURE_LOSS: Estimate(100 * worst.value, 100 * worst.low, 100 * worst.high)}


def examine(drives: Sequence[Drive]) -> tuple[Finding, ...]:
    """Findings where copies were lost on their way: what a function did with those that reached it
    says nothing then of the traffic that it was to see."""
    found = []
    for name, copies in _by_function(drives).items():
        mirrored, arrived = sum(c.mirrored for c in copies), sum(c.arrived for c in copies)
        lost = 1.0 - arrived / mirrored if mirrored else 0.0
        if lost > MIRROR_LIMIT:
            found.append(
                Finding(
                    "mirror_lost",
                    lost,
                    MIRROR_LIMIT,
                    f"of {mirrored} packets that were mirrored to {name} {arrived} arrived at its "
                    "interface copy0",
                )
            )
    return tuple(found)


def _by_function(drives: Sequence[Drive]) -> dict[str, list[Copies]]:
    found: dict[str, list[Copies]] = defaultdict(list)
    for drive in drives:
        for name, copies in drive.copies.items():
            found[name].append(copies)
    return found
