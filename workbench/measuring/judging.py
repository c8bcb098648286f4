"""The judge: drives of one visit to an operating point in, a measurement out.

It is asked after every drive. Either the visit is settled, or it says how long the next drive
should be; the engine drives again and asks with all drives so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from workbench.domain.campaign import WindowPlan
from workbench.domain.errors import DataError
from workbench.domain.lab import BypassCurve
from workbench.domain.load_shapes import cycles_needed, whole
from workbench.domain.observations import Observation
from workbench.domain.parameters import LoadModel, OperatingPoint, Sla
from workbench.domain.samples import Finding, Measurement, Sample
from workbench.measuring import competition, copies, packets, playback
from workbench.measuring.bypass import bypass_at, tells_the_most
from workbench.measuring.cycles import cycle_of, seconds_of
from workbench.measuring.evidence import observations
from workbench.measuring.floor import METHOD_FLOOR, VarianceFloor
from workbench.measuring.flow import PERIOD_S
from workbench.measuring.kpis import Statement, probability_within, state
from workbench.measuring.narrowing import FACTOR, more_helps
from workbench.measuring.pool import WindowPool
from workbench.measuring.records import Drive
from workbench.measuring.remarks import Look, percentiles, remark
from workbench.measuring.splits import branch_shares, split_off
from workbench.measuring.stretches import Stretch, cut
from workbench.measuring.validity import ValidityInputs, examine
from workbench.measuring.warmup import MIN_WARMUP_S, completions_needed, warmup_s, window_s

SPARE_S = 0.5
"""Added to a drive: what MSER-5 may take beyond the warm-up, and the start of the generator."""
OPTIMISM = 1.5
"""How much faster than so far answers may come before too few of them is called hopeless."""
CAUSES = frozenset(
    {
        "source_saturated",
        "sink_saturated",
        "host_saturated",
        "bypass_limited",
        "conntrack_full",
        "mirror_lost",
        "competitor_failed",
        "stream_failed",
        "errors",
        "timeout",
    }
)
"""Findings that another drive at the same point does not cure."""
NOT_THE_FUNCTION = CAUSES - {"errors", "timeout"} | {"little"}
"""Findings that say that somebody else than the functions set the pace."""


@dataclass(frozen=True)
class Terms:
    """What a point is judged by.

    Attributes
    ----------
    variance_floor : what the session's samples so far and the host's noise say of the scatter
        between visits (`floor.variance_floor`); METHOD.md 6 where nothing is known.
    bypass : the curve of the same generator, load model, keep-alive and workload, if there is one.
    block : which deployment of its target the point is measured on.
    factor : on the batches' intervals where windows are added until they are narrow enough
        (`WindowPlan.interval`), since a visit then ends when they happen to be (`narrowing`).
    """

    load: LoadModel
    windows: WindowPlan
    sla: Sla | None
    kpi: str
    variance_floor: VarianceFloor = METHOD_FLOOR
    bypass: BypassCurve | None = None
    block: int = 0
    factor: float = FACTOR


@dataclass(frozen=True)
class Judgement:
    """The best statement so far, valid or with findings, and whether more load would improve it."""

    measurement: Measurement
    settled: bool
    next_s: float
    """How long the next drive should be, warm-up included; 0 if settled."""


def sample_id(point: OperatingPoint) -> str:
    """`<target>/<12 hex of the configuration's hash>/<wl>/<repetition>`, the same everywhere."""
    digest = sha256(point.configuration.key.encode()).hexdigest()[:12]
    return f"{point.target}/{digest}/{point.wl:.6g}/{point.repetition}"


def first_drive_s(
    point: OperatingPoint,
    terms: Terms,
    expected_rate: float | None = None,
    expected_response_s: float | None = None,
) -> float:
    """Seconds of the first drive: warm-up, one window and half a second to spare.

    Parameters
    ----------
    expected_rate : float, optional
        Answers per second. In an open loop the planned rate is taken where it is not given.
    expected_response_s : float, optional
        Mean response time, in seconds.
    """
    load, plan = terms.load, terms.windows
    if load.unit == "streams":  # paced by movies, however slow the answers are
        window = max(plan.window_s, playback.STRETCH_S)
        return min(playback.since_s(plan) + window + SPARE_S, plan.timeout_s)
    rate = expected_rate or (point.wl if load.kind == "open" else None)
    window = window_s(plan, expected_response_s)
    if rate:
        window = max(window, completions_needed(load, point.wl) / rate)
    window, warmup = _whole_cycles(terms, point, window, warmup_s(plan, expected_response_s))
    return min(warmup + window + SPARE_S, plan.timeout_s)


def judge(
    drives: Sequence[Drive],
    point: OperatingPoint,
    terms: Terms,
    *,
    started_at: float,
    lab_s: float,
) -> Judgement:
    """Compute the sample of a visit, and whether it is settled.

    Each drive yields one window: what is left after its warm-up. The steady ones are pooled; if
    none is, the last one is stated. An open loop in overload has no stationary response time, and
    is not called unsteady for that: its throughput and loss are what it was measured for, its
    response times are stated as lower bounds (`kpis.state`), labelled `overloaded`.

    Parameters
    ----------
    drives : all drives of the visit so far, in their order; at least one.
    started_at : seconds since the epoch, when the first drive began.
    lab_s : everything that the visit cost so far, on the lab's clock.

    Raises
    ------
    DataError
        If the drives cannot be judged at all: none, of different generators or definitions, too
        short, or with counters that went backwards.
    """
    _refuse_unlike(drives)
    if terms.load.unit == "packets":
        return _judge_packets(drives, point, terms, started_at, lab_s)
    cycle_s = cycle_of(terms.load, point)
    stretches = [cut(drive, terms.load, terms.windows, cycle_s) for drive in drives]
    steady = [stretch for stretch in stretches if stretch.steady]
    pool = WindowPool(point, terms.load, steady or stretches[-1:])
    driven_s = sum(drive.stop_s - drive.begin_s for drive in drives)
    bypass = bypass_at(terms.bypass, terms.load, point.wl)
    most = bypass if tells_the_most(terms.bypass, terms.load, point.wl) else None
    judged = ValidityInputs(pool, terms.windows, driven_s, most)
    findings = _findings(judged, drives)
    factor = terms.factor if terms.windows.interval else 1.0
    asked = (terms.kpi, *((terms.sla.kpi,) if terms.sla else ()))
    statement = state(pool, terms.windows, terms.variance_floor, factor, asked)
    reasons = {finding.reason for finding in findings}
    blamed = bool(reasons & NOT_THE_FUNCTION)
    look = Look(pool, statement, bypass, percentiles(*asked), blamed, set(asked))
    remarks = (*remark(look), *split_off(pool.stretches, pool.completed))
    sample = Sample(
        id=sample_id(point),
        point=point,
        kpis=statement.kpis | copies.state(drives) | playback.state(drives, terms.windows),
        usage=pool.usage,
        valid=not findings,
        findings=findings,
        labels=tuple(earned.label for earned in remarks),
        load_model=terms.load.key,
        kpi_definition=drives[0].kpi_definition,
        generator=drives[0].generator,
        planned=pool.planned,
        completed=pool.completed,
        errors=pool.errors,
        unfinished=sum(s.unfinished for s in pool.stretches),
        windows=len(pool.stretches),
        batches=pool.k,
        throttled_share=pool.throttled_share,
        straddle_share=pool.straddle_share,
        started_at=started_at,
        measured_s=pool.duration_s,
        lab_s=lab_s,
        p_sla=probability_within(pool, terms.sla),
        remarks=remarks,
        bypass=bypass,
        block=terms.block,
    )
    measurement = _measurement(sample, pool, stretches, cycle_s)
    next_s = 0.0 if reasons & CAUSES else _next_drive_s(pool, terms, stretches[-1], driven_s)
    if not reasons & CAUSES and not next_s and sample.valid:
        correlated = bool(statement.correlated.keys() & asked)
        next_s = _wider_s(pool, terms, statement, driven_s, correlated)
    return Judgement(measurement, settled=not next_s, next_s=next_s)


def _findings(inputs: ValidityInputs, drives: Sequence[Drive]) -> tuple[Finding, ...]:
    """Of the pooled windows, of copies and competitors, of players."""
    besides = (*copies.examine(drives), *competition.examine(drives))
    return playback.also((*examine(inputs), *besides), drives)


def _refuse_unlike(drives: Sequence[Drive]) -> None:
    """Raises `DataError` where there is no drive, or they cannot make one sample."""
    if not drives:
        raise DataError("a visit without a drive has nothing to judge")
    if len({(drive.generator, drive.kpi_definition) for drive in drives}) > 1:
        raise DataError(
            "drives of different generators or latency definitions never make one sample",
            remedy="Measure the point again with one generator",
        )


def _measurement(
    sample: Sample, pool: WindowPool, stretches: Sequence[Stretch], cycle_s: float
) -> Measurement:
    """The sample with its windows and seconds, counted from when the visit's first drive began."""
    origin_s = stretches[0].drive.begin_s
    series = tuple(second for s in stretches for second in s.meter.seconds(origin_s))
    windows = tuple(s.window(origin_s) for s in pool.stretches)
    return Measurement(sample, windows, series, _observed(pool.stretches, cycle_s))


