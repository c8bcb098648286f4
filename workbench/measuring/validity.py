"""A sample is valid or says why not: the checks of METHOD.md 4, in its order.

Each check is a small function from the pooled windows to a `Finding` or None.

Who is blamed in an open loop
    Only the source's own lateness invalidates. A request that was late although a connection was
    free counts against the source (`lag`); one that waited while all connections were busy is the
    function's backlog, which is what overload looks like, and stays a valid observation.
One cause, one name
    A source that runs out of CPU sends too little and breaks Little's law in the same breath.
    Where counters or send lag show that cause, the shortfall is reported as `source_saturated`
    alone; `little` is for a shortfall that nothing explains, and for latencies that are too long
    to be true (ratio above 1.05), which no shortage at the source explains. A request that was
    given up held its client for at least its time-out, and nobody knows for how much longer: a
    shortfall beside `timeout` is explained by it. Where the whole host stood still (`stalls`)
    nobody is late but the host: the sample is `unsteady`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from workbench.domain.campaign import WindowPlan
from workbench.domain.competitors import COMPETITOR
from workbench.domain.load_shapes import cycles_needed
from workbench.domain.samples import Bypass, Finding, Reason, Usage
from workbench.measuring.cycles import cycle_of
from workbench.measuring.flow import PERIOD_S
from workbench.measuring.pool import WindowPool
from workbench.measuring.stretches import BATCH_PERIODS, MIN_BATCHES
from workbench.measuring.usage import HOST, SINK, SOURCE, UsagePool
from workbench.measuring.warmup import completions_needed

LITTLE_LOW, LITTLE_HIGH = 0.95, 1.05
UNSENT_LIMIT = 0.01
LATE_LIMIT = 0.05
THREAD_LIMIT = 0.80
ALLOCATION_LIMIT = 0.90
THROTTLED_LIMIT = 0.50
HOST_LIMIT = 0.85
BYPASS_LIMIT = 0.70
CONNTRACK_LIMIT = 0.80
ERROR_LIMIT = 0.01
TIMEOUT_LIMIT = 0.01


@dataclass(frozen=True)
class ValidityInputs:
    """What is judged, and by which limits."""

    pool: WindowPool
    plan: WindowPlan
    driven_s: float
    """Lab time spent on driving load, warm-up included."""
    bypass: Bypass | None = None

    @property
    def stalled(self) -> bool:
        """The whole host stood still in one of the windows."""
        return any(s.stall is not None for s in self.pool.stretches)


Check = Callable[[ValidityInputs], Finding | None]


def examine(case: ValidityInputs) -> tuple[Finding, ...]:
    """All findings, in the order in which they are reported."""
    return tuple(finding for check in CHECKS if (finding := check(case)) is not None)


def little(case: ValidityInputs) -> Finding | None:
    """Throughput, response time and clients do not fit together; or too little was sent."""
    return _little_open(case) if case.pool.load.kind == "open" else _little_closed(case)


def _little_closed(case: ValidityInputs) -> Finding | None:
    pool = case.pool
    if pool.load.unit == "streams":
        return None  # a player is not always waiting for an answer
    clients = int(pool.point.wl)
    enough = pool.ended >= completions_needed(pool.load, pool.point.wl)
    if pool.service_s is None or not enough:
        return None  # a handful of requests decides nothing; `too_few` says so
    rate = pool.ended / pool.duration_s
    cycle = pool.service_s + pool.load.think_time_s
    ratio = rate * cycle / clients
    # Clients that think in step end a request more or less each, by where the window begins.
    step = cycle / pool.duration_s if pool.load.think_time_s else 0.0
    if LITTLE_LOW - step <= ratio <= LITTLE_HIGH + step:
        return None
    if ratio < LITTLE_LOW and (_source_busy(case) is not None or timeout(case) is not None):
        return None
    thinks = " with think time" if pool.load.think_time_s else ""
    return Finding(
        "little",
        ratio,
        LITTLE_LOW if ratio < LITTLE_LOW else LITTLE_HIGH,
        f"{rate:.1f} requests/s of {cycle * 1e3:.3g} ms each{thinks} account for "
        f"{rate * cycle:.3g} clients, {clients} were asked for",
    )


def _little_open(case: ValidityInputs) -> Finding | None:
    lag = [s.lag for s in case.pool.stretches]
    unsent, planned = sum(part.unsent_by_source for part in lag), case.pool.planned
    if case.stalled:
        return None
    if unsent <= UNSENT_LIMIT * planned or source_saturated(case) is not None:
        return None
    return Finding(
        "little",
        1 - unsent / planned,
        1 - UNSENT_LIMIT,
        f"{unsent} of {planned} planned requests were not sent although a connection was free",
    )


def source_saturated(case: ValidityInputs) -> Finding | None:
    """The source's thread, its allocation, or its punctuality is at its limit."""
    busy = _source_busy(case)
    if busy is not None:
        return busy
    late = sum(s.lag.late_by_source for s in case.pool.stretches)
    if case.stalled or late <= LATE_LIMIT * case.pool.planned:
        return None
    return Finding(
        "source_saturated",
        late / case.pool.planned,
        LATE_LIMIT,
        f"{late} of {case.pool.planned} planned requests were late although a connection was free",
    )


