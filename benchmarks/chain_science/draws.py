"""Ten random canaries of every recorded chain, and what they teach of the samples left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from chain_science.predicting import known
from chain_science.recordings import BUNDLES, recorded
from chain_science.risks import FEWEST
from chain_science.stored import LAB, MODELS, digest, kept
from workbench.chains.alignment import Measured
from workbench.chains.composition import ChainForecaster
from workbench.domain.errors import DataError, WorkbenchError
from workbench.engine.answers.chain_models import method_named, usual_method

CANARIES = 10
DRAWS, FEW_DRAWS = 20, 8
SMALL = 30
"""Samples of a chain up to which draws overlap too much for twenty of them."""
LOW = 0.25
"""Share of a chain's samples, those of the lowest loads, that are its low load."""
CODE = ("draws.py", "predicting.py", "recordings.py", *LAB, *MODELS)


@dataclass(frozen=True)
class Draw:
    """|log error| of n samples that were not drawn, as they lie.

    `before` of the profiles, `taught` of the correction, `after` of what is accepted; `low` says
    which are of the chain's low load.
    """

    before: tuple[float, ...]
    taught: tuple[float, ...]
    after: tuple[float, ...]
    low: tuple[bool, ...]


@dataclass(frozen=True)
class Drawn:
    """All draws of a chain and a KPI."""

    grid: str
    chain: str
    kpi: str
    samples: int
    draws: tuple[Draw, ...]


def drawn(kpi: str) -> list[Drawn]:
    """Of every recorded chain that states the KPI; played once."""
    return kept(f"drawn-{kpi}", f"0-{digest(*CODE)}", list[Drawn], lambda: list(_drawn(kpi)))


def _drawn(kpi: str) -> Iterator[Drawn]:
    for name in BUNDLES:
        grid = recorded(name)
        for plan in grid.campaign.targets:
            own = [s for s in grid.samples if s.point.target == plan.target.name]
            if len(plan.target.vnfs) < 2 or len(own) < FEWEST:
                continue
            try:
                given = known(grid, plan, kpi)
                seen = given.seen(own)
            except WorkbenchError:  # no sample states the KPI
                continue
            draws = tuple(_draws(given.prediction, seen))
            yield Drawn(name, plan.target.name, kpi, len(seen), draws)


def _draws(chain: ChainForecaster, seen: Measured) -> Iterator[Draw]:
    method = method_named(usual_method(chain), chain, None)
    before = np.abs(chain.forecast(seen.points).mean - seen.table.y)
    loads = seen.table.X[:, -1]
    low = loads <= np.quantile(loads, LOW)
    random = np.random.default_rng(1)
    for _ in range(DRAWS if len(seen) > SMALL else FEW_DRAWS):
        out = np.ones(len(seen), dtype=bool)
        out[random.choice(len(seen), min(CANARIES, len(seen) // 2), False)] = False
        canaries, rest = seen.take(~out), seen.take(out)
        was = taught = after = before[out]
        try:
            taught = np.abs(method.train(canaries).forecast(rest.points).mean - rest.table.y)
            after = taught if method.learned(canaries) is not chain else was
        except DataError:  # too few operating points: the prediction stays
            pass
        columns = (tuple(one.tolist()) for one in (was, taught, after))
        yield Draw(*columns, tuple(low[out].tolist()))