def _judge_packets(
    drives: Sequence[Drive], point: OperatingPoint, terms: Terms, started_at: float, lab_s: float
) -> Judgement:
    """The same of packets (`measuring.packets`): no bypass, no p_sla."""
    pool, stretches = packets.pool_of(drives, terms.windows)
    findings = (*packets.examine(pool), *copies.examine(drives), *competition.examine(drives))
    reasons = {finding.reason for finding in findings}
    remarks = packets.remark(pool, "source_saturated" in reasons)
    origin_s, first = drives[0].begin_s, drives[0]
    asked = (terms.kpi, *((terms.sla.kpi,) if terms.sla else ()))
    sample = Sample(
        id=sample_id(point),
        point=point,
        kpis=packets.state(pool, terms.variance_floor, asked) | copies.state(drives),
        usage=pool.usage,
        valid=not findings,
        findings=findings,
        labels=tuple(earned.label for earned in remarks),
        load_model=terms.load.key,
        kpi_definition=first.kpi_definition,
        generator=first.generator,
        planned=round(pool.total("planned")),
        completed=round(pool.total("received")),
        errors=0,
        unfinished=round(pool.total("lost")),
        windows=len(pool.stretches),
        batches=pool.seconds.size,
        throttled_share=pool.throttled_share,
        straddle_share=0.0,
        started_at=started_at,
        measured_s=pool.duration_s,
        lab_s=lab_s,
        remarks=remarks,
        block=terms.block,
    )
    series = tuple(second for s in stretches for second in s.meter.seconds(origin_s))
    windows = tuple(s.window(origin_s) for s in pool.stretches)
    measurement = Measurement(sample, windows, series, observations(pool.stretches))
    next_s = 0.0 if reasons & CAUSES else packets.next_drive_s(pool, stretches[-1])
    return Judgement(measurement, settled=not next_s, next_s=next_s)


