"""The sampler `pooled` ends on a stated accuracy with a stated confidence: is it so?

The truth is where a surface's own formula crosses the limit of an SLA: it depends on no definition
of ours. Each play is of configurations drawn by its seed, with the surface's noise, to the end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.optimize import brentq

from science import tables
from science.surfaces import BY_NAME, Surface
from workbench.domain.campaign import SamplingPlan
from workbench.domain.parameters import Configuration, Sla
from workbench.sampling.pooled import CONFIDENCE, PooledSampler

SURFACES = ("firewall-law", "streaming-law", "firewall-scalability")
PLAYS, TOGETHER = 12, 12
"""Plays of a surface, and configurations of a play."""
LIMIT = 1.0
"""Of the SLA, in the KPI's unit: at the foot of the knee."""
MOST_EACH = 30
"""Samples that a configuration may take."""
ROUNDING = 1e-3
"""In logs, of the figures that a note has."""


@dataclass(frozen=True)
class Ended:
    """What a play said of one configuration; `known` and `at` are NaN where it said nothing.

    Attributes
    ----------
    at, known : the load of the crossing, and its relative half width as stated.
    truth : the load at which the surface's median crosses the limit.
    """

    at: float
    known: float
    truth: float

    @property
    def is_noted(self) -> bool:
        return not math.isnan(self.at)

    @property
    def is_right(self) -> bool:
        return abs(math.log(self.truth / self.at)) <= math.log1p(self.known) + ROUNDING


@dataclass(frozen=True)
class Played:
    """A play to its end: its configurations, and the samples that it took of all of them."""

    ended: tuple[Ended, ...]
    samples: int


def crossing(surface: Surface, configuration: Configuration) -> float:
    """Load at which the median of the KPI is the limit."""

    def beyond(x: float) -> float:
        return float(surface.truth(configuration, np.array([math.exp(x)]))[0]) - LIMIT

    return math.exp(brentq(beyond, math.log(surface.primary.low), math.log(2e6)))


def play(name: str, seed: int) -> Played:
    """Configurations of a surface under an SLA, sampled until the sampler ends."""
    surface = BY_NAME[name]
    said = re.compile(
        rf"{surface.kpi} crosses {LIMIT:g} at ([\d.]+), known to ([\d.]+) % "
        rf"at {100 * CONFIDENCE:g} % confidence"
    )
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(surface.configurations), TOGETHER, replace=False)
    own = tuple(surface.configurations[i] for i in chosen)
    space = replace(surface.space(seed, own), sla=Sla(surface.kpi, LIMIT))
    sampler = PooledSampler(space, SamplingPlan(max_samples=MOST_EACH))
    samples = 0
    while (ask := sampler.ask()) is not None:
        sampler.tell([surface.measure(ask.configuration, ask.wl, draw=f"play {seed}")])
        samples += 1
    ended = []
    for configuration in own:
        found = said.search(sampler.endings[configuration].note)
        at, known = (float(found[1]), float(found[2]) / 100.0) if found else (math.nan, math.nan)
        ended.append(Ended(at, known, crossing(surface, configuration)))
    return Played(tuple(ended), samples)


def report(workers: int) -> str:
    """A row per surface: how many crossings are noted as known, and how many of those are."""
    rows: list[Sequence[str]] = []
    with ProcessPoolExecutor(workers) as executor:
        for name in SURFACES:
            plays = list(executor.map(partial(play, name), range(PLAYS)))
            ended = [one for played in plays for one in played.ended]
            noted = [one for one in ended if one.is_noted]
            right = sum(one.is_right for one in noted)
            width = tables.quartiles([100.0 * one.known for one in noted])[1]
            rows.append(
                [
                    name,
                    str(len(ended)),
                    str(len(noted)),
                    f"{tables.number(width)} %",
                    f"{right} ({100.0 * right / max(len(noted), 1):.1f} %)",
                    tables.spread([float(played.samples) for played in plays]),
                ]
            )
    head = ["surface", "crossings", "noted as known", "to, median", "within what is stated"]
    return tables.table([*head, f"samples of {TOGETHER} configurations"], rows)
