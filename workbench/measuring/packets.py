"""The judge of packets: what arrived, what was lost, and whether that can be believed.

Nothing answers a packet, so there are no requests and no response times; where packets are stamped
there is their delay, from source to sink, under the same names (`Sample.kpi_definition`). Source
and sink count by the half second; these counts are the batches that intervals are made of
(METHOD.md 6). The checks and their order are those of METHOD.md 4, as far as they apply; what a
source did not send is `source_saturated`, for in an open loop of packets nothing but the source
keeps it from sending.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench.domain.campaign import WindowPlan
from workbench.domain.errors import DataError
from workbench.domain.samples import Estimate, Finding, Remark, Window
from workbench.measuring.delays import state_delays
from workbench.measuring.floor import VarianceFloor
from workbench.measuring.histograms import build
from workbench.measuring.intervals import count_interval, exact_share_interval, log_interval
from workbench.measuring.kpis import measured_by_plugins
from workbench.measuring.records import Drive, Floats, PacketCounts
from workbench.measuring.remarks import THROTTLED_LABEL
from workbench.measuring.steadiness import THROUGHPUT_TREND, trend
from workbench.measuring.stretches import MIN_BATCHES
from workbench.measuring.usage import SINK, SOURCE, Meter, UsagePool
from workbench.measuring.validity import (
    UNSENT_LIMIT,
    busy_finding,
    conntrack_finding,
    host_finding,
    without_competitor,
)
from workbench.measuring.warmup import MIN_COMPLETIONS, MIN_WARMUP_S, warmup_s, window_s

SINK_DROPS_LIMIT = 0.001
"""Share of the packets that the sink may throw away itself: 0.1 % is the floor of losses
(METHOD.md 8), and a fifth of the loss that `capacity` tolerates by default."""
SINK_DROPS_SHARE = 0.1
"""The same, of all that were lost: where the router loses much more, that is what was measured."""
OVERLOADED_LABEL = 0.01
"""Share of packets lost, from which a sample is labelled `overloaded`."""
UNCHARGED_LABEL = 0.05
"""Share of the forwarding work outside of the routers' quota that is worth telling."""
QUOTA_SLACK = 1.1
"""Usage over the allocation that is still the quota's own coarseness."""
TOLERANCE_S = 0.05
"""By which the clock of an interval and that of a drive may differ: a start takes that long."""
_MEGABIT = 1e6 / 8


@dataclass(frozen=True)
class PacketStretch:
    """The window of one drive: its intervals after the warm-up; arrays of shape (k,)."""

    drive: Drive
    counts: PacketCounts
    meter: Meter
    held: np.ndarray

    @classmethod
    def cut(cls, drive: Drive, plan: WindowPlan) -> PacketStretch:
        """Raises `DataError` if nothing is left after the warm-up."""
        counts = drive.packets
        assert counts is not None
        since = drive.begin_s + warmup_s(plan, None) - TOLERANCE_S
        held = (counts.start_s >= since) & (counts.end_s <= drive.stop_s + TOLERANCE_S)
        if not held.any():
            raise DataError(
                f"a drive of {drive.stop_s - drive.begin_s:.2f} s leaves nothing after its warm-up",
                remedy="Drive the point for longer: raise the window or the time-out",
            )
        return cls(drive, counts, Meter(drive), held)

    def column(self, field: str) -> Floats:
        column: Floats = getattr(self.counts, field)[self.held]
        return column

    @cached_property
    def start_s(self) -> float:
        return float(self.column("start_s")[0])

    @cached_property
    def end_s(self) -> float:
        return min(float(self.column("end_s")[-1]), self.drive.stop_s)

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s

    @cached_property
    def delays(self) -> list[Floats]:
        """In s, of the packets sent in each interval; none where nobody stamps them."""
        if self.counts.delays is None:
            return []
        sent_s, delay_s = self.counts.delays
        begins = np.searchsorted(sent_s, self.column("start_s"))
        ends = np.searchsorted(sent_s, self.column("end_s"))
        return [delay_s[i:j] for i, j in zip(begins, ends, strict=True)]

    @cached_property
    def drift(self) -> float | None:
        """Relative change of what arrives between the halves of the window, if there is one."""
        return trend(self.column("received"), THROUGHPUT_TREND)

    def window(self, origin_s: float) -> Window:
        delays = build(np.concatenate(self.delays) if self.delays else np.zeros(0))
        return Window(
            start_s=self.start_s - origin_s,
            duration_s=self.duration_s,
            planned=round(float(self.column("planned").sum())),
            completed=round(float(self.column("received").sum())),
            errors=0,
            unfinished=round(float(self.column("lost").sum())),
            service=delays,
            response=delays,
        )


