"""What ten random canaries say of the lowest loads, where a hand-over is nearly all there is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chain_science.draws import drawn

KPIS = ("mean_ms", "p95_ms", "p99_ms")
HANDS_OVER = "tinyproxy-haproxy"
"""The chain whose order adds a delayed acknowledgement; the target is of it."""
CLOSE = 0.2
"""Median |log error| that a draw should stay under."""


@dataclass(frozen=True)
class LowLoad:
    """Median |log error| of the samples of low load that were not drawn, by draw.

    `before` of the profiles, `taught` of the correction, `after` of what is accepted.
    """

    grid: str
    chain: str
    kpi: str
    before: tuple[float, ...]
    taught: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def close(self) -> int:
        return sum(one < CLOSE for one in self.after)


def low_loads() -> list[LowLoad]:
    found = []
    for one in (one for kpi in KPIS for one in drawn(kpi)):
        rows = []
        for draw in one.draws:
            low = np.array(draw.low)
            if low.any():
                each = (np.array(errors)[low] for errors in (draw.before, draw.taught, draw.after))
                rows.append([float(np.median(errors)) for errors in each])
        if rows:
            before, taught, after = zip(*rows, strict=True)
            found.append(LowLoad(one.grid, one.chain, one.kpi, before, taught, after))
    return found
