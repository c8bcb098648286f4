"""What was measured: samples, their windows, usage and validity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from workbench.domain.observations import Observation
from workbench.domain.parameters import OperatingPoint

KpiDefinition = Literal["request", "planned", "time-weighted", "one-way", "half-round-trip", "none"]
"""From when latency counts: the request's own start, its planned time, or neither (METHOD.md 3). Of
packets, whose clocks: from source to sink on one clock (`one-way`), or half of the way there and
back on the source's (`half-round-trip`)."""

Reason = Literal[
    "little",
    "source_saturated",
    "sink_saturated",
    "host_saturated",
    "bypass_limited",
    "conntrack_full",
    "mirror_lost",
    "competitor_failed",
    "stream_failed",
    "site_alert",
    "errors",
    "timeout",
    "too_few",
    "unsteady",
    "not_measured",
    "rejected",
]
"""Why a sample is not valid (METHOD.md 4), in the order in which they are reported; `rejected`, by
somebody who looked at it, stands before all others. `mirror_lost`: copies for a passive function
were lost on their way. `competitor_failed`: who was to compete did not, or not all the time.
`stream_failed`: a movie ended, its playlist was none or stood still, or the players' log is no
whole one. `site_alert`: an alert of the site's Prometheus fired meanwhile. `not_measured`: a
recording has nothing at that point; figures that such a sample states are interpolated, and nothing
rests on them."""

Label = Literal[
    "throttled",
    "quota_jump",
    "stall_200ms",
    "bypass_share",
    "not_cpu_limited",
    "backlog",
    "overloaded",
    "censored",
    "uncharged_cpu",
    "correlated",
    "site_metric",
    "split_off",
]
"""What is worth knowing of a sample and does not invalidate it (METHOD.md 4 and 5):

`throttled`: quota periods in which the function stood still; `quota_jump`: so many requests meet a
quota gap that p95 lies on it or beside it; `stall_200ms`: retransmission time-outs show as a mode
near 200 ms; `bypass_share`: what the path without the function takes of the response time;
`not_cpu_limited`: saturated at usage under 90 % of the allocation; `backlog`, `overloaded`: what
waits for a connection, and what grows; `censored`: a response time is only known from below;
`uncharged_cpu`: CPU time of forwarding that the quota of a router does not catch, as a share;
`correlated`: neighbouring stretches are so much alike that its batches are worth fewer than three;
`site_metric`: a metric of the site could not be had, or was no figure of its windows; `split_off`:
a branch got another share of the traffic than was asked.
"""

TrialPurpose = Literal["canary", "verification", "greedy"]
Purpose = Literal["profile", TrialPurpose]
"""What a sample was taken for: by a campaign's sampler (`profile`), or as a trial that somebody
asked for after the campaign. Stand-alone profiles learn from the first only."""

UNBOUNDED = 1e12
"""Stands for a response time that grows for as long as one watches: the function is loaded beyond
what it carries, and has none. No such figure was ever measured."""
OVERLOAD = "overload: grows without bound"
"""How such a figure is told."""


