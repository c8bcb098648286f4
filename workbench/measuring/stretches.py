"""The steady stretch of one drive: a window, with the figures of its batches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from workbench.domain.campaign import WindowPlan
from workbench.domain.errors import DataError
from workbench.domain.load_shapes import whole
from workbench.domain.parameters import LoadModel
from workbench.domain.samples import LatencyHistogram, Window
from workbench.measuring.censoring import Distribution
from workbench.measuring.correlation import PARTS
from workbench.measuring.cycles import batch_edges
from workbench.measuring.flow import PERIOD_S, Flow, period_edges
from workbench.measuring.histograms import add_up, bucket_of, build, count, from_dense
from workbench.measuring.intervals import t_quantile
from workbench.measuring.lag import SendLag, send_lag
from workbench.measuring.records import NO_STATUS, Drive, Floats, Integers, RequestRecords
from workbench.measuring.stalls import Stall, find_stall
from workbench.measuring.steadiness import IN_FLIGHT_TREND, THROUGHPUT_TREND, growth, trend
from workbench.measuring.usage import Meter
from workbench.measuring.warmup import steady_from, warmup_s

BATCH_PERIODS = 5
"""A batch is at least 0.5 s (METHOD.md 1)."""
MIN_BATCHES = 6
MAX_BATCHES = 10
OVERLOAD_SHARE = 0.01
"""Share of the planned rate by which the backlog has to grow before a point is overloaded."""

Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class Parts:
    """A window in parts, `PARTS` of each batch: what tells whether neighbours are alike.

    Attributes
    ----------
    counts : array of shape (n, buckets), latencies by part and bucket (`histograms`).
    succeeded : array of shape (n,), answers that ended in the part.
    """

    counts: Floats
    succeeded: Floats


@dataclass(frozen=True)
class Stretch:
    """One window. Arrays have shape (k,): one figure per batch, batches being whole periods.

    What *ended* in the window (`succeeded`, `errors`, `timed_out`, `body_bytes`) gives rates; what
    was *planned* in it (`planned`, `responses`, `errors_of_planned`, `unfinished`) gives
    latencies. In a steady window both describe the same requests but for those at its rims.
    """

    drive: Drive
    meter: Meter
    start_s: float
    end_s: float
    response_s: float | None
    """Mean time from send to end over the drive; None if nothing ended."""
    warmed: bool
    """The drive was long enough for the warm-up that its response time asks for."""
    planned: Floats
    succeeded: Floats
    errors: Floats
    timed_out: Floats
    body_bytes: Floats
    in_flight: Floats
    busy_s: float
    """Sum of send-to-end times of everything that ended in the window."""
    responses: tuple[Distribution, ...]
    parts: Parts
    errors_of_planned: Floats
    """Errors among the planned; unlike time-outs, they are not in `responses`."""
    unfinished: int
    overdue: int
    """Never ended, but had waited for the whole time-out when the load stopped."""
    service_histogram: LatencyHistogram
    response_histogram: LatencyHistogram
    backlog_rps: float
    """Growth of what is due but not ended; 0 in a closed loop."""
    backlog_error_rps: float
    lag: SendLag
    trends: tuple[str, ...]
    stall: Stall | None
    """A pause of the whole host."""
    watched_s: float = PERIOD_S
    """Length of the bins in which the backlog is watched: a cycle, where the rate varies."""

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s

    @property
    def batch_s(self) -> float:
        return self.duration_s / self.planned.size

    @property
    def steady(self) -> bool:
        return self.warmed and not self.trends and self.stall is None

    @cached_property
    def ended(self) -> int:
        return int(self.succeeded.sum() + self.errors.sum() + self.timed_out.sum())

    def window(self, origin_s: float) -> Window:
        """As stored: `completed` and `errors` ended in it, the others were planned in it."""
        return Window(
            start_s=self.start_s - origin_s,
            duration_s=self.duration_s,
            planned=int(self.planned.sum()),
            completed=int(self.succeeded.sum()),
            errors=int(self.errors.sum()),
            unfinished=self.unfinished,
            service=self.service_histogram,
            response=self.response_histogram,
        )


def backlog_margin_rps(error_rps: float, duration_s: float, bin_s: float = PERIOD_S) -> float:
    """Half width of the 95 % interval of a backlog's growth; `growth` has a bin per period."""
    bins = round(duration_s / bin_s)
    return t_quantile(bins - 2) * error_rps if bins > 2 else float("inf")


def overloaded(
    backlog_rps: float,
    error_rps: float,
    planned_rps: float,
    duration_s: float,
    bin_s: float = PERIOD_S,
) -> bool:
    """Whether the backlog of an open loop is shown to grow, by more than `OVERLOAD_SHARE`."""
    margin = backlog_margin_rps(error_rps, duration_s, bin_s)
    return backlog_rps > max(margin, OVERLOAD_SHARE * planned_rps)


