"""Rule `sla`: where the KPI crosses its limit (METHOD.md 5 and 7.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.domain import kpis
from workbench.domain.parameters import Sla
from workbench.domain.profiles import Breakpoint
from workbench.domain.samples import Sample
from workbench.models.breakpoints.case import RuleInputs
from workbench.models.breakpoints.overload import Shape
from workbench.models.breakpoints.scatter import evenly
from workbench.models.breakpoints.threshold import Evidence, Located, locate
from workbench.models.scales import NORMAL_95, UNKNOWN_LOG_SD, figure, log_kpi, log_sd
from workbench.models.selection import stated

_LOGIT_RANGE = 3.0
"""Logits around the target within which P(R <= limit) still grades: 0.5 to 0.997 for p95."""
_GENTLE = 2.0
"""Slope of log KPI on log load up to which a line between two samples is believed."""
_SURE = 1e-4
_USAGE_ERROR = 0.03
"""Log error of a place read from usage: a few per cent of requests straddle a window's edges."""


@dataclass(frozen=True)
class _Verdict:
    """Where a sample stands: `excess` above zero is over the limit; None: over, no figure."""

    x: float
    over: bool
    excess: float | None
    sd: float
    logit: bool


def sla(case: RuleInputs, limit: Sla) -> Breakpoint:
    """The load at which the KPI crosses the limit upwards.

    P(R <= limit) is compared on the logit where samples carry it, because p95 itself is bimodal
    near a quota jump; else log KPI with the log limit. Each sample stands at the overload that it
    met (`Case.overloads`), which takes the scatter of capacity out of the curve: the crossing is
    found there, and added to the posterior of capacity. Where capacity was never read, samples are
    verdicts at their loads. Where clients go in step (`Case.in_step`) a crossing is unresolved; a
    limit that even their bursts keep is kept. A limit from below (`throughput>=400/s`) is kept
    from some load on and not up to one, so that it has no such breakpoint.
    """
    if limit.direction != "<=":
        return case.answer("sla", "unresolved", f"{limit.kpi} has a limit from below", limit.kpi)
    verdicts = [_verdict(s, limit) for s in case.valid]
    if len(verdicts) < 2:
        return case.answer("sla", "unresolved", "fewer than two valid samples", limit.kpi)
    if not any(v.over for v in verdicts):
        return case.none_in_range("sla", f"{limit.kpi} over {limit.limit:g}", limit.kpi)
    if note := case.in_step(limit.kpi):
        return case.answer("sla", "unresolved", note, limit.kpi)
    if all(v.over for v in verdicts):
        if case.bottom > case.primary.low * (1.0 + 1e-9):
            lowest = f"{figure(case.bottom)}{case.unit}"
            note = f"over {limit.limit:g} at every valid load, from {lowest} on"
            return case.answer("sla", "unresolved", note, limit.kpi)
        note = f"over {limit.limit:g} at the lowest load already"
        return case.answer("sla", "below_range", note, limit.kpi)
    located = _relative(case, verdicts)
    note = "beside capacity"
    if located is None:
        located, note = _locate(verdicts, case.sample_sd, case.shared_sd)
    if located.centre > math.log(case.primary.high):
        return case.answer(
            "sla", "none_in_range", f"crosses about {figure(math.exp(located.centre))}", limit.kpi
        )
    if case.primary.integer:
        # No load lies between n and n + 1 clients, and what is there says the definition alone.
        located = replace(
            located,
            low=math.log(max(math.floor(math.exp(located.low) + 1e-9), case.primary.low)),
            high=math.log(math.ceil(math.exp(located.high) - 1e-9)),
        )
    return case.found("sla", located.centre, located.low, located.high, note, limit.kpi)


def _relative(case: RuleInputs, verdicts: Sequence[_Verdict]) -> Located | None:
    """Capacity and the crossing's place beside it; None where samples have no such places."""
    if case.log_capacity is None:
        return None
    gaps = [_gap_of(case, verdicts, shape) for shape in case.log_capacity.shapes]
    likeliest = gaps[int(np.argmax(case.log_capacity.odds))]
    if likeliest is None:
        return None
    moved = case.log_capacity.moved([evenly(*(gap or likeliest)) for gap in gaps])
    low, middle, high = (float(q) for q in moved.quantiles((0.025, 0.5, 0.975)))
    return Located(middle, low, high)


def _gap_of(
    case: RuleInputs, verdicts: Sequence[_Verdict], shape: Shape
) -> tuple[float, float] | None:
    placed = [
        replace(v, x=place)
        for v, place in zip(verdicts, case.overloads(shape), strict=True)
        if place is not None
    ]
    if not any(v.over for v in placed) or all(v.over for v in placed):
        return None
    return _gap(placed)


