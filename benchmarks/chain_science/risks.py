"""What the chains of all recordings add to their predictions, each told by the others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from chain_science.predicting import known
from chain_science.recordings import BUNDLES, UNSEEN, recorded
from chain_science.stored import LAB, MODELS, digest, kept
from workbench.chains.handover import Discrepancy, HandoverRisk, risk_shown_by
from workbench.domain import kpis
from workbench.domain.errors import WorkbenchError

KPIS = (*kpis.names("response_time"), kpis.THROUGHPUT)
FEWEST = 10
"""Samples of a chain below which it is no chain of its own here."""
CODE = ("risks.py", "predicting.py", "recordings.py", *LAB, *MODELS)


@dataclass(frozen=True)
class Shown:
    """A recorded chain beside what the profiles of its functions say, by n samples, in logs."""

    grid: str
    chain: str
    measured: tuple[float, ...]
    predicted: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    extrapolates: tuple[bool, ...]
    added: float

    @property
    def discrepancy(self) -> Discrepancy:
        return Discrepancy(np.array(self.measured), np.array(self.predicted), self.added)


@dataclass(frozen=True)
class LeftOut:
    """A recorded chain, and what the risk that all other recordings show covers of it.

    `profiles` is what the profiles' own 95 % interval covers, `known` what is covered where these
    do not extrapolate, `width` the median ratio of the interval's ends.
    """

    grid: str
    chain: str
    kpi: str
    samples: int
    added: float
    profiles: float
    covered: float
    known: float
    width: float


@dataclass(frozen=True)
class Risks:
    chains: tuple[LeftOut, ...]
    risks: dict[str, HandoverRisk]


def risks() -> Risks:
    """Of all recordings that ship, each told by the others."""
    found: list[LeftOut] = []
    every: dict[str, HandoverRisk] = {}
    for kpi in KPIS:
        shown = shown_of(kpi)
        every[kpi] = _risk([one.discrepancy for one in shown], kpi)
        found += (_left_out(one, kpi) for one in shown)
    return Risks(tuple(found), every)


def unseen() -> list[LeftOut]:
    """Of recordings that nothing was chosen on, told by all that were there before."""
    return [_left_out(one, kpi) for kpi in KPIS for one in _shown_of(kpi, UNSEEN)]


def shown_by_others(grid: str, kpi: str) -> HandoverRisk:
    """The risk that is known to somebody who has not seen that recording."""
    return _risk([one.discrepancy for one in shown_of(kpi) if one.grid != grid], kpi)


def shown_of(kpi: str) -> list[Shown]:
    return kept(f"shown-{kpi}", digest(*CODE), list[Shown], lambda: _shown_of(kpi, tuple(BUNDLES)))


def _shown_of(kpi: str, names: tuple[str, ...]) -> list[Shown]:
    found = []
    for name in names:
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
            said = given.prediction.forecast(seen.points)
            found.append(
                Shown(
                    name,
                    plan.target.name,
                    tuple(seen.table.y.tolist()),
                    tuple(said.mean.tolist()),
                    tuple(said.low.tolist()),
                    tuple(said.high.tolist()),
                    tuple(said.extrapolates.tolist()),
                    Discrepancy.of(seen, given.prediction).added,
                )
            )
    return found


def _risk(chains: list[Discrepancy], kpi: str) -> HandoverRisk:
    return risk_shown_by(chains, adds=kpis.of(kpi).kind == "response_time")


def _left_out(one: Shown, kpi: str) -> LeftOut:
    y, low, high = (np.array(column) for column in (one.measured, one.low, one.high))
    least, most = shown_by_others(one.grid, kpi).ends(np.array(one.predicted))
    least, most = np.minimum(low, least), np.maximum(high, most)
    covered, inside = (y >= least) & (y <= most), ~np.array(one.extrapolates)
    return LeftOut(
        one.grid,
        one.chain,
        kpi,
        len(y),
        one.added,
        float(np.mean((y >= low) & (y <= high))),
        float(np.mean(covered)),
        float(np.mean(covered[inside])) if inside.any() else math.nan,
        float(np.exp(np.median(most - least))),
    )
