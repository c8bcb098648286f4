"""The resources: what a function can be allotted, and how each is written, shown and priced.

This is the only place that names them all; what else needs to know something of a resource asks
here. A plug-in adds one under `workbench.resources` (docs/extending.md). A flavor is none of them:
it names a set of amounts. How a lab sets one stands in that lab.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from workbench.domain.added import added


@dataclass(frozen=True, kw_only=True, eq=False)
class Resource:
    """Something of which a function is given an amount; the more, the more it carries.

    Attributes
    ----------
    key : the last part of its keys in configurations, samples and files: `memory_bytes`.
    name : as descriptors and sentences have it: `memory`.
    quantity : what an amount is, with its article: `a size`.
    unit : of amounts in configurations.
    units : what one of each written unit is in `unit`; the key `""` allows a bare number.
    example : an amount as a user would write it.
    examples : several of them, as a screen suggests them.
    most : largest amount that a descriptor may ask for, in `unit`.
    unset : what a function has that is given none.
    shown : an amount as answers write it: `64 MiB`.
    deployed : the same in a recommendation that is handed on, where that differs.
    price : what a price table calls an hour of one of `priced_unit`: `memory_gib`.
    priced_unit : `GiB`.
    priced_amount : how much of `unit` that is.
    simulated_s : seconds that a request takes in it, by the amount and the bytes of its answer with
        headers; the simulated lab serves one request after the other there. None: it is unable to
        simulate it, and refuses it.
    """

    key: str
    name: str
    quantity: str
    unit: str
    units: Mapping[str, float]
    example: str
    examples: str
    most: float
    unset: str = "no limit"
    shown: Callable[[float], str]
    deployed: Callable[[float], str] | None = None
    price: str
    priced_unit: str
    priced_amount: float = 1.0
    simulated_s: Callable[[float, float], float] | None = None

    @property
    def written_unit(self) -> str:
        """How `unit` is written behind a number; empty where a bare number is in it."""
        return next(unit for unit, factor in self.units.items() if factor == 1)


MEBIBYTE = 2**20


def _size(count: float) -> str:
    count = math.ceil(count)
    return f"{count / 1e6:.6g} MB" if count % MEBIBYTE else f"{count // MEBIBYTE} MiB"


VCPU = Resource(
    key="vcpu",
    name="vcpu",
    quantity="a vCPU share",
    unit="cores",
    units={
        **{"": 1, "%": 0.01, "% vcpu": 0.01, "% vCPU": 0.01},
        **{"vcpu": 1, "vCPU": 1, "core": 1, "cores": 1},
    },
    example="0.25 or 25%",
    examples="25%, 50%",
    most=1024,
    unset="its template's",
    shown=lambda cores: f"{100 * cores:.4g}%",
    deployed=lambda cores: f"{cores:g} vCPU",
    price="vcpu",
    priced_unit="core",
)
"""What a function always has, and the simulated lab's functions are made of."""
MEMORY = Resource(
    key="memory_bytes",
    name="memory",
    quantity="a size",
    unit="bytes",
    units={
        **{"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9},
        **{"KiB": 2**10, "MiB": MEBIBYTE, "GiB": 2**30},
    },
    example="10kB",
    examples="64 MiB, 128 MiB",
    most=2**50,
    unset="its template's",
    shown=lambda count: f"{count / MEBIBYTE:.4g} MiB",
    deployed=_size,
    price="memory_gib",
    priced_unit="GiB",
    priced_amount=2.0**30,
)
BANDWIDTH = Resource(
    key="bandwidth_mbps",
    name="bandwidth",
    quantity="a bit rate",
    unit="Mbit/s",
    units={"kbit/s": 1e-3, "Mbit/s": 1, "Gbit/s": 1e3},
    example="100Mbit/s",
    examples="100 Mbit/s",
    most=1e6,
    shown=lambda mbps: f"{mbps:.4g} Mbit/s",
    deployed=lambda mbps: f"{mbps:g} Mbit/s",
    price="bandwidth_gbps",
    priced_unit="Gbit/s",
    priced_amount=1e3,
    simulated_s=lambda mbps, answer_bytes: answer_bytes * 8e-6 / mbps,
)
"""What each of a function's interfaces sends at most."""
DISK = Resource(
    key="disk_mbps",
    name="disk",
    quantity="a rate of bytes",
    unit="MB/s",
    units={"kB/s": 1e-3, "MB/s": 1, "GB/s": 1e3},
    example="20MB/s",
    examples="5 MB/s, 20 MB/s",
    most=1e5,
    shown=lambda mbps: f"{mbps:.4g} MB/s of disk",
    price="disk_mbps",
    priced_unit="MB/s",
    simulated_s=lambda mbps, answer_bytes: answer_bytes * 1e-6 / mbps,
)
"""What it reads from disks at most, and as much again that it writes. The simulated lab takes it
that every answer goes over a disk."""
BUILT_IN: Mapping[str, Resource] = MappingProxyType(
    {r.key: r for r in (VCPU, MEMORY, BANDWIDTH, DISK)}
)
FLAVOR = "flavor"
"""In the place of a resource's name and key: a named set of amounts."""


@cache
def known() -> Mapping[str, Resource]:
    """All that are registered, by key, those of plug-ins last; one that ships keeps its name."""
    every = dict(BUILT_IN)
    for resource in added("resources", Resource):
        taken = {FLAVOR, *every, *(other.name for other in every.values())}
        if taken.isdisjoint((resource.key, resource.name)):
            every[resource.key] = resource
    return MappingProxyType(every)


@cache
def by_name() -> Mapping[str, Resource]:
    """The same by the names that descriptors use."""
    return MappingProxyType({resource.name: resource for resource in known().values()})


def of(key: str) -> Resource | None:
    """The resource of a key of a configuration, `haproxy.memory_bytes` or its last part; None for a
    flavor, a setting, and what a plug-in added that is not installed here."""
    return known().get(key.rpartition(".")[2])


def shown(key: str, amount: float) -> str:
    """An amount as answers write it; of what is not known, with its key."""
    resource = of(key)
    name = key.rpartition(".")[2]
    return resource.shown(amount) if resource else f"{name} {amount:.4g}"


def allotted_words(amounts: Mapping[str, Iterable[float]]) -> str:
    """`tinyproxy with 50% and 100%; haproxy with 64 MiB`, of amounts by key."""
    return "; ".join(
        f"{key.rpartition('.')[0]} with {' and '.join(shown(key, one) for one in given)}"
        for key, given in amounts.items()
    )
