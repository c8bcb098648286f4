"""A lab that fails on command, over the simulated one; it counts as one that loads the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from workbench.domain.errors import LabError
from workbench.domain.lab import HostFacts
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.topology import Target
from workbench.labs.base import DeployedTarget, OnUsage
from workbench.labs.simulated import SimulatedLab
from workbench.measuring.records import Counters, Drive

Failing = Callable[[str, Configuration | None], str | LabError | None]
"""What is attempted (`deploy`, `drive`, `bypass`, `undeploy`), with which configuration -> what
goes wrong."""


class FaultyLab(SimulatedLab):
    """Simulated, except for what `failing` says."""

    name = "faulty"
    failing: ClassVar[Failing] = staticmethod(lambda attempted, configuration: None)
    has_bypass: ClassVar[bool] = True
    busy_bypasses: ClassVar[int] = 0
    """So many drives past the functions, from now on, meet a host that is busy all the time."""
    busy_host: ClassVar[bool] = False
    """Whether others keep the host busy while load is driven."""
    pressure: ClassVar[bool] = False
    """Whether it counts pressure, as kernels do that have PSI."""
    digest: ClassVar[str] = "sha256:1"
    open_labs: ClassVar[int] = 0
    _closing = False
    reaped: ClassVar[list[frozenset[str]]] = []

    async def open(self) -> HostFacts:
        facts = await super().open()
        type(self).open_labs += 1
        return HostFacts(**(vars(facts) | {"image_digests": {"tinyproxy": self.digest}}))

    async def deploy(
        self, target: Target, configuration: Configuration, block: int = 0
    ) -> DeployedTarget:
        self._fail("deploy", configuration)
        return await super().deploy(target, configuration, block)

    async def drive(self, point: OperatingPoint, seconds: float, on_usage: OnUsage) -> Drive:
        self._fail("drive", point.configuration)
        driven = await super().drive(point, seconds, on_usage)
        if type(self).pressure:
            driven = replace(driven, counters=tuple(map(_with_pressure, driven.counters)))
        if not type(self).busy_host:
            return driven
        return replace(driven, counters=tuple(map(_of_a_busy_host, driven.counters)))

    async def drive_bypass(
        self, point: OperatingPoint, seconds: float, on_usage: OnUsage
    ) -> Drive | None:
        self._fail("bypass", point.configuration)
        if not self.has_bypass:
            return None
        driven = await super().drive_bypass(point, seconds, on_usage)
        if driven is None or not type(self).busy_bypasses:
            return driven
        type(self).busy_bypasses -= 1
        return replace(driven, counters=tuple(map(_of_a_busy_host, driven.counters)))

    async def undeploy(self) -> None:
        if not self._closing:
            self._fail("undeploy", None)
        await super().undeploy()

    async def close(self) -> None:
        self._closing = True  # what closes never raises
        await super().close()
        type(self).open_labs -= 1

    @staticmethod
    async def reap(alive: frozenset[str]) -> tuple[str, ...]:
        FaultyLab.reaped.append(alive)
        return ()

    def _fail(self, attempted: str, configuration: Configuration | None) -> None:
        trouble = type(self).failing(attempted, configuration)
        if isinstance(trouble, LabError):
            raise trouble
        if trouble:
            self._write("tinyproxy", f"\x1b[31mpanic: {trouble}\x00")
            raise LabError(trouble, where="tinyproxy", remedy="Look at its log")


def _of_a_busy_host(counters: Counters) -> Counters:
    return replace(counters, host_busy_s=1000.0 * counters.at_s)


def _with_pressure(counters: Counters) -> Counters:
    key = ("tinyproxy", "pressure_cpu_s", "")
    return replace(counters, observed={key: 0.25 * counters.components["tinyproxy"].cpu_s})
