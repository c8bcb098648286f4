"""VNFs and how they are composed: series, parallel, target.

The three nodes of a chain are msgspec structs rather than dataclasses: they form a union, and in
JSON a union needs a tag (`{"kind": "series", "parts": [...]}`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from string import Template
from typing import Literal

from msgspec import Struct

Placement = Literal["inline", "passive"]
Role = Literal["function", "source", "sink", "competitor"]
ReadinessKind = Literal["http", "tcp", "command"]
Passage = Literal["proxy", "router"]
"""How traffic passes: a proxy ends connections and makes its own upstream, a router forwards
packets from one network to the next."""


_SINK = "sink"
"""The name of the component behind the last functions."""
Onward = tuple[tuple[str, float], ...]
"""Names of the components that traffic goes on to, each with its share."""
UPSTREAM_WEIGHT = "upstream_weight"
"""Placeholder for an upstream's share of the traffic, as a whole number of 100 or less."""
UPSTREAM_NUMBER = "upstream_number"
"""Placeholder that counts upstreams from 1; the line that it stands in is there for each."""


@dataclass(frozen=True)
class Readiness:
    """How to tell that a container serves: probed until it answers or `timeout_s` is over."""

    kind: ReadinessKind = "tcp"
    path: str = "/"
    command: tuple[str, ...] = ()
    timeout_s: float = 20.0


ChangeOfSetting = Literal["reload", "restart"]
"""What it takes for a function to go by another value of a setting."""


@dataclass(frozen=True)
class FunctionParameter:
    """A setting of a function that a campaign may vary, such as the rules of a firewall.

    It is filled into the function's `files` as `$name` and stands in configurations as
    `vnf.name`. Either `choices` names its values, or it is a number from `low` to `high`.
    """

    name: str
    default: float | str
    low: float = 0.0
    high: float = 0.0
    choices: tuple[str, ...] = ()
    whole: bool = True
    """Whether only whole numbers are values."""
    unit: str = ""
    change: ChangeOfSetting = "restart"
    summary: str = ""
    simulated_us: float = 0.0
    """In the simulated lab: CPU of a request or packet for each unit of it, in µs."""

    def read(self, given: object) -> float | str:
        """A value as descriptors hold it. Raises `ValueError` with what is allowed."""
        if self.choices:
            if given not in self.choices:
                raise ValueError(f"is {given!r}; allowed: {', '.join(self.choices)}")
            return str(given)
        allowed = f"{'a whole number' if self.whole else 'a number'} from {self.low:g} to "
        allowed += f"{self.high:g}{f' {self.unit}' if self.unit else ''}"
        try:
            value = float(str(given)) if not isinstance(given, bool) else math.nan
        except ValueError:
            value = math.nan
        if not self.low <= value <= self.high or (self.whole and value != int(value)):
            raise ValueError(f"is {str(given)[:60]!r}, must be {allowed}")
        return value

    def rendered(self, value: float | str) -> str:
        """A value as the function's files hold it."""
        if isinstance(value, str):
            return value
        return str(int(value)) if self.whole else f"{value:.12g}"


@dataclass(frozen=True)
class ConfigurationFile:
    """A file rendered into the container before it starts.

    `text` is a `string.Template`; it may use `$upstream_host`, `$upstream_port`, `$port`,
    `$threads` and the VNF's own `settings`.
    """

    path: str
    text: str


