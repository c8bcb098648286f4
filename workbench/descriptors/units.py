"""Quantities with units: `10kB`, `1 MiB`, `25%`, `300/s`, `500 ms`.

SI prefixes are powers of ten, IEC prefixes powers of two: 1 MB is 10^6 bytes, 1 MiB is 2^20.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from workbench.domain import kpis, resources
from workbench.domain.competitors import COMPETITOR, Competitor
from workbench.domain.resources import Resource

NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""Regular expression; JSON Schema reads it the same way."""
_QUANTITY = re.compile(rf"({NUMBER})(.*)", re.DOTALL)
_LONGEST = 64
"""Characters; no quantity is longer."""


@dataclass(frozen=True, eq=False)
class Dimension:
    """A kind of quantity, the units it may be written in and the unit it is kept in.

    Attributes
    ----------
    name : with its article, as sentences use it.
    unit : the unit of the value that `read` returns.
    factors : what one of each written unit is in `unit`; the key `""` allows a bare number.
    example : a value as a user would write it.
    suffix : of the keys of workload parameters in this unit (`filesize_bytes`).
    """

    name: str
    unit: str
    factors: Mapping[str, float]
    example: str
    suffix: str = ""

    @property
    def allowed(self) -> str:
        """The units, as a sentence lists them: the first spelling of each."""
        first: dict[float, str] = {}
        for unit, factor in self.factors.items():
            if unit:
                first.setdefault(factor, unit)
        return ", ".join(first.values())

    def read(self, given: object) -> float:
        """The quantity in `unit`. Raises `ValueError` with a sentence that begins with *is*."""
        if isinstance(given, bool) or not isinstance(given, int | float | str):
            raise ValueError(f"is {shown(given)}, must be {self.name} such as {self.example}")
        text = str(given).strip()
        match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
        if match is None:
            raise ValueError(f"is {shown(given)}, must be {self.name} such as {self.example}")
        number, unit = float(match[1]), " ".join(match[2].split())
        if unit not in self.factors:
            if not unit:
                raise ValueError(
                    f"is {shown(given)}, but {self.name} needs a unit: {self.allowed}; "
                    f"such as {self.example}"
                )
            allowed = f"allowed: {self.allowed}" if self.allowed else "it is written without one"
            raise ValueError(
                f"is {shown(given)}, but {shown(unit)} is not a unit of {self.name}; "
                f"{allowed}; such as {self.example}"
            )
        value = number * self.factors[unit]
        if not math.isfinite(value):
            raise ValueError(f"is {shown(given)}, must be finite")
        # 12.5 % is 0.125, and 0.1 ms is not 0.10000000000000002 of anything: twelve digits are
        # more than any quantity has, and configuration keys must not depend on how it was written.
        return float(f"{value:.12g}")


@cache
def resource_dimension(resource: Resource, suffix: str = "") -> Dimension:
    """What amounts of a resource are quantities of."""
    return Dimension(resource.quantity, resource.unit, resource.units, resource.example, suffix)


CORES = resource_dimension(resources.VCPU)
SECONDS = Dimension(
    "a duration",
    "s",
    {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400},
    "3s",
    "_s",
)
MILLISECONDS = Dimension(
    "a response time",
    "ms",
    {"us": 1e-3, "µs": 1e-3, "ms": 1, "s": 1e3, "min": 6e4},
    "200ms",
    "_ms",
)
BYTES = resource_dimension(resources.MEMORY, "_bytes")
PER_SECOND = Dimension(
    "a rate",
    "requests/s",
    {"": 1, "/s": 1, "requests/s": 1, "rps": 1, "k/s": 1e3, "/min": 1 / 60},
    "300/s",
)
PACKETS_PER_SECOND = Dimension(
    "a packet rate",
    "packets/s",
    {"": 1, "/s": 1, "packets/s": 1, "pps": 1, "k/s": 1e3, "kpps": 1e3},
    "5000/s",
)
COUNT = Dimension("a number", "", {"": 1}, "16")
SHARE = Dimension("a share", "", {"": 1, "%": 0.01}, "0.01 or 1%")
PERCENT = Dimension("a percentage", "%", {"%": 1}, "0.5%")
MEGABITS = resource_dimension(resources.BANDWIDTH)

BIT_RATE = Dimension(MEGABITS.name, MEGABITS.unit, MEGABITS.factors, "2Mbit/s", "_mbps")
"""Of a movie, as a workload parameter."""

_OF_KPIS = {d.unit: d for d in (MILLISECONDS, PER_SECOND, PACKETS_PER_SECOND, MEGABITS, PERCENT)}


@cache
def kpi_dimension(kpi: str) -> Dimension:
    """What a KPI is a quantity of; one of a plug-in may have a unit of its own."""
    unit = kpis.of(kpi).unit
    if known := _OF_KPIS.get(unit):
        return known
    return Dimension(
        f"a number of {unit}" if unit else "a number", unit, {"": 1, unit: 1}, f"10{unit}"
    )


def kpi_dimensions() -> tuple[Dimension, ...]:
    """Of all KPIs, each once."""
    return tuple(dict.fromkeys(map(kpi_dimension, kpis.known())))


COMPETITION = Dimension("a competitor", "", {}, "cpu:50")
"""A text (`domain.competitors`), and no quantity: it has no unit."""

WorkloadName = Literal[
    "filesize", "packetsize", "flows", "duty", "period", "movies", "quality", "competitor"
]
WORKLOADS: Mapping[str, Dimension] = {
    "filesize": BYTES,
    "packetsize": BYTES,
    "flows": COUNT,
    "duty": SHARE,
    "period": SECONDS,
    "movies": COUNT,
    "quality": BIT_RATE,
    COMPETITOR: COMPETITION,
}
"""Workload parameters by the name that descriptors and SLAs use."""

PRIMARIES: Mapping[str, Dimension] = {
    "rate": PER_SECOND,
    "concurrent": COUNT,
    "packet_rate": PACKETS_PER_SECOND,
    "streams": COUNT,
}
"""Primary workload parameters: requests due per second (open loop), clients (closed loop),
packets due per second (open loop), players (closed loop)."""
PACKET_RATE = "packet_rate"
"""The primary workload parameter of packets; all others are of requests."""
STREAMS = "streams"
"""That of players of live movies."""


def read_competitor(given: object) -> str:
    """A competitor as configurations have it. Raises `ValueError` with a sentence that begins with
    *is*."""
    if not isinstance(given, str):
        raise ValueError(f"is {shown(given)}, must be {COMPETITION.name} such as cpu:50@function")
    competitor = Competitor.parse(given.strip())
    return competitor.text if competitor else given.strip()


def workload_key(name: str) -> str:
    """The key of a workload parameter in the domain: `filesize` is `filesize_bytes`."""
    return name + WORKLOADS[name].suffix


def shown(value: object) -> str:
    """A value as sentences show it: quoted if it is text, without control characters, short."""
    if value is None:
        return "empty"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= 60 else text[:56] + "...'"