def sink_saturated(case: ValidityInputs) -> Finding | None:
    return _busy(case, SINK, "sink_saturated")


def host_saturated(case: ValidityInputs) -> Finding | None:
    # A neighbour comes and goes; and time in which the whole host stood still is nobody's CPU.
    awake = [s for s in case.pool.stretches if s.stall is None]
    windows = (without_competitor(s.meter.usage(s.start_s, s.end_s)) for s in awake)
    host = max(windows, key=lambda used: used.cpu_share, default=None)
    return host_finding(host) if host is not None else None


def host_finding(host: Usage) -> Finding | None:
    if host.cpu_share <= HOST_LIMIT:
        return None
    return Finding(
        "host_saturated",
        host.cpu_share,
        HOST_LIMIT,
        f"the host was busy with {host.cpu_cores:.2f} cores, {host.cpu_share:.0%} of what it has",
    )


def without_competitor(usage: Mapping[str, Usage]) -> Usage:
    """The host's usage less that of a competitor: what it takes was asked for."""
    host, rival = usage[HOST], usage.get(COMPETITOR)
    if rival is None or not host.cpu_cores:
        return host
    left = max(0.0, host.cpu_cores - rival.cpu_cores)
    return replace(host, cpu_cores=left, cpu_share=host.cpu_share * left / host.cpu_cores)


def bypass_limited(case: ValidityInputs) -> Finding | None:
    """Source and sink could not do much more than this without the functions either.

    Clients that think ask for no more than n / Z on either path: that says nothing of what source
    and sink could do, and their own checks stand alone.
    """
    if case.bypass is None or case.pool.load.think_time_s:
        return None
    rate, most = case.pool.throughput_rps, case.bypass.throughput_rps
    if rate <= BYPASS_LIMIT * most:
        return None
    clients = f" with {case.pool.point.wl:g} clients" if case.pool.load.kind == "closed" else ""
    return Finding(
        "bypass_limited",
        rate / most,
        BYPASS_LIMIT,
        f"{rate:.0f} requests/s are {rate / most:.0%} of the {most:.0f} that source and sink "
        f"carried{clients} without the functions",
    )


def conntrack_full(case: ValidityInputs) -> Finding | None:
    return conntrack_finding(case.pool)


def conntrack_finding(pool: UsagePool) -> Finding | None:
    """The host's table of connections filled up: what it drops looks like the function's loss."""
    seen = [
        (c.conntrack_used / c.conntrack_limit, c.at_s - drive.begin_s, c)
        for drive in (s.drive for s in pool.stretches)
        for c in drive.counters
        if c.conntrack_limit
    ]
    share, at_s, counters = max(seen, key=lambda entry: entry[0], default=(0.0, 0.0, None))
    if counters is None or share <= CONNTRACK_LIMIT:
        return None
    return Finding(
        "conntrack_full",
        share,
        CONNTRACK_LIMIT,
        f"the connection table held {counters.conntrack_used} of {counters.conntrack_limit} "
        f"entries, {share:.0%}, {at_s:.1f} s after the load began",
    )


