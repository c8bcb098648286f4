"""What is set before a measurement: parameters, configurations, load, operating points, SLA."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Literal

from workbench.domain.load_shapes import DUTY, PERIOD, USUAL_PERIOD_S, LoadShape, bursts

ParameterValue = float | str
"""A number in the parameter's unit, or the name of a flavor."""

Scale = Literal["linear", "log"]
LoadKind = Literal["open", "closed"]
LoadUnit = Literal["requests", "packets", "streams"]
Arrivals = Literal["constant", "poisson", "uniform", "normal", "pareto"]
"""How gaps spread about their mean; those of a Poisson process are exponential."""
SizeSpread = Literal["constant", "exponential", "uniform", "normal", "pareto"]
PACKET_MIXES = ("imix",)
"""Mixes of packet sizes by name: IMIX is 7 of 64, 4 of 594 and 1 of 1,514 bytes a frame."""
Direction = Literal["<=", ">="]
Combination = Literal["every", "places"]
"""How the values of resource parameters meet: every combination, or the first of each, then the
second of each (pairs of allocations)."""


@dataclass(frozen=True)
class Parameter:
    """A resource, a setting of a function or a workload parameter, and the values to profile it at.

    `key` is `vnf.parameter` for resources (`haproxy.vcpu`) and settings (`firewall.rules`), and the
    plain name with its unit as a suffix for workload parameters (`filesize_bytes`). Resources
    are those of `domain.resources`, by their keys, and `flavor`, which names a set of them.
    """

    key: str
    values: tuple[ParameterValue, ...]
    unit: str = ""
    flavors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Of a flavor parameter: what each of its values allocates, by the last part of the resource
    key (`vcpu`, `memory_bytes`)."""

    @property
    def amounts(self) -> tuple[float, ...]:
        """Its values that are numbers, in `unit`."""
        return tuple(value for value in self.values if not isinstance(value, str))

    def cores(self, value: ParameterValue) -> float:
        """What a value allots of the CPU; 0 where it is one of another resource."""
        if self.key.endswith(".vcpu"):
            return float(value)
        return float(self.flavors.get(str(value), {}).get("vcpu", 0.0))


@dataclass(frozen=True)
class Configuration:
    """One value for every resource and workload parameter except the primary workload.

    Attributes
    ----------
    resources : what is allotted, and what a recommendation may therefore choose.
    workload : what is given: workload parameters, and settings of functions (`firewall.rules`),
        which an SLA fixes as it fixes the size of a file.
    """

    resources: Mapping[str, ParameterValue]
    workload: Mapping[str, ParameterValue]

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def key(self) -> str:
        """Stable text, the same in every session: `haproxy.vcpu=0.25,filesize_bytes=10000`."""
        pairs = (*sorted(self.resources.items()), *sorted(self.workload.items()))
        return ",".join(f"{name}={_plain(value)}" for name, value in pairs)

    def resource(self, key: str, default: float = 0.0) -> float:
        return float(self.resources.get(key, default))

    def vcpu(self, vnf: str) -> float:
        """Allocation of a VNF in cores; 0 where none is set."""
        return self.resource(f"{vnf}.vcpu")

    def parameter(self, key: str, default: float = 0.0) -> float:
        """A workload parameter as a number."""
        return float(self.workload.get(key, default))


def is_setting(key: str) -> bool:
    """Whether a key of `Configuration.workload` is a setting of a function."""
    return "." in key


def settings_of(configuration: Configuration, vnf: str) -> dict[str, ParameterValue]:
    """The settings of a function by their own names."""
    prefix = f"{vnf}."
    return {
        key.removeprefix(prefix): value
        for key, value in configuration.workload.items()
        if key.startswith(prefix)
    }


def carried_over(
    workload: Mapping[str, ParameterValue], names: Mapping[str, str]
) -> dict[str, ParameterValue]:
    """What is given, with the settings of functions under other names; of others, none.

    Parameters
    ----------
    names : the new name by the old one.
    """
    found = {}
    for key, value in workload.items():
        vnf, _, name = key.rpartition(".")
        if not is_setting(key):
            found[key] = value
        elif vnf in names:
            found[f"{names[vnf]}.{name}"] = value
    return found


def _plain(value: ParameterValue) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def grid(
    resources: tuple[Parameter, ...],
    workload: tuple[Parameter, ...],
    combine: Combination = "every",
) -> Iterator[Configuration]:
    """All combinations of the parameters' values, the last parameter varying fastest.

    A flavor stands in a configuration beside what it allocates: models see numbers. By `places`,
    a resource with one value has it everywhere.
    """
    many = max((len(p.values) for p in resources), default=1)
    sets = (
        product(*(p.values for p in resources))
        if combine == "every"
        else zip(
            *(p.values * many if len(p.values) == 1 else p.values for p in resources), strict=True
        )
    )
    workloads = tuple(product(*(p.values for p in workload)))
    for chosen in ((*allotted, *offered) for allotted in sets for offered in workloads):
        values = dict(zip((p.key for p in (*resources, *workload)), chosen, strict=True))
        allocated: dict[str, ParameterValue] = {}
        for parameter in resources:
            value = allocated[parameter.key] = values[parameter.key]
            vnf = parameter.key.rpartition(".")[0]
            for name, amount in parameter.flavors.get(str(value), {}).items():
                allocated[f"{vnf}.{name}"] = amount
        yield Configuration(allocated, {p.key: values[p.key] for p in workload})


@dataclass(frozen=True)
class PrimaryWorkload:
    """The workload parameter that varies in operation, and the range to sample it in."""

    name: str
    low: float
    high: float
    scale: Scale = "log"
    unit: str = ""
    integer: bool = False
    """Clients come whole; rates do not."""


@dataclass(frozen=True)
class LoadModel:
    """How the source offers load (METHOD.md 2). Samples of different models never share a fit."""

    kind: LoadKind
    think_time_s: float = 0.0
    arrivals: Arrivals = "constant"
    connections: int = 64
    """Open loop: the most requests in flight. What is due beyond that waits at the source, is
    counted from its planned time, and is backlog when the load stops."""
    unit: LoadUnit = "requests"
    """What is offered. Packets are offered in an open loop only: nothing answers them. Streams are
    players of live movies in a closed loop: a movie paces them, not its server."""
    shape: LoadShape | None = None
    """How the rate of an open loop varies about `wl`; None: it does not."""
    sizes: SizeSpread = "constant"
    """How the sizes of packets spread about the one asked for."""

    @property
    def key(self) -> str:
        """In every sample: `open-constant`, `open-bursts`, `packets-constant`, `closed`,
        `closed-think-0.1s`, `closed-streams`."""
        due = self.shape.key if self.shape else self.arrivals
        if self.unit == "packets":
            spread = "" if self.sizes == "constant" else f"-{self.sizes}-sizes"
            return f"packets-{due}{spread}"
        if self.kind == "open":
            return f"open-{due}"
        if self.unit == "streams":
            return "closed-streams"
        return f"closed-think-{self.think_time_s:g}s" if self.think_time_s else "closed"

    def shaped(self, configuration: Configuration) -> LoadShape | None:
        """The shape at a configuration, whose parameters say what bursts are like."""
        if self.shape is None or self.shape.segments:
            return self.shape
        period_s = configuration.parameter(PERIOD, USUAL_PERIOD_S)
        return bursts(configuration.parameter(DUTY, 1.0), period_s)


@dataclass(frozen=True)
class OperatingPoint:
    """A configuration of a target and a value of `wl`; `repetition` counts from 0."""

    target: str
    configuration: Configuration
    wl: float
    repetition: int = 0


@dataclass(frozen=True)
class Sla:
    """A limit on one KPI at a workload: `p95<=200ms @ rate=300/s, filesize=10kB`.

    `limit` is in the KPI's own unit (`kpi` carries it: `p95_ms`).
    """

    kpi: str
    limit: float
    direction: Direction = "<="
    wl: float | None = None
    workload: Mapping[str, ParameterValue] = field(default_factory=dict)
    text: str = ""
    """As the user wrote it."""

    def holds(self, value: float) -> bool:
        return value <= self.limit if self.direction == "<=" else value >= self.limit