def _gap(placed: Sequence[_Verdict]) -> tuple[float, float]:
    """Between which places the verdict changes; where they mix, at the step that fits most."""
    ordered = sorted(placed, key=lambda v: v.x)
    wrong = [
        sum(v.over for v in ordered[:k]) + sum(not v.over for v in ordered[k:])
        for k in range(1, len(ordered))
    ]
    least = min(wrong)
    first = wrong.index(least) + 1
    last = len(wrong) - wrong[::-1].index(least)
    under, over = ordered[first - 1], ordered[last]
    graded = _graded(under, over) if under.x < over.x and first == last else ()
    if graded:
        _, crossing, sd, _ = graded[0]
        half = sd * math.sqrt(3.0)  # an even distribution of that standard deviation
        return crossing - half, crossing + half
    return under.x - _place_error(under.x), over.x + _place_error(over.x)


def _place_error(place: float) -> float:
    """Below saturation a place is read from usage, which a window of a few dozen quota periods
    states to some per cent; above it from throughput."""
    return _USAGE_ERROR if place < 0.0 else 0.0


def _locate(
    verdicts: Sequence[_Verdict], sample_sd: float, shared_sd: float
) -> tuple[Located, str]:
    under = max((v for v in verdicts if not v.over), key=lambda v: v.x)
    over = min((v for v in verdicts if v.over), key=lambda v: v.x)
    clean = under.x < over.x
    graded = _graded(under, over) if clean else ()
    located = locate(
        Evidence(
            above=[v.x for v in verdicts if not v.over and not (graded and v is under)],
            below=[v.x for v in verdicts if v.over and not (graded and v is over)],
            exact=graded,
        ),
        sample_sd,
        shared_sd,
    )
    span = f"{figure(math.exp(min(under.x, over.x)))} and {figure(math.exp(max(under.x, over.x)))}"
    if graded:
        return located, f"on the line between {span}"
    if not clean:
        return located, f"verdicts differ between {span}"
    centre = _between(under, over)
    return (
        Located(centre, min(located.low, under.x), max(located.high, over.x)),
        f"it jumps between {span}",
    )


def _graded(under: _Verdict, over: _Verdict) -> tuple[tuple[float, float, float, float], ...]:
    """The crossing of the line through two samples; nothing where the KPI jumps.

    It is one measurement, whose errors are those of both samples by their weights on the line.
    """
    if under.excess is None or over.excess is None or under.logit != over.logit:
        return ()
    slope = (over.excess - under.excess) / (over.x - under.x)
    worst = max(-under.excess, over.excess)
    gentle = worst <= _LOGIT_RANGE if under.logit else slope <= _GENTLE
    if not gentle or slope <= 0.0:
        return ()
    share = -under.excess / (over.excess - under.excess)
    sd = math.hypot((1.0 - share) * under.sd, share * over.sd) / slope
    # Threshold noise that decays with overload is no matter here: the line has been graded.
    crossing = under.x - under.excess / slope
    return ((-math.inf, crossing, sd, math.hypot(1.0 - share, share)),)


def _between(under: _Verdict, over: _Verdict) -> float:
    """The crossing on the line between two samples, or the middle where one has no figure."""
    if under.excess is None or over.excess is None or under.logit != over.logit:
        return 0.5 * (under.x + over.x)
    share = -under.excess / max(over.excess - under.excess, 1e-12)
    return under.x + min(max(share, 0.0), 1.0) * (over.x - under.x)


def _verdict(sample: Sample, limit: Sla) -> _Verdict:
    x = math.log(sample.point.wl)
    estimate = stated(sample, limit.kpi)
    if estimate is None:
        return _Verdict(x, True, None, UNKNOWN_LOG_SD, False)
    target = kpis.of(limit.kpi).quantile  # P(R <= limit) at which it stands at its limit
    if sample.p_sla is not None and target is not None:
        excess = _logit(target) - _logit(sample.p_sla.value)
        width = _logit(sample.p_sla.high) - _logit(sample.p_sla.low)
        return _Verdict(x, excess > 0.0, excess, max(width / (2.0 * NORMAL_95), 0.1), True)
    excess = log_kpi(limit.kpi, estimate.value) - log_kpi(limit.kpi, limit.limit)
    return _Verdict(x, excess > 0.0, excess, log_sd(limit.kpi, estimate), False)


def _logit(probability: float) -> float:
    p = min(max(probability, _SURE), 1.0 - _SURE)
    return math.log(p / (1.0 - p))
