"""`DockerLab`: the protocol of a lab over containers of a Docker engine."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiodocker
import structlog

from workbench.descriptors.capacity import check_fits_host
from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError, WorkbenchError
from workbench.domain.lab import Check, HostFacts
from workbench.domain.logs import ComponentLog
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.topology import Placement, Target
from workbench.labs.base import Deployment, LabCosts, LabSettings, OnUsage
from workbench.labs.docker import (
    allotments,
    doctor,
    driving,
    oha_binary,
    packets,
    preflight,
    strays,
    wiring,
)
from workbench.labs.docker.containers import Component, Workshop
from workbench.labs.docker.engine import agent_url, connect, dial, speaking_to
from workbench.labs.docker.facts import facts
from workbench.labs.docker.images import build_images
from workbench.labs.docker.preflight import Choice
from workbench.labs.docker.programs import Listener
from workbench.labs.docker.target import Deployed, size_of
from workbench.labs.docker.wiring import SINK, SOURCE
from workbench.measuring.records import Drive
from workbench.traffic.base import Offer, PathFacts

log = structlog.get_logger(__name__)

COSTS = LabCosts(deploy_s=2.5, allocate_s=0.02, drive_overhead_s=0.3)
"""Measured on two busy cores, two functions in the chain; a restart of one costs 0.6 s more."""


class DockerLab:
    """Functions, source and sink in containers of a local or remote engine.

    Parameters
    ----------
    campaign : what is to be profiled; its first agent of kind `docker` may name the engine.
    settings : `session` labels every container and network.
    """

    name = "docker"
    placements: tuple[Placement, ...] = ("inline",)

    def __init__(self, campaign: Campaign, settings: LabSettings) -> None:
        self._campaign = campaign
        self._settings = settings
        self._docker: aiodocker.Docker | None = None
        self._images: dict[str, str] = {}
        self._cores = 0
        self._networks: list[str] = []
        self._deployed: Deployed | None = None
        self._packets: packets.Sender | None = None
        self._choice: Choice | None = None
        self._path: PathFacts | None = None

    @property
    def costs(self) -> LabCosts:
        return COSTS

    def clock(self) -> float:
        return time.monotonic()

    async def open(self) -> HostFacts:
        self._docker = docker = await dial(agent_url(self._campaign))
        with speaking_to("the Docker engine"):
            info = await docker.system.info()
            version = await docker.version()
        self._cores = int(info["NCPU"])
        if not self._settings.oversubscribe:
            check_fits_host(self._campaign, self._cores)
        templates = {t.name: t for t in self._campaign.templates}
        for plan in self._campaign.targets:
            wiring.stages(plan.target, templates)
        if not info.get("CpuCfsQuota", True):
            raise LabError(
                "its kernel has no CPU quota",
                where="the Docker engine",
                remedy="Boot a kernel with CONFIG_CFS_BANDWIDTH",
            )
        await allotments.check(self._campaign, info, doctor.is_local(docker))
        needed = {
            name
            for plan in self._campaign.targets
            for name in (
                plan.target.source,
                plan.target.sink,
                *(vnf.template for vnf in plan.target.vnfs),
            )
        }
        self._images = await build_images(
            [t for t in self._campaign.templates if t.name in needed],
            listener=Listener(self._say, lambda line: log.info("images", line=line)),
            docker=docker,
            builds_oha=self._campaign.generator == "oha",
            known=self._settings.images,
            packages=preflight.packages(self._campaign),
        )
        shared = sorted(
            plan.target.name for plan in self._campaign.targets if not self._pins(plan.target)
        )
        details = {"shared_cores": self._shared_cores(shared)} if shared else {}
        return facts(version, info, self._images, details, doctor.is_local(docker))

    def _say(self, line: str) -> None:
        log.info("images", line=line)
        self._settings.say(line)

    async def deploy(
        self, target: Target, configuration: Configuration, block: int = 0
    ) -> Deployment:
        del block  # every deployment is a new start here
        docker = self._engine()
        await self.undeploy()
        pins = self._pins(target)
        with speaking_to(f"target {target.name}"):
            workshop = Workshop(docker, self._settings.session, strays.Owner.this_process())
            self._networks = await workshop.networks_left(self._networks)
            while len(self._networks) < len(wiring.networks(target, self._campaign.templates)):
                self._networks.append(await workshop.network())
            self._deployed = deployed = Deployed(
                self._campaign,
                target,
                workshop,
                self._networks,
                self._images,
                self._cores,
                pins,
            )
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
            self._choice = await preflight.choose(source, path, self._campaign, most)
        warnings = list(self._choice.passed_over)
        if not pins:
            warnings.append(self._shared_cores([target.name]))
        if path.body_bytes != size_of(configuration) and not path.compresses:
            warnings.append(
                f"{size_of(configuration)} bytes were asked for and {path.body_bytes} came"
            )
        return Deployment(
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
        async with self._on_target() as deployed:
            if self._packets is not None:
                return await self._packets.drive(point, seconds, on_usage, self._settings.own_cpu_s)
            return await self._offer(deployed, deployed.entry, point, seconds, on_usage)

    async def drive_bypass(
        self, point: OperatingPoint, seconds: float, on_usage: OnUsage
    ) -> Drive | None:
        async with self._on_target() as deployed:
            if self._packets is not None:
                return None  # source and sink are on networks that only the routers join
            sink = deployed.component(SINK)
            return await self._offer(deployed, sink, point, seconds, on_usage)

    async def _offer(
        self,
        deployed: Deployed,
        entry: Component,
        point: OperatingPoint,
        seconds: float,
        on_usage: OnUsage,
    ) -> Drive:
        """Drive load from the source to `entry`."""
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
        )
        return await driving.drive(
            deployed.components,
            self._choice,
            offer,
            deployed.allotted(),
            deployed.threads(),
            on_usage,
            self._settings.own_cpu_s,
        )

    async def written(self) -> tuple[ComponentLog, ...]:
        return await self._deployed.written() if self._deployed is not None else ()

    async def undeploy(self) -> None:
        if self._deployed is not None and self._docker is not None:
            with speaking_to(f"target {self._deployed.target.name}"):
                await self._deployed.remove()
        self._deployed = None
        self._choice = self._path = self._packets = None

    async def close(self) -> None:
        docker, self._docker = self._docker, None
        if docker is None:
            return
        try:
            with speaking_to("the Docker engine"):
                await strays.remove(docker, *await strays.labelled(docker, self._settings.session))
        except WorkbenchError as error:
            # Whoever closes has nothing better to do; the next start's reaper removes the rest.
            log.warning("containers are left behind", error=str(error))
        finally:
            self._deployed = None
            self._networks = []
            await docker.close()

    @staticmethod
    async def examine() -> tuple[Check, ...]:
        return await doctor.examine()

    @staticmethod
    async def reap(alive: frozenset[str]) -> tuple[str, ...]:
        async with connect() as docker:
            with speaking_to("the Docker engine"):
                return await strays.reap(docker, alive)

    @staticmethod
    async def prepare(say: Callable[[str], None]) -> None:
        await oha_binary.find_or_build(Listener(say, lambda line: log.info("oha", line=line)))

    def _engine(self) -> aiodocker.Docker:
        if self._docker is None:
            raise LabError("the lab is not open")
        return self._docker

    @asynccontextmanager
    async def _on_target(self) -> AsyncIterator[Deployed]:
        self._engine()
        if self._deployed is None or (self._choice is None and self._packets is None):
            raise LabError("no target is deployed")
        with speaking_to(f"target {self._deployed.target.name}"):
            yield self._deployed

    def _pins(self, target: Target) -> dict[str, tuple[int, ...]]:
        """Cores by component: as the campaign's managers say, else disjoint, else none."""
        given = {m.name: m.cpuset for m in self._campaign.managers if m.cpuset}
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
            return {n: wiring.parse_cpuset(given[n]) for n in names if n in given}
        return wiring.pin(self._cores, wanted) or {}

    def _shared_cores(self, targets: list[str]) -> str:
        return (
            f"this host's {self._cores} cores are too few to keep source, functions and sink of "
            f"{', '.join(targets)} apart: they share them, and disturb each other"
        )