@dataclass(frozen=True)
class PacketPool(UsagePool):
    """The windows of one visit taken together: all steady, or the last if none is."""

    stretches: Sequence[PacketStretch]
    plan: WindowPlan
    driven_s: float

    def batches(self, field: str) -> Floats:
        return np.concatenate([s.column(field) for s in self.stretches])

    def total(self, field: str) -> float:
        return float(self.batches(field).sum())

    @cached_property
    def seconds(self) -> Floats:
        """Length of each batch."""
        return self.batches("end_s") - self.batches("start_s")

    @cached_property
    def duration_s(self) -> float:
        return float(self.seconds.sum())

    @cached_property
    def loss(self) -> float:
        """Share of the packets sent that did not arrive."""
        numbered = self.total("numbered")
        return self.total("lost") / numbered if numbered else 0.0

    @cached_property
    def dropped_by_sink(self) -> float:
        """Share of what was sent in the drives, warm-up included, that the sink threw away."""
        counts = [s.counts for s in self.stretches]
        numbered = float(sum(c.numbered.sum() for c in counts))
        return sum(c.dropped_by_sink or 0 for c in counts) / numbered if numbered else 0.0

    @cached_property
    def softirq_cores(self) -> float:
        """Cores that deferred kernel work took, in whoever's time."""
        spent = 0.0
        for s in self.stretches:
            at = [c.at_s for c in s.drive.counters]
            total = [c.softirq_s for c in s.drive.counters]
            spent += float(np.diff(np.interp((s.start_s, s.end_s), at, total))[0])
        return spent / sum(s.duration_s for s in self.stretches)


def pool_of(drives: Sequence[Drive], plan: WindowPlan) -> tuple[PacketPool, list[PacketStretch]]:
    """The pool of a visit, and the windows of all its drives."""
    stretches = [PacketStretch.cut(drive, plan) for drive in drives]
    steady = [s for s in stretches if s.drift is None]
    driven_s = sum(drive.stop_s - drive.begin_s for drive in drives)
    return PacketPool(steady or stretches[-1:], plan, driven_s), stretches


# ---------------------------------------------------------------------- KPIs


