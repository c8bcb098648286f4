"""Our breakpoint search in the race: alone, and on a grid with what the neighbours told."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from science.devices import GOAL, HIGH, LOW, Device
from science.searches import VCPUS, Bracket, GridSearch, Search, cold
from workbench.sampling.search import BreakpointSearch

METHOD_VERSION = 1
"""Raised by hand when our search asks otherwise, here or in `sampling.search`."""
BUDGET_S = 3_600.0
"""Seconds are charged, not forbidden: at 3 % noise the information floor of 0.5 % is 553 s."""


def drive(search: BreakpointSearch, driven: Device) -> Bracket:
    """Ask and tell until there is nothing more to ask; what is not "found" is refused."""
    while (asked := search.ask()) is not None:
        load, seconds = asked
        sent, answered = driven.trial(load, seconds)
        search.tell(load, seconds, sent, answered)
    found = search.found
    return (found.low, found.high) if found and found.outcome == "found" else None


def ours(driven: Device, width: float) -> Bracket:
    """Without anything known beforehand."""
    return drive(
        BreakpointSearch(
            LOW,
            HIGH,
            width=width,
            goal=GOAL,
            overhead_s=driven.overhead_s,
            budget_s=BUDGET_S,
        ),
        driven,
    )


def warm_ours(devices: list[Device], width: float) -> list[Bracket]:
    """With what the neighbours' results predict, the first from scratch."""
    found: list[Bracket] = []
    before: BreakpointSearch | None = None
    for place, one in enumerate(devices):
        before = BreakpointSearch(
            LOW,
            HIGH,
            width=width,
            goal=GOAL,
            overhead_s=one.overhead_s,
            prior=_predicted(found, place),
            alike=before,
            budget_s=BUDGET_S,
        )
        found.append(drive(before, one))
    return found


def _predicted(found: Sequence[Bracket], place: int) -> tuple[float, float] | None:
    """Middle and log standard deviation: a line through the logs of those before."""
    known = [(math.log(VCPUS[i]), 0.5 * math.log(b[0] * b[1])) for i, b in enumerate(found) if b]
    if not known:
        return None
    (x1, y1) = known[-1]
    slope, sd = 1.0, 0.3
    if len(known) > 1:
        xs, ys = (np.array(v) for v in zip(*known, strict=True))
        slope, sd = float(np.polyfit(xs, ys, 1)[0]), 0.2
    return math.exp(y1 + slope * (math.log(VCPUS[place]) - x1)), sd


SEARCHES: dict[str, Search] = {"ours": ours}
GRIDS: dict[str, GridSearch] = {
    "ours, each from scratch": cold(ours),
    "ours, neighbours' prediction": warm_ours,
}
SWEPT = {"ours": tuple((ours, width) for width in (0.1, 0.05, 0.02, 0.01))}
