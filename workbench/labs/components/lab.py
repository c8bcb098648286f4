"""What every lab does that deploys components and drives load through them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace

from workbench.domain.campaign import Campaign
from workbench.domain.competitors import COMPETITOR, STRESSOR, competitor_of
from workbench.domain.errors import LabError
from workbench.domain.logs import ComponentLog
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.topology import Placement, Target, VnfTemplate
from workbench.labs.base import DeployedTarget, LabSettings, OnUsage
from workbench.labs.components import competing, driving, hops, packets, preflight, wiring
from workbench.labs.components.competing import Rival
from workbench.labs.components.component import Component, ComponentMaker
from workbench.labs.components.preflight import GeneratorChoice
from workbench.labs.components.target import Deployed, size_of
from workbench.labs.components.watching import DriveWatch
from workbench.labs.components.wiring import SINK, SOURCE
from workbench.measuring.records import Drive
from workbench.probes import recorders
from workbench.traffic.base import Offer, PathFacts


class ComponentLab(ABC):
    """Functions, source and sink as components of their own on one host.

    A lab says where components come from (`_maker`), which networks there are (`_networks_for`)
    and how its failures become sentences (`_speaking`).
    """

    placements: tuple[Placement, ...] = ("inline", "passive")
    generators_made_later: Mapping[str, str] = {}
    """How generators come to be beside the source that are not there yet, by name."""

    def __init__(self, campaign: Campaign, settings: LabSettings) -> None:
        self._campaign = campaign
        self._settings = settings
        self._cores = 0
        self._deployed: Deployed | None = None
        self._packets: packets.Sender | None = None
        self._choice: GeneratorChoice | None = None
        self._path: PathFacts | None = None
        self._rivals: competing.Rivals | None = None

    @abstractmethod
    def _maker(self) -> ComponentMaker:
        """Raises `LabError` where the lab is not open."""

    @abstractmethod
    async def _networks_for(self, target: Target) -> Sequence[str]:
        """Ids of the networks of a target, made where they are not there."""

    @abstractmethod
    def _speaking(self, where: str) -> AbstractContextManager[None]:
        """Turns what goes wrong below into `LabError`s."""

    def clock(self) -> float:
        return time.monotonic()

    def _check_wiring(self) -> None:
        templates = {t.name: t for t in self._campaign.templates}
        for plan in self._campaign.targets:
            wiring.stages(plan.target, templates)
            for competitor in competing.asked_for(self._campaign):
                pins = self._pins(plan.target)
                competing.cores_at(competitor.place, pins, plan.target, self._cores)

    def _needed(self) -> list[VnfTemplate]:
        """Templates of everything that the campaign deploys."""
        names = {
            name
            for plan in self._campaign.targets
            for name in (
                plan.target.source,
                plan.target.sink,
                *(vnf.template for vnf in plan.target.vnfs),
            )
        }
        if competing.asked_for(self._campaign):
            names.add(STRESSOR)
        return [template for template in self._campaign.templates if template.name in names]

    def _details(self) -> dict[str, str]:
        """What of this host moves the figures of this campaign, for its facts."""
        shared = sorted(
            plan.target.name for plan in self._campaign.targets if not self._pins(plan.target)
        )
        return {"shared_cores": self._shared_cores(shared)} if shared else {}

    async def deploy(
        self, target: Target, configuration: Configuration, block: int = 0
    ) -> DeployedTarget:
        del block  # every deployment is a new start here
        maker = self._maker()
        await self.undeploy()
        pins = self._pins(target)
        with self._speaking(f"target {target.name}"):
            networks = await self._networks_for(target)
            self._deployed = deployed = Deployed(
                self._campaign, target, maker, networks, self._cores, pins
            )
            self._rivals = competing.Rivals(deployed, self._speaking)
            await deployed.bring_up(configuration)
            if self._campaign.load.unit == "packets":
                self._packets = await packets.prepare(deployed, configuration)
                return self._packets.deployment(
                    () if pins else (self._shared_cores([target.name]),)
                )
            source = deployed.component(SOURCE)
            try:
                self._path = path = await preflight.look(
                    source,
                    deployed.url(deployed.entry, configuration),
                    self._campaign.windows.request_timeout_s,
                    target.name,
                )
            except LabError as error:
                error.what += f"; {await deployed.last_words()}"
                raise
            most = self._campaign.target_plan(target.name).primary.high
            self._choice = await preflight.choose(
                source, path, self._campaign, most, self.generators_made_later
            )
        warnings = list(self._choice.passed_over)
        if not pins:
            warnings.append(self._shared_cores([target.name]))
        asked_size = self._campaign.load.unit == "requests"
        if asked_size and path.body_bytes != size_of(configuration) and not path.compresses:
            warnings.append(
                f"{size_of(configuration)} bytes were asked for and {path.body_bytes} came"
            )
        return DeployedTarget(
            target.name,
            self._choice.title,
            path.keep_alive,
            preflight.describe(path),
            tuple(warnings),
        )

    async def allocate(self, configuration: Configuration) -> None:
        async with self._on_target() as deployed:
            await deployed.allocate(configuration)

    async def drive(self, point: OperatingPoint, seconds: float, on_usage: OnUsage) -> Drive:
        competitor = competitor_of(point.configuration)
        async with self._on_target() as deployed:
            assert self._rivals is not None
            async with self._rivals.beside(competitor, seconds) as rival:
                drive = await self._driven(deployed, point, seconds, on_usage, rival)
            return rival.told(drive) if rival else drive

    async def _driven(
        self,
        deployed: Deployed,
        point: OperatingPoint,
        seconds: float,
        on_usage: OnUsage,
        rival: Rival | None,
    ) -> Drive:
        if self._packets is not None:
            watch = await self._watch(deployed, rival)
            drive = await self._packets.drive(point, seconds, on_usage, watch)
            if not getattr(self._packets.generator, "again", False):
                return drive
            # It sent too few, and has learned why: the next drive sends what is due.
            watch = await self._watch(deployed, rival)
            return await self._packets.drive(point, seconds, on_usage, watch)
        return await self._offer(deployed, deployed.entry, point, seconds, on_usage, rival)

    async def drive_bypass(
        self, point: OperatingPoint, seconds: float, on_usage: OnUsage
    ) -> Drive | None:
        async with self._on_target() as deployed:
            if self._packets is not None:
                return None  # source and sink are on networks that only the routers join
            if self._campaign.load.unit == "streams":
                return None  # movies pace their players, past the function too; the sink has none
            if len(deployed.stages) == len((SOURCE, SINK)):
                return None  # with nothing in the path the path is the bypass
            sink = deployed.component(SINK)
            return await self._offer(deployed, sink, point, seconds, on_usage)

    async def _offer(
        self,
        deployed: Deployed,
        entry: Component,
        point: OperatingPoint,
        seconds: float,
        on_usage: OnUsage,
        rival: Rival | None = None,
    ) -> Drive:
        """Drive load from the source to `entry`, beside a rival where there is one."""
        assert self._choice is not None
        assert self._path is not None
        offer = Offer(
            deployed.url(entry, point.configuration),
            self._campaign.load,
            point.wl,
            seconds,
            self._path.keep_alive,
            self._campaign.windows.request_timeout_s,
            size_of(point.configuration),
            driving.RESULT_PATH,
            deployed.component(SOURCE).threads,
            self._campaign.load.shaped(point.configuration),
        )
        before = await hops.read(deployed) if deployed.passive else None
        driven = await driving.drive(
            await self._watch(deployed, rival), self._choice, offer, on_usage
        )
        if entry is deployed.entry:
            driven = replace(driven, splits=deployed.target.splits)
        if before is None:
            return driven
        return replace(driven, copies=(await hops.read(deployed)).since(before).copies)

    async def _watch(self, deployed: Deployed, rival: Rival | None = None) -> DriveWatch:
        of_rival = {COMPETITOR: float(len(rival.cores))} if rival else {}
        return DriveWatch(
            deployed.components,
            {**deployed.allotted(), **of_rival},
            deployed.threads(),
            self._settings.own_cpu_s,
            await recorders.asked_for(self._campaign.evidence, self._campaign.windows.warmup_s),
            rival,
        )

    async def written(self) -> tuple[ComponentLog, ...]:
        return await self._deployed.written() if self._deployed is not None else ()

    async def undeploy(self) -> None:
        if self._deployed is not None:
            with self._speaking(f"target {self._deployed.target.name}"):
                if self._rivals is not None:
                    await self._rivals.remove()
                await self._deployed.remove()
        self._deployed = self._rivals = None
        self._choice = self._path = self._packets = None

    @asynccontextmanager
    async def _on_target(self) -> AsyncIterator[Deployed]:
        self._maker()
        if self._deployed is None or (self._choice is None and self._packets is None):
            raise LabError("no target is deployed")
        with self._speaking(f"target {self._deployed.target.name}"):
            yield self._deployed

    def _pins(self, target: Target) -> dict[str, tuple[int, ...]]:
        """Cores by component: as the campaign's managers say, else disjoint, else none."""
        given = {m.name: m.cores for m in self._campaign.managers if m.cpuset}
        plan = self._campaign.target_plan(target.name)
        wanted = {
            vnf.name: max(
                wiring.worker_threads(
                    wiring.vcpu(c, vnf.name, self._campaign.template(vnf.template))
                )
                for c in self._campaign.configurations(plan)
            )
            for vnf in target.vnfs
        }
        names = (SOURCE, *wanted, SINK)
        if any(name in given for name in names):
            return {n: given[n] for n in names if n in given}
        return wiring.pin(self._cores, wanted) or {}

    def _shared_cores(self, targets: list[str]) -> str:
        return (
            f"this host's {self._cores} cores are too few to keep source, functions and sink of "
            f"{', '.join(targets)} apart: they share them, and disturb each other"
        )