def state(pool: PacketPool, floor: VarianceFloor, asked: Iterable[str] = ()) -> dict[str, Estimate]:
    """KPIs by name, each with its interval; what cannot be stated is absent.

    Percentiles that are `asked` for are stated beside those that always are.

    `loss_pct` is the share of the packets sent, by their sequence numbers, that did not arrive.
    The variance floor holds for throughput where the router sets it, not where the plan does.
    """
    kpis: dict[str, Estimate] = {}
    received, windows = pool.batches("received"), len(pool.stretches)
    total = float(received.sum())
    rates, rate = received / pool.seconds, total / pool.duration_s
    least = floor.half("throughput_pps", windows) if pool.loss > OVERLOADED_LABEL else 0.0
    throughput = (
        log_interval(rate, rates, least)
        if total and rates.size >= MIN_BATCHES and (rates > 0).all()
        else None
    ) or count_interval(round(total), rates, pool.duration_s)
    kpis["throughput_pps"] = throughput
    megabits = pool.stretches[0].counts.size_bytes / _MEGABIT
    kpis["goodput_mbps"] = Estimate(
        throughput.value * megabits, throughput.low * megabits, throughput.high * megabits
    )
    numbered, lost = pool.batches("numbered"), pool.batches("lost")
    if numbered.sum():
        shares = np.divide(lost, numbered, out=np.full(lost.size, np.nan), where=numbered > 0)
        share = exact_share_interval(pool.loss, round(float(numbered.sum())), shares)
        kpis["loss_pct"] = Estimate(100 * share.value, 100 * share.low, 100 * share.high)
    jitter = pool.batches("jitter_s")[received > 0] * 1e3
    jitter = jitter[np.isfinite(jitter)]
    if jitter.size:
        wandering = log_interval(float(jitter.mean()), jitter, floor.half("jitter_ms", windows))
        if wandering is not None:
            kpis["jitter_ms"] = wandering
    batches = [batch for s in pool.stretches for batch in s.delays]
    kpis |= state_delays(batches, floor, windows, asked)
    return kpis | measured_by_plugins(pool, "packets")


# ---------------------------------------------------------------------- validity


def examine(pool: PacketPool) -> tuple[Finding, ...]:
    """All findings, in the order of METHOD.md 4."""
    return tuple(found for check in CHECKS if (found := check(pool)) is not None)


def source_saturated(pool: PacketPool) -> Finding | None:
    busy = busy_finding(pool, SOURCE, "source_saturated")
    planned, sent = pool.total("planned"), pool.total("sent")
    if busy is not None or not planned or sent >= (1 - UNSENT_LIMIT) * planned:
        return busy
    return Finding(
        "source_saturated",
        sent / planned,
        1 - UNSENT_LIMIT,
        f"{sent:.0f} packets left the source, {planned:.0f} were due",
    )


def sink_saturated(pool: PacketPool) -> Finding | None:
    limit = max(SINK_DROPS_LIMIT, SINK_DROPS_SHARE * pool.loss)
    if pool.dropped_by_sink > limit:
        return Finding(
            "sink_saturated",
            pool.dropped_by_sink,
            limit,
            f"the sink's socket was full for {pool.dropped_by_sink:.2%} of the packets "
            "(RcvbufErrors of its /proc/net/snmp)",
        )
    return busy_finding(pool, SINK, "sink_saturated")


def host_saturated(pool: PacketPool) -> Finding | None:
    return host_finding(without_competitor(pool.usage))


def too_few(pool: PacketPool) -> Finding | None:
    seen = pool.total("numbered")
    if seen >= MIN_COMPLETIONS:
        return None
    return Finding(
        "too_few",
        seen,
        MIN_COMPLETIONS,
        f"{seen:.0f} packets were sent in {pool.duration_s:.1f} s of steady load, "
        f"{MIN_COMPLETIONS} are needed",
    )


def unsteady(pool: PacketPool) -> Finding | None:
    change = pool.stretches[-1].drift
    if change is None:
        return None
    return Finding(
        "unsteady",
        pool.driven_s,
        pool.plan.timeout_s,
        f"no window was steady in {pool.driven_s:.1f} s of load; in the last one what arrived "
        f"changed by {change:+.0%} from its first half to its second",
    )


CHECKS: tuple[Callable[[PacketPool], Finding | None], ...] = (
    source_saturated,
    sink_saturated,
    host_saturated,
    conntrack_finding,
    too_few,
    unsteady,
)


# ---------------------------------------------------------------------- remarks


def remark(pool: PacketPool, source_blamed: bool) -> tuple[Remark, ...]:
    """What is worth knowing and does not invalidate."""
    found = (throttled(pool), None if source_blamed else overloaded(pool), uncharged_cpu(pool))
    return tuple(earned for earned in found if earned is not None)


