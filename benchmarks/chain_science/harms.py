"""Ten random canaries of every recorded chain: how often what they teach makes forecasts worse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chain_science.draws import drawn

KPIS = ("mean_ms", "p95_ms")
WORSE = 1.02


@dataclass(frozen=True)
class Harm:
    """Median |log error| of the samples that were not drawn, one figure for each draw.

    `before` of the profiles, `taught` of the correction, `after` of what is accepted.
    """

    grid: str
    chain: str
    kpi: str
    samples: int
    before: tuple[float, ...]
    taught: tuple[float, ...]
    after: tuple[float, ...]

    def worse(self, said: tuple[float, ...]) -> int:
        return sum(a > WORSE * b for a, b in zip(said, self.before, strict=True))

    def worst(self, said: tuple[float, ...]) -> float:
        return max(a / b for a, b in zip(said, self.before, strict=True))


def harms() -> list[Harm]:
    found = []
    for one in (one for kpi in KPIS for one in drawn(kpi)):
        rows = [
            [float(np.median(errors)) for errors in (draw.before, draw.taught, draw.after)]
            for draw in one.draws
        ]
        before, taught, after = zip(*rows, strict=True)
        found.append(Harm(one.grid, one.chain, one.kpi, one.samples, before, taught, after))
    return found
