"""What the chains of all recordings add to their predictions, each told by the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chain_science.predicting import known
from chain_science.recordings import BUNDLES, recorded
from chain_science.stored import LAB, MODELS, digest, kept
from workbench.chains.base import RESPONSE_TIMES
from workbench.chains.handover import Discrepancy, HandoverForecaster, HandoverRisk, risk_shown_by
from workbench.domain.errors import WorkbenchError

KPIS = (*RESPONSE_TIMES, "throughput_rps")
FEWEST = 10
"""Samples of a chain below which it is no chain of its own here."""
CODE = ("risks.py", "predicting.py", "recordings.py", *LAB, *MODELS)


@dataclass(frozen=True)
class LeftOut:
    """A recorded chain, and what the risk that all others show covers of it.

    `profiles` is what the profiles' own 95 % interval covers, `width` the median ratio of its ends.
    """

    grid: str
    chain: str
    kpi: str
    samples: int
    added: float
    profiles: float
    covered: float
    width: float


@dataclass(frozen=True)
class Risks:
    chains: tuple[LeftOut, ...]
    risks: dict[str, HandoverRisk]


def risks() -> Risks:
    """Of all recordings that ship."""
    return kept("risks", f"0-{digest(*CODE)}", Risks, _risks)


def _risks() -> Risks:
    found: list[LeftOut] = []
    every: dict[str, HandoverRisk] = {}
    for kpi in KPIS:
        shown = []
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
                shown.append((name, plan.target.name, given.prediction, seen))
        adds = kpi in RESPONSE_TIMES
        each = [Discrepancy.of(seen, prediction) for _, _, prediction, seen in shown]
        every[kpi] = risk_shown_by(each, adds=adds)
        for place, (name, chain, prediction, seen) in enumerate(shown):
            risk = risk_shown_by(each[:place] + each[place + 1 :], adds=adds)
            alone = prediction.forecast(seen.points)
            said = HandoverForecaster(prediction, risk).forecast(seen.points)
            y = seen.table.y
            found.append(
                LeftOut(
                    name,
                    chain,
                    kpi,
                    len(y),
                    each[place].added,
                    float(np.mean((y >= alone.low) & (y <= alone.high))),
                    float(np.mean((y >= said.low) & (y <= said.high))),
                    float(np.exp(np.median(said.high - said.low))),
                )
            )
    return Risks(tuple(found), every)
