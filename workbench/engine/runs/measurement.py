"""One operating point: allocate, drive, judge, drive on until it settles. And the bypass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, Protocol, cast

from workbench.domain.campaign import Campaign
from workbench.domain.competitors import COMPETITOR
from workbench.domain.errors import DataError, LabError, LabGone
from workbench.domain.lab import BypassCurve, BypassPoint
from workbench.domain.logs import ComponentLog
from workbench.domain.parameters import Configuration, OperatingPoint, is_setting
from workbench.domain.samples import Measurement, Usage
from workbench.domain.topology import Target
from workbench.engine.learning.pool import Pool
from workbench.engine.learning.sampler_worker import NOTHING_SEEN, JudgedBy, judge_drives
from workbench.engine.runs import bypass
from workbench.engine.runs.asking_site import SiteMetrics, TwoClocks
from workbench.engine.sessions.clock import now
from workbench.labs.base import DeployedTarget, DrivingLab, Lab, RecallingLab
from workbench.measuring.floor import VarianceFloor
from workbench.measuring.records import Drive

Phase = Literal["deploying", "allocating", "measuring"]
OnUsage = Callable[[Mapping[str, Usage]], None]


BYPASS_NOTE = "source to sink, without the functions"
ASKING_NOTE = "asking the site's Prometheus"


class OnPhase(Protocol):
    def __call__(self, phase: Phase, point: OperatingPoint | None, note: str = "") -> None: ...


class LabDriver:
    """A lab with at most one target deployed in it; knows what is allocated, and what it cost.

    `lab_s` counts the lab's own seconds of deploying, allocating and driving. Fitting, pausing
    and queueing are free.
    """

    def __init__(
        self,
        lab: Lab,
        campaign: Campaign,
        pool: Pool,
        on_phase: OnPhase,
        on_usage: OnUsage,
        bypasses: Iterable[BypassCurve] = (),
    ) -> None:
        self.lab = lab
        self.lab_s = 0.0
        self.site: SiteMetrics | None = None
        """Whom the site's own metrics are asked of."""
        self.on_drive: Callable[[str, Drive], None] | None = None
        """Told the target and every stretch of load that ended, past the functions, too."""
        self.target: str | None = None
        """What is deployed."""
        self.block = 0
        """Which deployment of the target that is, as the sampler counts them."""
        # Not isinstance(): a runtime protocol asks for every member, and the recorded lab reads a
        # whole recording when it is asked for its `costs`.
        self._recalling = cast(RecallingLab, lab) if hasattr(lab, "recall") else None
        self._campaign = campaign
        self._pool = pool
        self._on_phase = on_phase
        self._on_usage = on_usage
        self._configuration: Configuration | None = None
        self._deployment: DeployedTarget | None = None
        self._bypasses = list(bypasses)
        self._without_bypass: list[bypass.Kind] = []
        """Kinds of load whose bypass was tried in vain."""

    @property
    def recalls(self) -> bool:
        """Whether its samples are there already and cost next to nothing."""
        return self._recalling is not None

    def loads(self, target: str) -> Mapping[Configuration, tuple[float, ...]]:
        """Of a recorded lab: the loads that there are of a target; else nothing."""
        return {} if self._recalling is None else self._recalling.loads(target)

    async def deploy(
        self, target: Target, configuration: Configuration, block: int = 0
    ) -> DeployedTarget:
        """Bring up a target with the configuration that it is measured at first."""
        await self.undeploy()
        self._on_phase("deploying", None)
        begin = self.lab.clock()
        try:
            deployment = await self.lab.deploy(target, configuration, block)
        finally:
            self.lab_s += self.lab.clock() - begin
        self.target, self.block, self._configuration = target.name, block, configuration
        self._deployment = deployment
        return deployment

    async def undeploy(self) -> None:
        """Remove the target, also what is left of one that did not come up."""
        self.target = self._configuration = self._deployment = None
        begin = self.lab.clock()
        await self.lab.undeploy()
        self.lab_s += self.lab.clock() - begin

    async def written(self) -> tuple[ComponentLog, ...]:
        """What the target wrote since this was asked last."""
        begin = self.lab.clock()
        written = await self.lab.written()
        self.lab_s += self.lab.clock() - begin
        return written

    # ------------------------------------------------------------------ the bypass

    def lacks_bypass(self, point: OperatingPoint) -> bool:
        """Whether the bypass of `point`'s kind of load is neither known nor known not to be had."""
        if self._recalling is not None:
            return False  # what it recalls was judged against the bypass of its own host
        kind = self._kind(point)
        return kind.find(self._bypasses) is None and kind not in self._without_bypass

    async def measure_bypass(self, point: OperatingPoint) -> BypassCurve | None:
        """Load past the functions, of the kind that `point` is loaded with; None if none is seen.

        It is tried once, and again where the lab was gone. Raises `LabError`.
        """
        kind = self._kind(point)
        self._without_bypass.append(kind)
        begin = self.lab.clock()
        try:
            await self._allocate(point)
            points = await self._bypass_points(point)
        except LabGone:
            self._without_bypass.remove(kind)  # once it is back there may be one
            raise
        finally:
            self.lab_s += self.lab.clock() - begin
        if not points:
            return None
        curve = kind.curve(points)
        self._bypasses.append(curve)
        return curve

    async def _bypass_points(self, point: OperatingPoint) -> list[BypassPoint]:
        points: list[BypassPoint] = []
        for wl in bypass.loads(self._campaign):
            at = OperatingPoint(point.target, point.configuration, wl)
            seen = await self._bypass_point(at)
            if seen and seen.busy_host:
                seen = await self._bypass_point(at) or seen  # a neighbour may have gone meanwhile
            points += [seen] if seen else []
            if seen is None or (self._campaign.load.kind == "open" and seen.limited_by):
                break  # more is not carried, and would only fill the host's tables
        return points

    async def _bypass_point(self, at: OperatingPoint) -> BypassPoint | None:
        """One short drive past the functions; None where there is no such path, or no figure."""
        lab = cast(DrivingLab, self.lab)
        self._on_phase("measuring", at, BYPASS_NOTE)
        started_at, begin = now(), lab.clock()
        with counted():
            seconds = bypass.drive_s(self._campaign.load, at.configuration)
            drive = await lab.drive_bypass(at, seconds, self._on_usage)
        if drive is None:
            return None
        self._tell(at.target, drive)
        judged, _, _ = await self._judge([drive], at, started_at, lab.clock() - begin, NOTHING_SEEN)
        return bypass.point_of(judged.sample, self._campaign.load)

    def _kind(self, point: OperatingPoint) -> bypass.Kind:
        assert self._deployment is not None
        seen = self._deployment
        given = point.configuration.workload.items()
        # The path past the functions knows nothing of their settings, and nobody competes there.
        workload = {k: value for k, value in given if not is_setting(k) and k != COMPETITOR}
        return bypass.Kind(seen.generator, self._campaign.load.key, seen.keep_alive, workload)

    # ------------------------------------------------------------------ samples

    async def measure(
        self, point: OperatingPoint, first_s: float, floor: VarianceFloor
    ) -> Measurement:
        """Everything that one visit to `point` yields. Raises `LabError`."""
        begin = self.lab.clock()
        try:
            await self._allocate(point)
            self._on_phase("measuring", point)
            if self._recalling is not None:
                return await self._recalling.recall(point)
            judged_by = JudgedBy(self._kind(point).find(self._bypasses), floor, self.block)
            return await self._drive(point, first_s, begin, judged_by)
        finally:
            self.lab_s += self.lab.clock() - begin

    async def _allocate(self, point: OperatingPoint) -> None:
        if point.configuration != self._configuration:
            self._on_phase("allocating", point)
            self._configuration = None  # unknown, should the lab fail half way
            await self.lab.allocate(point.configuration)
            self._configuration = point.configuration

    async def _drive(
        self, point: OperatingPoint, first_s: float, begin: float, judged_by: JudgedBy
    ) -> Measurement:
        lab = cast(DrivingLab, self.lab)
        started_at = now()
        drives: list[Drive] = []
        seconds, clocks = first_s, TwoClocks(lab.clock)
        while True:
            clocks.note()
            with counted():
                drives.append(await lab.drive(point, seconds, self._on_usage))
            self._tell(point.target, drives[-1])
            clocks.note()
            measurement, settled, seconds = await self._judge(
                drives, point, started_at, lab.clock() - begin, judged_by
            )
            if settled and self.site is not None:
                self._on_phase("measuring", point, ASKING_NOTE)
                return await self.site.beside(measurement, drives[0].begin_s, clocks)
            if settled:
                return measurement
            if seconds <= 0:
                raise LabError(
                    "the point is not settled, and there is nothing to wait for",
                    where=f"{point.target} at {point.wl:g}",
                )

    def _tell(self, target: str, drive: Drive) -> None:
        if self.on_drive is not None:
            self.on_drive(target, drive)

    async def _judge(
        self,
        drives: list[Drive],
        point: OperatingPoint,
        started_at: float,
        lab_s: float,
        judged_by: JudgedBy,
    ) -> tuple[Measurement, bool, float]:
        with counted():
            return await self._pool.run(
                judge_drives,
                self._campaign,
                drives,
                point,
                started_at,
                lab_s,
                judged_by,
            )


@contextmanager
def counted() -> Iterator[None]:
    """Counters that cannot be, such as ones that went back, are the lab's fault: a restart."""
    try:
        yield
    except DataError as error:
        raise LabError(error.what, where=error.where, remedy=error.remedy) from error
