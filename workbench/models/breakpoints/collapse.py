"""Rule `collapse`: where throughput falls as the offered load rises."""

from __future__ import annotations

import math

import numpy as np

from workbench.domain.profiles import Breakpoint
from workbench.models.breakpoints.case import RuleInputs
from workbench.models.falls import fall_of
from workbench.models.scales import UNKNOWN_LOG_SD, figure, log_sd


def collapse(case: RuleInputs) -> tuple[Breakpoint, ...]:
    """Between the last load that was carried and the first at which much less is; nothing where
    no sample falls.

    It takes repetitions: one sample alone is `unresolved`, and asked for again. How deep it is and
    whether the function recovers says the note.
    """
    carried = [
        (math.log(s.point.wl), s.kpis[case.rate])
        for s in case.valid
        if case.rate in s.kpis and s.kpis[case.rate].value > 0.0
    ]
    fall = fall_of(
        [x for x, _ in carried],
        [math.log(e.value) for _, e in carried],
        np.array([max(log_sd(case.rate, e), UNKNOWN_LOG_SD / 2) for _, e in carried]),
    )
    if fall is None:
        return ()
    at, most = math.exp(fall.first), math.exp(fall.peak)
    share, low, high = fall.depth
    note = (
        f"{figure(math.exp(float(np.min(fall.carried))))}/s are left of {figure(most)}/s at "
        f"{figure(math.exp(fall.peak_wl))}{case.unit}, {share:.0%} [{low:.0%}, {high:.0%}]; "
    )
    if fall.recovered is not None:
        note += f"recovers from {figure(math.exp(fall.recovered))}{case.unit} on"
    else:
        note += f"no recovery up to {figure(case.top)}{case.unit}"
    if not fall.repeated:
        note = f"one sample at {figure(at)}{case.unit} fell: measure it again; {note}"
        return (case.answer("collapse", "unresolved", note, case.rate),)
    middle = 0.5 * (fall.before + fall.first)
    return (case.found("collapse", middle, fall.before, fall.first, note, case.rate),)
