"""The sampler `breakpoint-search` as a campaign meets it: samples of one length whose capacity is
moved by the luck of the visit, and what it says of every configuration of a grid.

The devices are those of the race; a visit whose capacity is e^luck times the nominal one loses what
a load smaller by that factor loses at the nominal one. The truth is a visit's without luck.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from science import tables
from science.devices import GOAL, HIGH, LOW, Device, Kind, Noise
from science.searches import VCPUS
from workbench.domain.campaign import SamplingPlan
from workbench.domain.parameters import (
    LoadModel,
    OperatingPoint,
    Parameter,
    PrimaryWorkload,
    grid,
)
from workbench.domain.samples import Estimate, Sample
from workbench.sampling.base import Ask, Space
from workbench.sampling.breakpoints import BreakpointSampler

SHAPES: tuple[Kind, ...] = ("hard knee", "soft knee", "quota")
SECONDS = Noise("1 %", 0.01)
SCATTERS = (0.0, 0.03, 0.05)
"""Log standard deviation between visits; METHOD.md 6 expects 0.05 in windows of 2 to 3 s."""
TAIL = 4.0
"""Degrees of freedom of the visits' luck (METHOD.md 11)."""
WIDTHS = (0.1, 0.05)
GRIDS = 12
WINDOW_S = 3.0
MOST_EACH = 40
"""Samples that a configuration may take."""
POWER, OWN = 0.85, 0.1
"""How capacity grows with the allocation, and the log standard deviation of what each has to
itself."""
SAID = re.compile(r"loss: ([\d.e+]+)-([\d.e+]+) \(95 %\)")


@dataclass(frozen=True)
class Searched:
    """One grid: samples of all configurations, how many were found, and how many of these right."""

    samples: int
    configurations: int
    found: int
    right: int


def search(kind: Kind, scatter: float, width: float, seed: int) -> Searched:
    """A campaign over one grid, to the sampler's end."""
    rng = np.random.default_rng([seed, SHAPES.index(kind), round(1e3 * scatter)])
    own = tuple(grid((Parameter("function.vcpu", VCPUS),), ()))
    base = 10_000.0 * math.exp(rng.uniform(-0.7, 0.7))
    devices = {
        c: Device(kind, SECONDS, base * (v / VCPUS[-1]) ** POWER * math.exp(OWN * e), seed + i)
        for i, (c, v, e) in enumerate(zip(own, VCPUS, rng.standard_normal(len(own)), strict=True))
    }
    space = Space(
        "function",
        own,
        PrimaryWorkload("rate", LOW, HIGH),
        LoadModel("open"),
        "p95_ms",
        1000.0,
        GOAL,
        None,
        seed,
    )
    plan = SamplingPlan("breakpoint-search", max_samples=MOST_EACH, options={"width": width})
    sampler = BreakpointSampler(space, plan)
    samples = 0
    while (ask := sampler.ask()) is not None:
        luck = scatter * rng.standard_t(TAIL) / math.sqrt(TAIL / (TAIL - 2.0))
        sent, answered = devices[ask.configuration].trial(ask.wl * math.exp(-luck), WINDOW_S)
        sampler.tell([_sample(ask, 1.0 - answered / sent)])
        samples += 1
    found = right = 0
    for configuration, ending in sampler.endings.items():
        if said := SAID.search(ending.note):
            found += 1
            right += float(said[1]) <= devices[configuration].truth <= float(said[2])
    return Searched(samples, len(own), found, right)


def _sample(ask: Ask, lost: float) -> Sample:
    """What a campaign would be told: the loss, of a window that is valid."""
    return Sample(
        id=f"function/{ask.configuration.key}/{ask.wl:g}/{ask.repetition}",
        point=OperatingPoint("function", ask.configuration, ask.wl, ask.repetition),
        kpis={"loss_pct": Estimate(100.0 * lost, 0.0, 100.0)},
        usage={},
        valid=True,
        findings=(),
        labels=(),
        load_model="open-constant",
        kpi_definition="planned",
        generator="device",
        planned=1000,
        completed=1000,
        errors=0,
        unfinished=0,
        windows=1,
        batches=6,
        throttled_share=0.0,
        straddle_share=0.0,
        started_at=0.0,
        measured_s=WINDOW_S,
        lab_s=WINDOW_S,
    )


def report(workers: int) -> str:
    """A row per device and scatter: samples of a configuration, found, right, at each width."""
    rows: list[Sequence[str]] = []
    with ProcessPoolExecutor(workers) as executor:
        for kind in SHAPES:
            for scatter in SCATTERS:
                row = [kind, f"{100.0 * scatter:g} %"]
                for width in WIDTHS:
                    done = list(executor.map(partial(search, kind, scatter, width), range(GRIDS)))
                    each = [one.samples / one.configurations for one in done]
                    found, right = sum(d.found for d in done), sum(d.right for d in done)
                    share = 100.0 * right / max(found, 1)
                    row += [
                        tables.spread(each),
                        f"{found} of {sum(d.configurations for d in done)}",
                        f"{share:.1f} %",
                    ]
                rows.append(row)
    head = ["device", "visits scatter by"]
    for width in WIDTHS:
        head += [f"{100.0 * width:g} %: samples of a configuration", "found", "right"]
    return tables.table(head, rows)