def cut(drive: Drive, load: LoadModel, plan: WindowPlan, cycle_s: float = 0.0) -> Stretch:
    """Cut the steady stretch out of a drive; where its rate varies, of whole cycles.

    Raises
    ------
    DataError
        If the drive has no whole quota period after its warm-up, or its counters are unusable.
    """
    flow, records = Flow(drive), drive.records
    meter = Meter(drive)
    service = records.end_s - records.start_s
    ended = np.isfinite(service)
    response_s = float(service[ended].mean()) if ended.any() else None
    paced = load.unit == "streams"  # by movies, in overload too
    wanted = warmup_s(plan, None if paced else response_s)
    allowed = (drive.stop_s - drive.begin_s) / 2
    edges, batches = _cut_at(flow, min(wanted, allowed), response_s or 0.0, cycle_s)
    start, end, k = float(batches[0]), float(batches[-1]), batches.size - 1
    watched_s = cycle_s or PERIOD_S

    timed_out = _timed_out(drive, plan.request_timeout_s)
    failed = records.finished & ~records.succeeded & ~timed_out
    in_window = (records.end_s >= start) & (records.end_s < end)
    by_end = _batch(np.where(in_window, records.end_s, start), batches)

    def ended_per_batch(which: Booleans, weights: Floats | None = None) -> Floats:
        chosen = which & in_window
        weight = None if weights is None else weights[chosen]
        return np.bincount(by_end[chosen], weights=weight, minlength=k).astype(float)

    held = (records.planned_s >= start) & (records.planned_s < end)
    by_plan = _batch(records.planned_s[held], batches)
    planned = np.bincount(by_plan, minlength=k).astype(float)
    succeeded = ended_per_batch(records.succeeded)
    in_flight = flow.in_flight(batches)

    backlog, backlog_error = _backlog(flow, load, edges, watched_s)
    over = (backlog_error, float(planned.sum()) / (end - start), end - start, watched_s)
    growing, draining = overloaded(backlog, *over), overloaded(-backlog, *over)
    origin = records.planned_s if drive.kpi_definition == "planned" else records.start_s
    part_edges = np.linspace(start, end, PARTS * k + 1)
    counts, responses, response_histogram = _latencies(
        drive, origin, held, part_edges, failed, timed_out
    )
    answers = _batch(records.end_s[records.succeeded & in_window], part_edges)
    parts = Parts(counts, np.bincount(answers, minlength=PARTS * k).astype(float))
    service_histogram = response_histogram
    if not np.array_equal(origin[held], records.start_s[held]):
        sent = records.start_s
        *_, service_histogram = _latencies(drive, sent, held, part_edges, failed, timed_out)
    return Stretch(
        drive=drive,
        meter=meter,
        start_s=start,
        end_s=end,
        response_s=response_s,
        warmed=wanted <= allowed + PERIOD_S,
        planned=planned,
        succeeded=succeeded,
        errors=ended_per_batch(failed),
        timed_out=ended_per_batch(timed_out),
        body_bytes=ended_per_batch(records.succeeded, records.bytes.astype(float)),
        in_flight=in_flight,
        busy_s=float(service[in_window & ended].sum()),
        responses=responses,
        parts=parts,
        errors_of_planned=np.bincount(by_plan[failed[held]], minlength=k).astype(float),
        unfinished=int(np.count_nonzero((~records.finished | timed_out)[held])),
        overdue=int(np.count_nonzero(timed_out & ~records.finished)),
        service_histogram=service_histogram,
        response_histogram=response_histogram,
        backlog_rps=backlog,
        backlog_error_rps=backlog_error,
        lag=_send_lag(drive, load, held, (start, end)),
        trends=() if paced else _trends(succeeded, in_flight, growing, draining),
        stall=find_stall(flow, meter, start, end, cycle_s > 0),
        watched_s=watched_s,
    )


def _backlog(flow: Flow, load: LoadModel, edges: Floats, bin_s: float) -> tuple[float, float]:
    """Growth of what is due but not ended, and its error; 0 in a closed loop."""
    return growth(flow.in_system(edges), bin_s) if load.kind == "open" else (0.0, 0.0)


def _send_lag(drive: Drive, load: LoadModel, held: Booleans, rims: tuple[float, float]) -> SendLag:
    """Who held requests back, of those that were `held` by the window; nobody in a closed loop."""
    if load.kind != "open":
        return SendLag(int(np.count_nonzero(held)), 0, 0, 0)
    service = drive.records.end_s - drive.records.start_s
    ended = np.isfinite(service)
    return send_lag(drive, *rims, float(service[ended].mean()) if ended.any() else 0.0)