def _observed(windows: Sequence[Stretch], cycle_s: float) -> tuple[Observation, ...]:
    """All that is told of each window beside its KPIs and usage."""
    seconds = seconds_of(windows) if cycle_s else ()
    return (*observations(windows), *branch_shares(windows), *seconds)


def _wider_s(
    pool: WindowPool, terms: Terms, statement: Statement, driven_s: float, correlated: bool
) -> float:
    """Seconds of a further drive for an interval that is narrower, or that can be believed."""
    next_s = _narrowing_s(pool, terms, statement, driven_s)
    if next_s or not correlated:
        return next_s
    next_s, affordable = _another(pool, terms, driven_s)
    return next_s if affordable else 0.0


def _whole_cycles(
    terms: Terms, point: OperatingPoint, window: float, warmup: float
) -> tuple[float, float]:
    """Both in whole cycles of the load, the window of enough of them."""
    cycle_s = cycle_of(terms.load, point)
    if not cycle_s:
        return window, warmup
    return whole(window, cycle_s, cycles_needed(cycle_s)), whole(warmup, cycle_s)


def _next_drive_s(pool: WindowPool, terms: Terms, last: Stretch, driven_s: float) -> float:
    """Seconds of the next drive; 0 if the sample has all it needs, or more would not help."""
    plan, wl = terms.windows, pool.point.wl
    if terms.load.unit == "streams" and pool.stretches[-1].steady:
        return 0.0  # its stretches were whole
    left = plan.timeout_s - driven_s
    window, warmup = _whole_cycles(
        terms, pool.point, window_s(plan, last.response_s), warmup_s(plan, last.response_s)
    )
    if left < warmup + MIN_WARMUP_S:
        return 0.0
    if not pool.stretches[-1].steady:
        longer = max(window, 1.5 * last.duration_s)
        return min(warmup + longer + SPARE_S, left)
    missing = completions_needed(terms.load, wl) - pool.completed
    if missing > 0 and not pool.completed:
        return min(2 * (last.drive.stop_s - last.drive.begin_s), left)
    if missing > OPTIMISM * pool.throughput_rps * (left - warmup):
        return 0.0
    short = window - pool.duration_s
    if missing <= 0 and short <= (cycle_of(terms.load, pool.point) or PERIOD_S):
        return 0.0
    wanted = max(plan.window_s, short, 1.1 * missing / max(pool.throughput_rps, 1e-9))
    wanted, _ = _whole_cycles(terms, pool.point, wanted, 0.0)
    return min(warmup + wanted + SPARE_S, left)


def _narrowing_s(pool: WindowPool, terms: Terms, statement: Statement, driven_s: float) -> float:
    """Seconds of a further drive towards the interval that the campaign asks for; 0 for none."""
    plan, estimate = terms.windows, statement.kpis.get(terms.kpi)
    if not plan.interval or estimate is None or terms.kpi in statement.bounded:
        return 0.0
    drive_s, affordable = _another(pool, terms, driven_s)
    floor = terms.variance_floor
    hopes = more_helps(terms.kpi, estimate, plan.interval, len(pool.stretches), affordable, floor)
    return drive_s if hopes else 0.0


def _another(pool: WindowPool, terms: Terms, driven_s: float) -> tuple[float, int]:
    """Seconds of a drive with one more window, and how many of these the time-out allows."""
    plan, response_s = terms.windows, pool.stretches[-1].response_s
    wanted = (window_s(plan, response_s), warmup_s(plan, response_s))
    drive_s = sum(_whole_cycles(terms, pool.point, *wanted)) + SPARE_S
    return drive_s, int((plan.timeout_s - driven_s) / drive_s + 1e-9)
