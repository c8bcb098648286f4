"""The `Generator` protocol: programs that run beside the source, never in the Python process.

A generator turns an offer into an argument vector, and what the program left behind into request
records. It starts nothing itself: the lab runs the vector where the source is, so the same
generator serves containers, namespaces and remote hosts.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from workbench.domain.load_shapes import LoadShape, refusal
from workbench.domain.parameters import LoadModel
from workbench.domain.samples import KpiDefinition
from workbench.measuring.records import RequestRecords


@dataclass(frozen=True)
class PathFacts:
    """What one request on a path does; a generator is chosen by this (METHOD.md 3)."""

    status: int
    body_bytes: int
    keep_alive: bool
    """The far side keeps the connection open after an answer."""
    redirects: bool
    compresses: bool


@dataclass(frozen=True)
class Offer:
    """Load to be offered to a URL: requests per second (open) or clients (closed)."""

    url: str
    load: LoadModel
    wl: float
    seconds: float
    keep_alive: bool
    request_timeout_s: float
    expected_bytes: int
    result_path: str
    """File beside the source that the program writes its records to."""
    threads: int = 2
    """Worker threads that the program may use: the cores that the source was given."""
    shape: LoadShape | None = None
    """How the rate varies about `wl`, for a generator that sends at planned times."""


def unable(generator: Generator, load: LoadModel, kpis: Collection[str], most: float) -> str | None:
    """Why a generator cannot offer a load or state KPIs on any path, or None.

    A varying rate takes one that sends at planned times, which it says by `plans_times`; plug-ins
    need not know that there are such loads, nor of streams, which one says by `plays_streams`.
    """
    if load.unit == "streams" and not getattr(generator, "plays_streams", False):
        return f"{generator.name} plays no streams; generator hls does"
    return refusal(load.shape, generator) or generator.unable(load, kpis, most)


class Generator(Protocol):
    name: str
    kpi_definition: KpiDefinition
    packages: tuple[str, ...]
    """Debian packages that bring it to the source's image; none where the image has it anyway."""

    def unable(self, load: LoadModel, kpis: Collection[str], most: float) -> str | None:
        """A sentence why it cannot offer this load or state these KPIs on any path, or None.

        `most` is the largest `wl` that it will be asked for.
        """
        ...

    def unfit(self, path: PathFacts) -> str | None:
        """A sentence why it cannot measure this path, or None."""
        ...

    def version_argv(self) -> tuple[str, ...]: ...

    def parse_version(self, output: str) -> str: ...

    def argv(self, offer: Offer) -> tuple[str, ...]: ...

    def parse(
        self, offer: Offer, result: bytes, output: str, begin_s: float, stop_s: float
    ) -> RequestRecords:
        """Records on the lab's clock, planned-but-unsent and unfinished requests included.

        `result` is the content of `result_path` (empty if the program writes to its output),
        `output` its standard output. Raises `TrafficError` naming what is wrong with them.
        """
        ...
