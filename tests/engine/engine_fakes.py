"""A lab that fails on command, over the simulated one; it counts as one that loads the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from workbench.domain.errors import LabError
from workbench.domain.lab import HostFacts
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.topology import Target
from workbench.labs.base import Deployment, OnUsage
from workbench.labs.simulated import SimulatedLab
from workbench.measuring.records import Drive

Failing = Callable[[str, Configuration | None], str | None]
"""What is attempted (`deploy`, `drive`) with which configuration -> what goes wrong, or None."""


class FaultyLab(SimulatedLab):
    """Simulated, except for what `failing` says."""

    name = "faulty"
    failing: ClassVar[Failing] = staticmethod(lambda attempted, configuration: None)
    digest: ClassVar[str] = "sha256:1"
    open_labs: ClassVar[int] = 0
    reaped: ClassVar[list[frozenset[str]]] = []

    async def open(self) -> HostFacts:
        facts = await super().open()
        type(self).open_labs += 1
        return HostFacts(**(vars(facts) | {"image_digests": {"tinyproxy": self.digest}}))

    async def deploy(self, target: Target, configuration: Configuration) -> Deployment:
        self._fail("deploy", configuration)
        return await super().deploy(target, configuration)

    async def drive(self, point: OperatingPoint, seconds: float, on_usage: OnUsage) -> Drive:
        self._fail("drive", point.configuration)
        return await super().drive(point, seconds, on_usage)

    async def close(self) -> None:
        await super().close()
        type(self).open_labs -= 1

    @staticmethod
    async def reap(alive: frozenset[str]) -> tuple[str, ...]:
        FaultyLab.reaped.append(alive)
        return ()

    def _fail(self, attempted: str, configuration: Configuration | None) -> None:
        if trouble := type(self).failing(attempted, configuration):
            raise LabError(trouble, where="tinyproxy", remedy="Look at its log")
