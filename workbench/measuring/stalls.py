"""A host that stands still: nothing is answered, and nobody burns CPU.

A function that is slow, throttled or out of work keeps somebody busy, the source at least. A host
that pauses (or whose hypervisor does) stops all of them at once, the one who reads the counters
included. A window with such a gap says nothing of the function: it is not steady.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.measuring.flow import Flow
from workbench.measuring.records import Floats
from workbench.measuring.usage import OWN, Meter

SHORTEST_S = 0.5
"""Five quota periods: no quota keeps a function from running for longer."""
EXPECTED = 10
"""Answers that should have come in a gap: with fewer it is chance."""
STILL = 0.2
"""Share of what a component burns otherwise, under which it stands still."""
IDLE_CORES = 0.01
"""A component that burns less than this otherwise tells nothing."""
LATE_READING = 1.5
"""A reading that took so much longer than usual was held up itself."""


@dataclass(frozen=True)
class Stall:
    """A gap, in seconds on the lab's clock."""

    start_s: float
    end_s: float
    evidence: str


def find_stall(
    flow: Flow, meter: Meter, start_s: float, end_s: float, varies: bool = False
) -> Stall | None:
    """The longest gap of a window in which nothing ended and every component stood still."""
    ended = flow.ended[(flow.ended >= start_s) & (flow.ended < end_s)]
    rate = ended.size / (end_s - start_s)
    instants = np.concatenate(([start_s], ended, [end_s]))
    gaps = np.diff(instants)
    for i in np.argsort(gaps)[::-1]:
        if gaps[i] < SHORTEST_S or gaps[i] * rate < EXPECTED:
            return None
        begin, end = float(instants[i]), float(instants[i + 1])
        if varies and flow.due_in(begin, end) < EXPECTED:
            continue  # nothing was asked for, as between two bursts
        if (why := _stood_still(meter, begin, end)) is not None:
            return Stall(begin, end, f"nothing was answered for {gaps[i]:.1f} s while {why}")
    return None


def _stood_still(meter: Meter, begin_s: float, end_s: float) -> str | None:
    at_s = meter.at_s
    steps = np.diff(at_s)
    held_up = (at_s[:-1] < end_s) & (at_s[1:] > begin_s)
    if steps[held_up].size and steps[held_up].max() > LATE_READING * float(np.median(steps)):
        return f"the counters could not be read for {steps[held_up].max():.1f} s either"
    inside = (at_s[:-1] >= begin_s) & (at_s[1:] <= end_s)
    if not inside.any():
        return None
    busy = False
    for name in meter.components:
        if name == OWN:
            continue
        burned = np.diff(meter.cpu_s(name))
        within, otherwise = _cores(burned, steps, inside), _cores(burned, steps, ~held_up)
        if otherwise > IDLE_CORES:
            busy = True
            if within > STILL * otherwise:
                return None
    return "every component stood still" if busy else None


def _cores(burned: Floats, steps: Floats, which: np.ndarray) -> float:
    seconds = float(steps[which].sum())
    return float(burned[which].sum()) / seconds if seconds else 0.0
