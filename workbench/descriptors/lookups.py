"""What a descriptor being read asks of the others: the part of the library that checks know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from workbench.descriptors.rate_traces import RateTrace
from workbench.domain.campaign import Metric, MetricsServer
from workbench.domain.errors import Mistake
from workbench.domain.topology import Node, VnfTemplate

Kind = Literal["vnf", "chain", "campaign", "metrics", "prices", "mapping", "hosts"]
KINDS: tuple[Kind, ...] = ("vnf", "chain", "campaign", "metrics", "prices", "mapping", "hosts")


@dataclass(frozen=True)
class Chain:
    """A chain's descriptor, resolved."""

    node: Node
    source: str
    sink: str


class Lookups(Protocol):
    """Descriptors by name. `workbench.descriptors.library.Library` answers."""

    mistakes: list[Mistake]
    """Of every descriptor that was read."""
    traces: dict[str, RateTrace]
    """Recorded rates that a campaign names, by their file's name."""

    def put(self, templates: Mapping[str, VnfTemplate]) -> None:
        """Templates that have no file; they go over those that have."""

    def path(self, kind: Kind, name: str) -> Path | None:
        """The file of that name; None if there is none."""

    def require(self, kind: Kind, name: str) -> None:
        """Raise `ValueError` with a sentence if nothing of that kind has that name."""

    def require_end(self, chain: str) -> None:
        """Raise `ValueError` with a sentence if naming a chain now would lead back to itself."""

    def vnf(self, name: str) -> VnfTemplate | None:
        """The template of that name; None where it is missing or has mistakes."""

    def chain(self, name: str) -> Chain | None:
        """The chain of that name; None where it is missing, has mistakes or is being read."""

    def metrics(self, name: str) -> tuple[tuple[Metric, ...], tuple[MetricsServer, ...]] | None:
        """The metrics of that name and the servers that are asked for them; None where they are
        missing or have mistakes."""
