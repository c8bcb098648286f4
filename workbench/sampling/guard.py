"""What a sampler may not ask, whoever wrote it."""

from __future__ import annotations

import math
from collections.abc import Iterable

from workbench.domain.samples import Sample
from workbench.sampling.base import Ask, Space

_TOLERANCE = 1e-9
"""Relative; what rounding may do to an end of the range."""


def complaint(ask: Ask, space: Space, samples: Iterable[Sample], planned: int | None = None) -> str:
    """Why an ask cannot be measured, as the end of a sentence; empty if it can.

    Parameters
    ----------
    samples : all of the target so far: nothing is measured twice under one number.
    planned : blocks that the sampler's plan takes; later ones are of points that somebody else
        asked for. None: all are the sampler's.
    """
    if ask.configuration not in space.configurations:
        return f"asks for {ask.configuration.key}, which is no configuration of the campaign"
    low, high = space.primary.low, space.primary.high
    if not math.isfinite(ask.wl) or not (
        low * (1 - _TOLERANCE) <= ask.wl <= high * (1 + _TOLERANCE)
    ):
        return f"asks for a load of {ask.wl:g}, outside of {low:g} to {high:g}"
    recorded = space.loads.get(ask.configuration, ())
    if recorded and ask.wl not in recorded:
        return f"asks for a load of {ask.wl:.10g}, which is not among those recorded"
    if space.primary.integer and not recorded and ask.wl != round(ask.wl):
        return f"asks for a load of {ask.wl:.10g}, where only whole numbers can be offered"
    if ask.repetition < 0 or ask.block < 0:
        return f"asks for repetition {ask.repetition} in block {ask.block}"
    last = -1
    for sample in samples:
        point = sample.point
        if planned is None or sample.block < planned:
            last = max(last, sample.block)
        if (point.configuration, point.wl, point.repetition) == (
            ask.configuration,
            ask.wl,
            ask.repetition,
        ):
            return (
                f"asks twice for {ask.configuration.key} at {ask.wl:g}, repetition {ask.repetition}"
            )
    if ask.block < last:
        return f"asks for block {ask.block} after block {last}"
    return ""