def throttled(pool: PacketPool) -> Remark | None:
    """A function that stood still; not one that ran beyond its quota all the same, as kernel
    threads do (`uncharged_cpu`)."""
    held = {name: used for name, used in pool.functions.items() if used.cpu_share <= QUOTA_SLACK}
    if not held:
        return None
    name, used = max(held.items(), key=lambda item: item[1].throttled_share)
    if used.throttled_share <= THROTTLED_LABEL:
        return None
    return Remark(
        "throttled",
        used.throttled_share,
        f"{name} stood still in {used.throttled_share:.0%} of its quota periods",
    )


def overloaded(pool: PacketPool) -> Remark | None:
    if pool.loss <= OVERLOADED_LABEL:
        return None
    out_of_order = sum(s.counts.out_of_order for s in pool.stretches)
    return Remark(
        "overloaded",
        pool.loss,
        f"{pool.total('lost'):.0f} of {pool.total('numbered'):.0f} packets did not arrive, "
        f"{out_of_order} came out of order{_places(pool)}",
    )


def _places(pool: PacketPool) -> str:
    """Where packets were dropped, warm-up included, the most first; empty where nobody knows."""
    dropped: Counter[str] = Counter()
    for stretch in pool.stretches:
        dropped.update(stretch.counts.dropped_at)
        dropped["sink: socket"] += stretch.counts.dropped_by_sink or 0
    told = [f"{count} at {place}" for place, count in dropped.most_common() if count]
    return f"; dropped were, warm-up included, {', '.join(told)}" if told else ""


def uncharged_cpu(pool: PacketPool) -> Remark | None:
    """The share of the forwarding work that the routers' quotas do not catch, at most.

    The kernel forwards in whatever context a packet arrives in: that of the sender, that of an
    interrupt, or that of the router's own threads (`labs.docker.forwarding`). Only the last is
    charged to the router. The rest is in the softirq time of the host, which holds the delivery
    to the sink as well, so the share is an upper bound. What is charged beyond the quota was not
    caught by it either: Linux 6.18 throttles a task where it returns to user space, which a kernel
    thread never does.
    """
    routers = [name for name in pool.stretches[0].drive.routers if name in pool.usage]
    charged = sum(pool.usage[name].cpu_cores for name in routers)
    elsewhere = pool.softirq_cores
    if not routers or elsewhere <= 0:
        return None
    beyond = sum(
        used.cpu_cores * (1 - 1 / used.cpu_share)
        for used in (pool.usage[name] for name in routers)
        if used.cpu_share > QUOTA_SLACK
    )
    share = (elsewhere + beyond) / (elsewhere + charged)
    if share <= UNCHARGED_LABEL:
        return None
    return Remark(
        "uncharged_cpu",
        share,
        f"{', '.join(routers)} was charged {charged:.3f} cores, {beyond:.3f} of them beyond the "
        f"quota; {elsewhere:.3f} cores of kernel network work (softirq of /proc/stat) ran in the "
        "time of others",
    )


# ---------------------------------------------------------------------- what next


def next_drive_s(pool: PacketPool, last: PacketStretch) -> float:
    """Seconds of the next drive; 0 if the sample has all it needs, or more would not help."""
    plan = pool.plan
    left, warmup = plan.timeout_s - pool.driven_s, warmup_s(plan, None)
    if left < warmup + MIN_WARMUP_S:
        return 0.0
    if last.drift is not None:
        return min(warmup + max(window_s(plan, None), 1.5 * last.duration_s), left)
    short = window_s(plan, None) - pool.duration_s
    missing = MIN_COMPLETIONS - pool.total("numbered")
    rate = pool.total("planned") / pool.duration_s
    if short <= 2 * TOLERANCE_S and missing <= 0:
        return 0.0
    return min(warmup + max(plan.window_s, short, 1.1 * missing / max(rate, 1e-9)), left)