def _cut_at(flow: Flow, warmup: float, response_s: float, cycle_s: float) -> tuple[Floats, Floats]:
    """Edges of the bins in which load is watched, and of batches; both whole cycles, if any."""
    drive = flow.drive
    if not cycle_s:
        return _edges(steady_from(flow, warmup), drive, response_s)
    start = drive.begin_s + whole(warmup, cycle_s)
    batches = batch_edges(start, drive.stop_s, cycle_s, BATCH_PERIODS * PERIOD_S)
    if batches.size < 2:
        raise DataError(
            f"a drive of {drive.stop_s - drive.begin_s:.2f} s leaves no whole cycle of "
            f"{cycle_s:g} s after its warm-up",
            remedy="Drive the point for longer: raise the time-out, or shorten the cycle",
        )
    cycles = round((batches[-1] - batches[0]) / cycle_s)
    return np.linspace(batches[0], batches[-1], cycles + 1), batches


def _edges(start_s: float, drive: Drive, response_s: float) -> tuple[Floats, Floats]:
    """Edges of periods and of batches; periods that fill no batch are left out at the start."""
    periods = period_edges(start_s, drive.stop_s)
    n = periods.size - 1
    if n < 1:
        raise DataError(
            f"a drive of {drive.stop_s - drive.begin_s:.2f} s leaves nothing after its warm-up",
            remedy="Drive the point for longer: raise the window or the time-out",
        )
    # Batches of two response times and more, so that each has its own requests.
    long = min(int(np.ceil(2 * response_s / PERIOD_S)), n // MIN_BATCHES)
    size = min(n, max(BATCH_PERIODS, n // MAX_BATCHES, long))
    first = n % size
    return periods[first:], periods[first::size]


def _batch(instants: Floats, edges: Floats) -> Integers:
    width = (edges[-1] - edges[0]) / (edges.size - 1)
    batch: Integers = np.clip(((instants - edges[0]) / width).astype(np.int64), 0, edges.size - 2)
    return batch


def _timed_out(drive: Drive, timeout_s: float) -> Booleans:
    """Requests that the generator gave up, or that had waited as long when the load stopped."""
    records = drive.records
    waited = np.where(records.finished, records.end_s, drive.stop_s) - records.start_s
    out: Booleans = (records.status == NO_STATUS) & (waited >= 0.99 * timeout_s)
    return out


def _latencies(
    drive: Drive,
    origin: Floats,
    held: Booleans,
    edges: Floats,
    failed: Booleans,
    timed_out: Booleans,
) -> tuple[Floats, tuple[Distribution, ...], LatencyHistogram]:
    """Latencies by part and by batch, counted from `origin`; errors are no answers, have none.

    `edges` are of the parts, in s.
    """
    records: RequestRecords = drive.records
    part, k = _batch(records.planned_s[held], edges), edges.size // PARTS
    until = np.where(records.finished, records.end_s, drive.stop_s)
    latency = (until - origin)[held]
    usable = np.isfinite(latency) & ~failed[held]
    latency, part = np.maximum(latency[usable], 0.0), part[usable]
    answered = (records.finished & ~timed_out)[held][usable]
    bucket = bucket_of(latency)
    if not latency.size:
        empty, none = np.zeros(0), np.zeros(PARTS * k)
        return none[:, None], (Distribution(empty, empty, empty, empty),) * k, build(empty)
    buckets = int(bucket.max()) + 1
    by_part = (PARTS * k, buckets)
    done = (bucket[answered], part[answered])
    waits = (bucket[~answered], part[~answered])
    finished, censored = count(*done, by_part), count(*waits, by_part)
    batches = (k, PARTS, buckets)
    by_batch = (
        finished.reshape(batches).sum(axis=1),
        censored.reshape(batches).sum(axis=1),
        add_up(latency[answered], done[0], done[1] // PARTS, (k, buckets)),
        add_up(latency[~answered], waits[0], waits[1] // PARTS, (k, buckets)),
    )
    per_batch = tuple(Distribution(*rows) for rows in zip(*by_batch, strict=True))
    histogram = from_dense(by_batch[0].sum(axis=0), by_batch[1].sum(axis=0))
    return finished + censored, per_batch, histogram


def _trends(succeeded: Floats, in_flight: Floats, growing: bool, draining: bool) -> tuple[str, ...]:
    """Sentences on what changes in the window.

    A backlog that grows is what overload is; then only the throughput has to be steady. One that
    shrinks is left from the start, and what is answered of it was never offered at this rate.
    """
    sentences = []
    if draining:
        sentences.append("a backlog from the start is still worked off")
    if (change := trend(succeeded, THROUGHPUT_TREND)) is not None:
        sentences.append(f"throughput changes by {change:+.0%} between the halves")
    if not growing and (change := trend(in_flight, IN_FLIGHT_TREND)) is not None:
        sentences.append(f"requests in flight change by {change:+.0%} between the halves")
    return tuple(sentences)