def errors(case: ValidityInputs) -> Finding | None:
    pool = case.pool
    answers = pool.completed + pool.errors
    if not answers or pool.errors <= ERROR_LIMIT * answers:
        return None
    return Finding(
        "errors",
        pool.errors / answers,
        ERROR_LIMIT,
        f"{pool.errors} of {answers} requests were refused, cut off or answered with an error",
    )


def timeout(case: ValidityInputs) -> Finding | None:
    pool = case.pool
    overdue = sum(s.overdue for s in pool.stretches)
    late = pool.total("timed_out") + overdue
    seen = pool.ended + overdue
    if not seen or late <= TIMEOUT_LIMIT * seen:
        return None
    return Finding(
        "timeout",
        late / seen,
        TIMEOUT_LIMIT,
        f"{late} of {seen} requests had no answer after {case.plan.request_timeout_s:g} s",
    )


def too_few(case: ValidityInputs) -> Finding | None:
    """Too few answers, or a window too short for six batches of whole quota periods."""
    pool = case.pool
    needed = completions_needed(pool.load, pool.point.wl)
    if pool.completed < needed:
        return Finding(
            "too_few",
            pool.completed,
            needed,
            f"{pool.completed} requests were answered in {pool.duration_s:.1f} s of steady load, "
            f"{needed} are needed",
        )
    cycle_s = cycle_of(pool.load, pool.point)
    least = cycles_needed(cycle_s) if cycle_s else MIN_BATCHES
    if pool.k >= least or not pool.stretches[-1].steady:
        return None
    shortest = least * max(cycle_s, BATCH_PERIODS * PERIOD_S)
    return Finding(
        "too_few",
        pool.duration_s,
        shortest,
        f"{pool.duration_s:.1f} s of steady load make {pool.k} batches, {least} are needed: "
        f"{shortest:g} s",
    )


def unsteady(case: ValidityInputs) -> Finding | None:
    last = case.pool.stretches[-1]
    if last.steady:
        return None
    stall = [last.stall.evidence] if last.stall else []
    why = "; ".join([*stall, *last.trends]) or (
        f"three response times of {last.response_s or 0:.1f} s did not fit into its warm-up"
    )
    return Finding(
        "unsteady",
        case.driven_s,
        case.plan.timeout_s,
        f"no window was steady in {case.driven_s:.1f} s of load; in the last one: {why}",
    )


CHECKS: tuple[Check, ...] = (
    little,
    source_saturated,
    sink_saturated,
    host_saturated,
    bypass_limited,
    conntrack_full,
    errors,
    timeout,
    too_few,
    unsteady,
)


def _source_busy(case: ValidityInputs) -> Finding | None:
    return _busy(case, SOURCE, "source_saturated")


def _busy(case: ValidityInputs, name: str, reason: Reason) -> Finding | None:
    """As `busy_finding`, or its quota mostly used up to the end."""
    found, used = busy_finding(case.pool, name, reason), case.pool.usage.get(name)
    if found is not None or used is None or used.throttled_share <= THROTTLED_LIMIT:
        return found
    return Finding(
        reason,
        used.throttled_share,
        THROTTLED_LIMIT,
        f"the {name} used up its quota in {used.throttled_share:.0%} of the periods",
    )


def busy_finding(pool: UsagePool, name: str, reason: Reason) -> Finding | None:
    """A thread of source or sink over 80 % of a core, or its allocation over 90 %."""
    for stretch in pool.stretches:
        busiest = stretch.meter.busiest_thread(name, stretch.start_s, stretch.end_s)
        if busiest is not None and busiest[1] > THREAD_LIMIT:
            thread, cores = busiest
            return Finding(
                reason,
                cores,
                THREAD_LIMIT,
                f"thread {thread} of the {name} ran {cores:.0%} of time",
            )
    used = pool.usage.get(name)
    if used is None or used.cpu_share <= ALLOCATION_LIMIT:
        return None
    return Finding(
        reason,
        used.cpu_share,
        ALLOCATION_LIMIT,
        f"the {name} used {used.cpu_cores:.2f} cores, {used.cpu_share:.0%} of its allocation",
    )
