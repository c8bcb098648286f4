"""The KPIs: what each one is called, counts, and how it is treated.

This is the only place that names them all; what else needs to know something of a KPI asks here. A
plug-in adds one under `workbench.kpis` (docs/extending.md); a campaign adds any percentile of the
response time by naming it (`kpi: p90`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, Literal

from workbench.domain.added import added

Kind = Literal["response_time", "rate", "share", "other"]
Passage = Literal["requests", "packets"]

THROUGHPUT, MEAN, P95 = "throughput_rps", "mean_ms", "p95_ms"
"""What an A/A run states the noise of; others scatter as one of them (`Kpi.scatters_as`)."""
MEDIAN, P99, LOSS, ERRORS = "p50_ms", "p99_ms", "loss_pct", "error_pct"
JITTER = "jitter_ms"
RECOVERY = "recovery_s"
LAG, STARTUP = "lag_ratio_pct", "startup_ms"
"""The others that have equations of their own."""
SMALLEST = 1e-3
"""Floor of a KPI that states none: 1 µs, 0.001 requests/s."""
RESTART_SD, DRIFT_SD = 0.05, 0.08
"""Log-sd of a new start and of slow drift, where no A/A run tells (METHOD.md 11)."""
_BETWEEN_PASSES = math.hypot(0.05, RESTART_SD, DRIFT_SD)


@dataclass(frozen=True, kw_only=True)
class Kpi:
    """A figure of a sample.

    Attributes
    ----------
    name : as samples, tables and files have it; ends in its unit: `p95_ms`.
    kind : what its rules go by: response times grow without bound in overload, shares lie between
        0 and 100 %, rates are of what gets through.
    of : what its load is made of.
    quantile : of a percentile of the response time, from 0 to 1.
    carried : whether it counts what gets through in the unit of the planned load.
    floor : smallest figure that a model tells apart from zero, in `unit` (METHOD.md 8).
    aliases : as people write it.
    scatters_as : the KPI of an A/A run whose noise it has; empty where none is known.
    window_sd : log-sd of one window of 2-3 s (METHOD.md 6), of what an A/A run states.
    session_sd : log-sd of one sample of one session (METHOD.md 6); where it is stated, `compare`
        compares the KPI.
    rank : from 1: which is shown or chosen first where nobody names one. 0: only if asked for.
    measure : of a plug-in: the figure from the windows of one visit (`measuring.pool.Pool`, or
        `measuring.packets.PacketPool`); None where it cannot be stated.
    """

    name: str
    unit: str
    kind: Kind = "other"
    more_is_better: bool = False
    of: tuple[Passage, ...] = ("requests",)
    quantile: float | None = None
    carried: bool = False
    floor: float = SMALLEST
    aliases: tuple[str, ...] = ()
    scatters_as: str = ""
    window_sd: float | None = None
    session_sd: float | None = None
    rank: int = 0
    measure: Callable[[Any], Any] | None = None

    @property
    def short(self) -> str:
        """Without its unit: `p95`."""
        return self.name.rpartition("_")[0] if self.unit and "_" in self.name else self.name

    @property
    def score_floor(self) -> float:
        """Smallest figure that is told apart in a score: 1 ms, 0.1 % (METHOD.md 8)."""
        return 1.0 if self.unit == "ms" else self.floor

    @property
    def narrows(self) -> bool:
        """Whether more windows make its interval narrower relative to it: a share near zero has
        none, and packets are not sent until an interval is narrow."""
        return self.kind in ("response_time", "rate") and "requests" in self.of


# Packets have a one-way delay as requests have a response time (`Sample.kpi_definition`).
_BOTH: tuple[Passage, ...] = ("requests", "packets")


def _percentile(
    name: str, quantile: float, *aliases: str, scatters_as: str = P95, **more: Any
) -> Kpi:
    return Kpi(
        name=name,
        unit="ms",
        kind="response_time",
        of=_BOTH,
        quantile=quantile,
        aliases=aliases,
        scatters_as=scatters_as,
        **more,
    )


_SHIPPED = (
    _percentile("p50_ms", 0.50, "p50", "median", scatters_as=MEAN),
    _percentile("p95_ms", 0.95, "p95", window_sd=0.12, session_sd=0.24, rank=1),
    _percentile("p99_ms", 0.99, "p99"),
    Kpi(
        name="mean_ms",
        unit="ms",
        kind="response_time",
        of=_BOTH,
        aliases=("mean",),
        scatters_as=MEAN,
        window_sd=0.05,
        session_sd=_BETWEEN_PASSES,
        rank=2,
    ),
    Kpi(
        name="throughput_rps",
        unit="requests/s",
        kind="rate",
        more_is_better=True,
        carried=True,
        aliases=("throughput",),
        scatters_as=THROUGHPUT,
        window_sd=0.05,
        session_sd=_BETWEEN_PASSES,
        rank=3,
    ),
    Kpi(
        name="goodput_mbps",
        unit="Mbit/s",
        kind="rate",
        more_is_better=True,
        of=_BOTH,
        aliases=("goodput",),
        scatters_as=THROUGHPUT,
    ),
    Kpi(
        name="throughput_pps",
        unit="packets/s",
        kind="rate",
        more_is_better=True,
        of=("packets",),
        carried=True,
        aliases=("packet_throughput",),
        scatters_as=THROUGHPUT,
        session_sd=_BETWEEN_PASSES,
        rank=5,
    ),
    # RFC 1889, A.8: how much the delay varies, which is no delay.
    Kpi(
        name=JITTER,
        unit="ms",
        of=("packets",),
        aliases=("jitter",),
        scatters_as=P95,
        session_sd=0.24,
        rank=6,
    ),
    # Planned requests not answered in time (open loop), or packets sent that did not arrive.
    Kpi(
        name="loss_pct",
        unit="%",
        kind="share",
        of=_BOTH,
        floor=0.1,
        aliases=("loss",),
        rank=4,
    ),
    # Copies that a passive function did not process.
    Kpi(
        name="capture_loss_pct",
        unit="%",
        kind="share",
        of=_BOTH,
        floor=0.1,
        aliases=("capture_loss",),
    ),
    # After a spike of load, until response times are back where they were before it.
    Kpi(name=RECOVERY, unit="s", floor=0.05, aliases=("recovery",)),
    # Of streams: stretches of 20 s of a player in which playback stood still, and how long after
    # its first request a player had something to play.
    Kpi(name=LAG, unit="%", kind="share", floor=1.0, aliases=("lag_ratio",)),
    Kpi(name=STARTUP, unit="ms", aliases=("startup",)),
    # Answers that were errors.
    Kpi(name="error_pct", unit="%", kind="share", floor=0.1, aliases=("errors",)),
)
BUILT_IN: Mapping[str, Kpi] = MappingProxyType({kpi.name: kpi for kpi in _SHIPPED})
_PERCENTILE = re.compile(r"p(\d\d|99\d{1,2})(?:_ms)?")
_ENDINGS: Mapping[str, tuple[str, Kind]] = {
    "_ms": ("ms", "response_time"),
    "_pct": ("%", "share"),
    "_rps": ("requests/s", "rate"),
    "_pps": ("packets/s", "rate"),
    "_mbps": ("Mbit/s", "rate"),
}


@cache
def known() -> Mapping[str, Kpi]:
    """All that are registered, by name, those of plug-ins last; one that ships keeps its name."""
    every = dict(BUILT_IN)
    for kpi in added("kpis", Kpi):
        every.setdefault(kpi.name, kpi)
    return MappingProxyType(every)


def names(*kinds: Kind) -> tuple[str, ...]:
    """Of all that are known, or of those of these kinds."""
    return tuple(name for name, kpi in known().items() if not kinds or kpi.kind in kinds)


def ranked() -> tuple[Kpi, ...]:
    """Those that are shown where nobody names one, the first first."""
    return tuple(sorted((kpi for kpi in known().values() if kpi.rank), key=lambda kpi: kpi.rank))


def carried(of: Passage) -> str:
    """The KPI of what gets through of `requests` or `packets`."""
    return next(name for name in all_carried() if of in BUILT_IN[name].of)


def all_carried() -> tuple[str, ...]:
    """The KPIs of what gets through, of any load."""
    return tuple(name for name, kpi in BUILT_IN.items() if kpi.carried)


def find(given: str) -> Kpi | None:
    """The KPI of that name or alias; None where it is none."""
    if kpi := known().get(given) or next((k for k in known().values() if given in k.aliases), None):
        return kpi
    match = _PERCENTILE.fullmatch(given)
    quantile = float(f"0.{match[1]}") if match else 0.0
    return _percentile(f"p{match[1]}_ms", quantile) if match and quantile > 0.0 else None


@lru_cache(maxsize=1024)
def of(name: str) -> Kpi:
    """What is to be known of a KPI by its name.

    A session may hold one of a plug-in that is not installed here, and opens all the same: as much
    as the ending tells is then known, and that less is better unless it is a rate.
    """
    kpi = find(name)
    if kpi is not None and kpi.name == name:
        return kpi
    ending = next((ending for ending in _ENDINGS if name.endswith(ending)), "")
    unit, kind = _ENDINGS.get(ending, ("", "other"))
    floor = 0.1 if kind == "share" else SMALLEST
    return Kpi(name=name, unit=unit, kind=kind, more_is_better=kind == "rate", floor=floor)
