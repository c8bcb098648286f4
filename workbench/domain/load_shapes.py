"""How the rate of an open loop varies: bursts, steps, spikes, a sine, a recorded trace of rates.

A shape is one cycle of stretches of constant rate, repeated for as long as load is driven. Factors
are relative to `wl`, and their mean over a cycle is 1: `wl` is always the mean rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

ShapeKind = Literal["bursts", "steps", "spikes", "sine", "trace"]
Segment = tuple[float, float]
"""Seconds, and the rate in them as a factor of the mean."""

DUTY, PERIOD = "duty", "period_s"
"""Workload parameters of bursts: share of a period with load, and the period's length."""
USUAL_PERIOD_S = 1.0
"""Of bursts, where a campaign gives none."""
LEAST_DUTY = 0.1
"""Below, the rate within a burst is over ten times the mean."""
SHORTEST_S, LONGEST_S = 0.05, 600.0
"""Of a cycle."""
SINE_PARTS = 40
"""Stretches of constant rate that stand for one period of a sine."""
MOST_SEGMENTS = 3600
"""An hour of a trace by the second; the generator gets all of them as one argument."""
SHORT_CYCLE_S = 2.0
MANY_CYCLES, FEW_CYCLES = 6, 4
"""Cycles of a window: six batches, or four where a cycle is longer than `SHORT_CYCLE_S`."""
QUIET_BEFORE = 0.25
"""Share of a cycle's quiet time that lies before the spike: what it is compared with."""


@dataclass(frozen=True)
class LoadShape:
    """One cycle of load.

    Attributes
    ----------
    segments : one after the other, mean factor 1. Of bursts without any: a configuration's
        parameters say them (`bursts`).
    text : tells it from others of its kind, in the load model of every sample: `x3-2s-20s`.
    """

    kind: ShapeKind
    segments: tuple[Segment, ...] = ()
    text: str = ""

    @property
    def key(self) -> str:
        return f"{self.kind}-{self.text}" if self.text else self.kind

    @property
    def cycle_s(self) -> float:
        return math.fsum(seconds for seconds, _ in self.segments)

    @property
    def spike(self) -> tuple[float, float] | None:
        """When the spike begins and ends, from the begin of the cycle; None where there is none."""
        if self.kind != "spikes":
            return None
        before, spike = self.segments[0][0], self.segments[1][0]
        return before, before + spike


def bursts(duty: float, period_s: float) -> LoadShape:
    """On for `duty` of each period, off for the rest."""
    on_s = duty * period_s
    return LoadShape("bursts", ((on_s, 1.0 / duty), (period_s - on_s, 0.0)))


def steps(factors: Sequence[float], each_s: float) -> LoadShape:
    """One rate after the other, each for as long."""
    text = f"{'-'.join(f'{f:g}' for f in factors)}-{each_s:g}s"
    return LoadShape("steps", _levelled((each_s, f) for f in factors), text)


def spikes(factor: float, spike_s: float, period_s: float) -> LoadShape:
    """`factor` times the rate around it for `spike_s`, once in each period."""
    quiet_s = period_s - spike_s
    parts = ((QUIET_BEFORE * quiet_s, 1.0), (spike_s, factor), ((1 - QUIET_BEFORE) * quiet_s, 1.0))
    return LoadShape("spikes", _levelled(parts), f"x{factor:g}-{spike_s:g}s-{period_s:g}s")


def sine(amplitude: float, period_s: float) -> LoadShape:
    """A wave of that amplitude, relative to the mean, in `SINE_PARTS` stretches."""
    each_s = period_s / SINE_PARTS
    middle = ((part + 0.5) / SINE_PARTS for part in range(SINE_PARTS))
    parts = [(each_s, 1.0 + amplitude * math.sin(2 * math.pi * at)) for at in middle]
    return LoadShape("sine", _levelled(parts), f"{amplitude:g}-{period_s:g}s")


def trace(rates: Sequence[float], each_s: float) -> LoadShape:
    """A recorded series of rates, each held for as long; scaled so that its mean is `wl`."""
    segments = _levelled((each_s, rate) for rate in rates)
    digest = sha256(repr(segments).encode()).hexdigest()[:8]
    return LoadShape("trace", segments, digest)


def _levelled(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """The same with a mean factor of 1."""
    given = tuple(segments)
    seconds = math.fsum(s for s, _ in given)
    mean = math.fsum(s * f for s, f in given) / seconds
    return tuple((s, f / mean) for s, f in given)


def refusal(shape: LoadShape | None, generator: object) -> str | None:
    """Why a generator cannot offer load of a shape, or None; of plug-ins, those that do not say
    that they send at planned times (`plans_times`) do not."""
    if shape is None or getattr(generator, "plans_times", False):
        return None
    name = getattr(generator, "name", "this generator")
    return (
        f"{name} sends at a constant rate, and cannot offer {shape.kind}: "
        "that takes one that sends each request when it is due (steady)"
    )


def cycles_needed(cycle_s: float) -> int:
    return MANY_CYCLES if cycle_s <= SHORT_CYCLE_S else FEW_CYCLES


def whole(seconds: float, cycle_s: float, least: int = 0) -> float:
    """At least so long, and a whole number of cycles, `least` of them or more."""
    if not cycle_s:
        return seconds
    return cycle_s * max(least, math.ceil(seconds / cycle_s - 1e-6))