@dataclass(frozen=True)
class VnfTemplate:
    """One kind of network function, source or sink, as a descriptor describes it.

    Exactly one of `build` (a folder with a Dockerfile, beside the descriptor) and `image` (an
    existing image) is set.
    """

    name: str
    role: Role = "function"
    placement: Placement = "inline"
    passage: Passage = "proxy"
    summary: str = ""
    build: str = ""
    """As `paths.located` finds it, so that it holds on another installation."""
    image: str = ""
    port: int = 8080
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    """Values may be `${NAME}`: read from the environment when deployed, never stored."""
    files: tuple[ConfigurationFile, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    readiness: Readiness = field(default_factory=Readiness)
    default_vcpu: float = 1.0
    function_parameters: tuple[FunctionParameter, ...] = ()
    """Its settings that a campaign may vary."""
    reload: tuple[str, ...] = ()
    """Run in it when its files have changed and it need not start again."""
    stats: tuple[str, ...] = ()
    """Run in it before and after each drive: prints `NAME VALUE` lines of what it counted."""
    parameters: tuple[str, ...] = ()
    """Workload parameters that a source can offer, by the name descriptors use (`filesize`)."""
    packages: tuple[str, ...] = ()
    """Debian packages of its programs, for labs that run it without an image."""
    programs: tuple[str, ...] = ()
    """Files beside its descriptor that are programs of it."""
    locks_memory: bool = False
    """Whether its program does not start where it may not keep its memory from being paged out."""
    simulated: Mapping[str, float] = field(default_factory=dict)
    """Parameters of the function's stand-in in the simulated lab (docs/simulated-lab.md)."""

    @property
    def balances(self) -> bool:
        """Whether it can split its traffic: its configuration has a line for each upstream."""
        return any(UPSTREAM_NUMBER in Template(f.text).get_identifiers() for f in self.files)

    @property
    def weighs(self) -> bool:
        """Whether it can give its upstreams unequal shares."""
        return any(UPSTREAM_WEIGHT in Template(f.text).get_identifiers() for f in self.files)


class Vnf(Struct, frozen=True, tag_field="kind", tag="vnf", omit_defaults=True):
    """A network function in a chain: an instance name that is unique there, and its template.

    A passive one gets a copy of what reaches the part behind it, which a lab has to make
    (`Lab.placements`); the traffic itself passes it by.
    """

    name: str
    template: str
    placement: Placement = "inline"


class Series(Struct, frozen=True, tag_field="kind", tag="series"):
    """Traffic passes the parts one after the other, from the source's side to the sink's."""

    parts: tuple[Node, ...]


class Parallel(Struct, frozen=True, tag_field="kind", tag="parallel"):
    """Traffic is split over the branches; `shares` sum to 1."""

    branches: tuple[Node, ...]
    shares: tuple[float, ...]


Node = Vnf | Series | Parallel


@dataclass(frozen=True)
class Target:
    """What is profiled between a source and a sink; a single VNF is a chain of one."""

    name: str
    graph: Node
    source: str = "source"
    sink: str = "sink"
    """Template names of the source and the sink."""

    @property
    def vnfs(self) -> tuple[Vnf, ...]:
        """All functions, from the source's side, branch by branch."""
        return tuple(_walk(self.graph))

    @property
    def entries(self) -> Onward:
        """Where traffic enters it from the source."""
        return _onward(self.graph, ((_SINK, 1.0),), {})

    @property
    def onward(self) -> Mapping[str, Onward]:
        """Where traffic goes on from each function that it passes; the sink is behind the last."""
        found: dict[str, Onward] = {}
        _onward(self.graph, ((_SINK, 1.0),), found)
        return found

    @property
    def splits(self) -> tuple[Mapping[str, float], ...]:
        """Shares by the first function of each branch, for every place where traffic is split and
        none of these functions gets any from elsewhere."""
        came = [name for after in self.onward.values() for name, _ in after]
        groups = (after for after in self.onward.values() if len(after) > 1)
        return tuple(
            dict(after)
            for after in dict.fromkeys(groups)
            if all(name != _SINK and came.count(name) == 1 for name, _ in after)
        )

    @property
    def copies(self) -> tuple[tuple[Vnf, Vnf | None], ...]:
        """Its passive functions, each with the one whose ingress is copied to it: the next in the
        series that traffic passes through, or None where that is the sink."""
        parts = self.graph.parts if isinstance(self.graph, Series) else (self.graph,)
        found: list[tuple[Vnf, Vnf | None]] = []
        for place, part in enumerate(parts):
            if isinstance(part, Vnf) and part.placement == "passive":
                behind = (vnf for later in parts[place + 1 :] for vnf in _walk(later))
                found.append((part, next((v for v in behind if v.placement == "inline"), None)))
        return tuple(found)


def _onward(node: Node, after: Onward, found: dict[str, Onward]) -> Onward:
    """Where traffic enters a node, behind which it goes on to `after`; notes it in `found`."""
    match node:
        case Vnf(name, _, placement):
            if placement == "passive":
                return after
            found[name] = after
            return ((name, 1.0),)
        case Series(parts):
            for part in reversed(parts):
                after = _onward(part, after, found)
            return after
        case Parallel(branches, shares):
            return tuple(
                (name, share * own)
                for branch, share in zip(branches, shares, strict=True)
                for name, own in _onward(branch, after, found)
            )


def _walk(node: Node) -> Iterator[Vnf]:
    match node:
        case Vnf():
            yield node
        case Series(parts):
            for part in parts:
                yield from _walk(part)
        case Parallel(branches):
            for branch in branches:
                yield from _walk(branch)
