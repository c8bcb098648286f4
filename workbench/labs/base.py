"""The `Lab` protocol: where a target lives.

A lab deploys a target between a source and a sink, changes allocations, drives load and hands
over raw records and counters on its own clock. Warm-up, steadiness, repetition and validity are
decided above it (`measuring`, `engine`), so that every lab is judged by the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from workbench.domain.campaign import Campaign
from workbench.domain.lab import Check, HostFacts
from workbench.domain.logs import ComponentLog
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Measurement, Usage
from workbench.domain.topology import Placement, Target
from workbench.measuring.records import Drive

OnUsage = Callable[[Mapping[str, Usage]], None]
"""Called about once a second while load is driven; must return at once."""


def _unheard(line: str) -> None:
    del line


@dataclass(frozen=True)
class LabSettings:
    """How a lab is opened.

    `session` labels everything that the lab creates. `pace` (simulated lab) is lab seconds per
    second, None for as fast as it goes. `argument` is what follows the colon in `recorded:NAME`,
    resolved to a path.
    """

    session: str
    seed: int = 1
    pace: float | None = None
    argument: str = ""
    oversubscribe: bool = False
    own_cpu_s: Callable[[], float] | None = None
    """CPU seconds that the workbench's own processes burned so far. A lab that shares the host
    with them reads it with its counters, as component `measuring.usage.OWN`."""
    images: Mapping[str, str] = field(default_factory=dict)
    """Images that the session was begun with, by template: it goes on with those that are still
    there, also where newer ones could be made."""
    say: Callable[[str], None] = _unheard
    """Told what `open` is about where that takes minutes, a line at a time; must return at once."""


@dataclass(frozen=True)
class LabCosts:
    """Lab seconds that things take besides load, for plans and estimates."""

    deploy_s: float
    allocate_s: float
    drive_overhead_s: float
    """Start and stop of the generator, per drive."""


@dataclass(frozen=True)
class DeployedTarget:
    """What the pre-flight saw on a fresh target."""

    target: str
    generator: str
    """Name and version of the generator that was chosen."""
    keep_alive: bool
    path: str
    """A sentence: what one request on this path does (answers, closes, redirects, bytes)."""
    warnings: tuple[str, ...] = ()


@runtime_checkable
class Lab(Protocol):
    """What every lab can do. Errors are `LabError`s; `close` never raises.

    Where nothing answers that did before it is a `LabGone`: the run waits, calls `undeploy` until
    that does not raise it, and deploys anew.
    """

    name: str
    """Entry point name: `docker`, `sim`, `recorded`."""
    placements: tuple[Placement, ...]
    """Where it can put a function: `inline`, and `passive` if it mirrors traffic to it."""

    def __init__(self, campaign: Campaign, settings: LabSettings) -> None: ...

    @property
    def costs(self) -> LabCosts: ...

    def clock(self) -> float:
        """Seconds on the lab's clock."""
        ...

    async def open(self) -> HostFacts:
        """Check that the campaign can run here; build or find images; deploy nothing yet."""
        ...

    async def deploy(
        self, target: Target, configuration: Configuration, block: int = 0
    ) -> DeployedTarget:
        """Bring up the target anew, wait until it is ready, run the pre-flight.

        `block` counts the deployments of a target in a campaign (`sampling.base.Ask.block`).
        """
        ...

    async def allocate(self, configuration: Configuration) -> None:
        """Set resources and workload parameters; restarts only what must restart."""
        ...

    async def written(self) -> tuple[ComponentLog, ...]:
        """What components of the target wrote since this was asked last; of the silent, nothing.

        Also of a target that did not come up, or whose functions have ended, until it is removed.
        Bounded (`ComponentLog.of`) and quick; what cannot be read is left out and is no error.
        """
        ...

    async def undeploy(self) -> None:
        """Remove the target; idempotent."""
        ...

    async def close(self) -> None:
        """Remove everything that carries the session's label; idempotent, on every way out."""
        ...


class NamingLab(Protocol):
    """A lab whose components others know by other names; queries of the site's metrics use them."""

    def known_as(self, component: str) -> Mapping[str, str]:
        """`container`, `interface`; what is not known is left out. Raises nothing."""
        ...


@runtime_checkable
class DrivingLab(Lab, Protocol):
    """A lab with a target that load can be driven through."""

    async def drive(self, point: OperatingPoint, seconds: float, on_usage: OnUsage) -> Drive:
        """Offer load at `point` for `seconds` and hand over what was seen."""
        ...

    async def drive_bypass(
        self, point: OperatingPoint, seconds: float, on_usage: OnUsage
    ) -> Drive | None:
        """The same load from the source straight to the sink of the deployed target, with the
        same generator; None where there is no path past the functions."""
        ...


@runtime_checkable
class RecallingLab(Lab, Protocol):
    """A lab that answers from what was measured before."""

    @property
    def repetitions(self) -> int:
        """How often the most often repeated point was measured."""
        ...

    def loads(self, target: str) -> Mapping[Configuration, tuple[float, ...]]:
        """By configuration, the loads that there are: samplers ask for no others."""
        ...

    async def recall(self, point: OperatingPoint) -> Measurement:
        """The measurement at `point`; where there is none, a sample that is `not_measured`."""
        ...


@runtime_checkable
class DefinedLab(Lab, Protocol):
    """A lab that knows before it is deployed how its samples are defined."""

    @property
    def definition(self) -> str:
        """The generator that all of its samples will name."""
        ...


class LabDoctor(Protocol):
    """What a lab does without being open: lines of `workbench doctor`, strays, what it makes for
    later. Static on the lab class; `prepare` may be left out."""

    @staticmethod
    async def examine() -> tuple[Check, ...]: ...

    @staticmethod
    async def reap(alive: frozenset[str]) -> tuple[str, ...]:
        """Remove what carries the label of a session not in `alive`; the names of what went."""
        ...

    @staticmethod
    async def prepare(say: Callable[[str], None]) -> None:
        """Make what later sessions can use and takes minutes, such as a generator that is built.

        Asked while nothing is measured on this host, and cancelled as soon as something is; begun
        anew then. `say` is told how far it is. Returns at once where nothing is left to make.
        """
        ...