def is_unbounded(value: float) -> bool:
    """Whether a figure stands for one that grows without bound, through logarithms and back."""
    return value >= 0.5 * UNBOUNDED


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval; `low == high == value` is never written for a guess."""

    value: float
    low: float
    high: float

    @property
    def unbounded(self) -> bool:
        """Whether it is the forecast of an overload, which has no value."""
        return is_unbounded(self.value)


@dataclass(frozen=True)
class Usage:
    """What one VNF, the source, the sink or the host consumed while a window ran.

    `cpu_cores` is a mean over the window; `cpu_share` is that over its allocation (0-1).
    """

    cpu_cores: float
    cpu_share: float
    throttled_share: float = 0.0
    """Throttled quota periods over all periods."""
    throttled_s: float = 0.0
    memory_bytes: float = 0.0
    rx_mbps: float = 0.0
    tx_mbps: float = 0.0
    threads: int = 0
    """Worker threads that the function was configured with; 0 where unknown."""


@dataclass(frozen=True)
class Finding:
    """One check that failed, with the figure that broke the limit and where it was read."""

    reason: Reason
    figure: float
    limit: float
    evidence: str
    """A sentence: which thread, which counter."""


@dataclass(frozen=True)
class Remark:
    """A label with the figure that earned it and where that was read."""

    label: Label
    figure: float
    evidence: str
    """A sentence: which component, which counter."""


@dataclass(frozen=True)
class Bypass:
    """The same load from source to sink without the functions, read off the bypass curve."""

    throughput_rps: float
    """The most that source and sink carried between them."""
    mean_ms: float
    p95_ms: float


@dataclass(frozen=True)
class LatencyHistogram:
    """Counts over log buckets of at most 1 %: bucket i holds [g**i, g**(i+1)) microseconds.

    Mergeable by adding counts. `censored` counts requests that never finished, by the bucket of
    the time they had waited.
    """

    growth: float
    buckets: tuple[int, ...]
    counts: tuple[int, ...]
    censored_buckets: tuple[int, ...] = ()
    censored_counts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Window:
    """One steady stretch of load inside a sample; times on the lab's clock, from its start."""

    start_s: float
    duration_s: float
    planned: int
    """Requests due in the window (open loop) or begun in it (closed loop)."""
    completed: int
    errors: int
    unfinished: int
    service: LatencyHistogram
    """From the request's own start."""
    response: LatencyHistogram
    """From the planned time; equal to `service` in a closed loop."""


@dataclass(frozen=True)
class UsageSecond:
    """Usage of one component in one second of a sample."""

    second: float
    component: str
    """VNF instance name, `source`, `sink` or `host`."""
    cpu_cores: float
    throttled_share: float
    memory_bytes: float
    rx_mbps: float
    tx_mbps: float


@dataclass(frozen=True)
class Sample:
    """KPIs and usage at one operating point, with validity, repetition and interval."""

    id: str
    """`<target>/<configuration hash>/<wl>/<repetition>`: content key, unique in a session; that of
    a trial ends in `/<purpose>`."""
    point: OperatingPoint
    kpis: Mapping[str, Estimate]
    """By KPI name (`domain.kpis`), and by the name that a metrics descriptor gives a metric of the
    site (`NAME`, `COMPONENT:NAME`); what cannot be stated is absent, never zero."""
    usage: Mapping[str, Usage]
    """By VNF instance name, `source`, `sink`, `host`."""
    valid: bool
    findings: tuple[Finding, ...]
    labels: tuple[str, ...]
    """Names of the `remarks`, and what the recorded lab says of a point that was not measured:
    `interpolated`, `without_windows`, ..."""
    load_model: str
    kpi_definition: KpiDefinition
    generator: str
    """Name and version: `oha 1.16.0`, `simulated 1`."""
    planned: int
    completed: int
    errors: int
    unfinished: int
    windows: int
    batches: int
    throttled_share: float
    """The largest of the functions' shares."""
    straddle_share: float
    """About n/(X·T): the share of requests that meet a quota gap (METHOD.md 5)."""
    started_at: float
    """Seconds since the epoch, when the first window began."""
    measured_s: float
    """Steady time, the sum of the windows, on the lab's clock."""
    lab_s: float
    """Everything that the visit cost on the lab's clock: allocation, warm-up, windows."""
    p_sla: Estimate | None = None
    """P(R <= the campaign's SLA limit), where it names one on a response time."""
    remarks: tuple[Remark, ...] = ()
    bypass: Bypass | None = None
    """None where the lab has no path past the functions, or none was measured."""
    block: int = 0
    """Which deployment of its target it was taken on (METHOD.md 1): samples of one block share
    that start's luck."""
    purpose: Purpose = "profile"

    @property
    def reason(self) -> str:
        """The first finding's reason; empty where the sample is valid."""
        return self.findings[0].reason if self.findings else ""

    def kpi(self, name: str) -> float | None:
        estimate = self.kpis.get(name)
        return estimate.value if estimate else None


@dataclass(frozen=True)
class Measurement:
    """A sample with the windows, usage seconds and other observations it was computed from."""

    sample: Sample
    windows: tuple[Window, ...]
    series: tuple[UsageSecond, ...]
    observations: tuple[Observation, ...] = ()
    """None at all: nobody collected any."""
