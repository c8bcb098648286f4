"""Ten random canaries of every recorded chain: how often what they teach makes forecasts worse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chain_science.predicting import known
from chain_science.recordings import BUNDLES, recorded
from chain_science.risks import FEWEST
from chain_science.stored import LAB, MODELS, digest, kept
from workbench.domain.errors import DataError
from workbench.engine.answers.chain_models import method_named, usual_method

KPIS = ("mean_ms", "p95_ms")
CANARIES = 10
DRAWS, FEW_DRAWS = 20, 8
SMALL = 30
"""Samples of a chain up to which draws overlap too much for twenty of them."""
WORSE = 1.02
CODE = ("harms.py", "predicting.py", "recordings.py", *LAB, *MODELS)


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
    return kept("harms", f"0-{digest(*CODE)}", list[Harm], _harms)


def _harms() -> list[Harm]:
    found = []
    for kpi in KPIS:
        for name in BUNDLES:
            grid = recorded(name)
            for plan in grid.campaign.targets:
                own = [s for s in grid.samples if s.point.target == plan.target.name]
                if len(plan.target.vnfs) < 2 or len(own) < FEWEST:
                    continue
                given = known(grid, plan, kpi)
                seen, chain = given.seen(own), given.prediction
                method = method_named(usual_method(chain), chain, None)
                gap = np.abs(chain.forecast(seen.points).mean - seen.table.y)
                random = np.random.default_rng(1)
                rows = []
                for _ in range(DRAWS if len(seen) > SMALL else FEW_DRAWS):
                    drawn = np.zeros(len(seen), dtype=bool)
                    drawn[random.choice(len(seen), min(CANARIES, len(seen) // 2), False)] = True
                    train, rest = seen.take(drawn), seen.take(~drawn)
                    was = now = float(np.median(gap[~drawn]))
                    try:
                        said = method.train(train).forecast(rest.points).mean
                        now = float(np.median(np.abs(said - rest.table.y)))
                        kept_ = method.learned(train) is not chain
                    except DataError:  # too few operating points: the prediction stays
                        kept_ = False
                    rows.append((was, now, now if kept_ else was))
                before, taught, after = zip(*rows, strict=True)
                found.append(Harm(name, plan.target.name, kpi, len(seen), before, taught, after))
    return found
