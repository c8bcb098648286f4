"""What the chains of all recordings add to their predictions, each told by the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chain_science.predicting import known
from chain_science.recordings import BUNDLES, UNSEEN, recorded
from chain_science.stored import LAB, MODELS, digest, kept
from workbench.chains.alignment import Measured
from workbench.chains.handover import AT_MS, HandoverRisk
from workbench.domain import kpis
from workbench.domain.errors import WorkbenchError
from workbench.models.base import Floats
from workbench.models.forecast import Forecaster

KPIS = (*kpis.names("response_time"), kpis.THROUGHPUT)
FEWEST = 10
"""Samples of a chain below which it is no chain of its own here."""
LOW_QUARTER = 0.25
"""Of a configuration's loads: there the hand-over is seen, before anything queues."""
_ENDS = (0.025, 0.975)
ALIKE = 1.5
"""In log KPI: how far around a predicted time those of other chains tell of it."""
ANYWHERE = 0.02
"""Weight of what is far from it, next to what is near: nobody has seen all there is."""
CODE = ("risks.py", "predicting.py", "recordings.py", *LAB, *MODELS)


@dataclass(frozen=True)
class Discrepancy:
    """What one chain has shown: of n samples log KPI as measured and predicted, shape (n,).

    `added` is the median of the difference in the KPI's unit at the lower loads.
    """

    measured: Floats
    predicted: Floats
    added: float

    @classmethod
    def of(cls, seen: Measured, said: Forecaster) -> Discrepancy:
        y, mean = seen.table.y, said.forecast(seen.points).mean
        loads = np.array([wl for _, wl in seen.points])
        low = np.zeros(len(seen), dtype=bool)
        for number in np.unique(seen.table.configurations):
            own = seen.table.configurations == number
            low |= own & (loads <= np.quantile(loads[own], LOW_QUARTER))
        return cls(y, mean, float(np.median(np.exp(y[low]) - np.exp(mean[low]))))


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


def risk_shown_by(chains: Sequence[Discrepancy], *, adds: bool = True) -> HandoverRisk:
    """The risk that measured chains show, each counted once, however often it was measured.

    Parameters
    ----------
    adds : whether a hand-over adds to the KPI: to response times, to nothing else. Their risk is
        told by predicted time, others' as one.
    """
    added = max([0.0, *(one.added for one in chains)]) if adds else 0.0
    weight = np.concatenate([np.full(len(c.measured), 1.0 / len(c.measured)) for c in chains])
    predicted = np.concatenate([c.predicted for c in chains])
    near = [np.ones(len(predicted))]
    if adds:
        apart = (predicted - np.log(AT_MS)[:, None]) / ALIKE
        near = list(np.exp(-0.5 * np.square(apart)) + ANYWHERE)
    ends = []
    for more, end in zip((0.0, added), _ENDS, strict=True):
        off = np.concatenate([c.measured - np.log(np.exp(c.predicted) + more) for c in chains])
        ends.append([_quantile(off, weight * heard, end) for heard in near])
    return HandoverRisk(
        added,
        tuple(min(low, 0.0) for low in ends[0]),
        tuple(max(high, 0.0) for high in ends[1]),
        AT_MS if adds else (),
    )


def _quantile(values: Floats, weight: Floats, end: float) -> float:
    order = np.argsort(values)
    below = np.cumsum(weight[order]) - 0.5 * weight[order]
    return float(np.interp(end, below / weight.sum(), values[order]))
