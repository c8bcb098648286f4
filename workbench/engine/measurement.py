"""One operating point: allocate, drive, judge, drive on until it settles."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Literal, cast

from workbench.domain.campaign import Campaign
from workbench.domain.errors import DataError, LabError
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Measurement, Usage
from workbench.domain.topology import Target
from workbench.engine.advice import judge_drives
from workbench.engine.pool import Pool
from workbench.labs.base import Deployment, DrivingLab, Lab, RecallingLab
from workbench.measuring.records import Drive

Phase = Literal["deploying", "allocating", "measuring"]
OnPhase = Callable[[Phase, OperatingPoint | None], None]
OnUsage = Callable[[Mapping[str, Usage]], None]


class Bench:
    """A lab with at most one target deployed in it; knows what is allocated, and what it cost.

    `lab_s` counts the lab's own seconds of deploying, allocating and driving. Fitting, pausing
    and queueing are free.
    """

    def __init__(
        self, lab: Lab, campaign: Campaign, pool: Pool, on_phase: OnPhase, on_usage: OnUsage
    ) -> None:
        self.lab = lab
        self.lab_s = 0.0
        self.target: str | None = None
        """What is deployed."""
        self._campaign = campaign
        self._pool = pool
        self._on_phase = on_phase
        self._on_usage = on_usage
        self._configuration: Configuration | None = None

    async def deploy(self, target: Target, configuration: Configuration) -> Deployment:
        """Bring up a target with the configuration that it is measured at first."""
        await self.undeploy()
        self._on_phase("deploying", None)
        begin = self.lab.clock()
        try:
            deployment = await self.lab.deploy(target, configuration)
        finally:
            self.lab_s += self.lab.clock() - begin
        self.target, self._configuration = target.name, configuration
        return deployment

    async def undeploy(self) -> None:
        """Remove the target, also what is left of one that did not come up."""
        self.target = self._configuration = None
        begin = self.lab.clock()
        await self.lab.undeploy()
        self.lab_s += self.lab.clock() - begin

    async def measure(self, point: OperatingPoint, first_s: float) -> Measurement:
        """Everything that one visit to `point` yields. Raises `LabError`."""
        begin = self.lab.clock()
        try:
            if point.configuration != self._configuration:
                self._on_phase("allocating", point)
                self._configuration = None  # unknown, should the lab fail half way
                await self.lab.allocate(point.configuration)
                self._configuration = point.configuration
            self._on_phase("measuring", point)
            if isinstance(self.lab, RecallingLab):
                return await self.lab.recall(point)
            return await self._drive(point, first_s, begin)
        finally:
            self.lab_s += self.lab.clock() - begin

    async def _drive(self, point: OperatingPoint, first_s: float, begin: float) -> Measurement:
        lab = cast(DrivingLab, self.lab)
        started_at = time.time()
        drives: list[Drive] = []
        seconds = first_s
        while True:
            drives.append(await lab.drive(point, seconds, self._on_usage))
            try:
                measurement, settled, seconds = await self._pool.run(
                    judge_drives, self._campaign, drives, point, started_at, lab.clock() - begin
                )
            except DataError as error:  # such as counters that went backwards: a restart
                raise LabError(error.what, where=error.where, remedy=error.remedy) from error
            if settled:
                return measurement
            if seconds <= 0:
                raise LabError(
                    "the point is not settled, and there is nothing to wait for",
                    where=f"{point.target} wl={point.wl:g}",
                )
