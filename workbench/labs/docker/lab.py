"""`DockerLab`: the protocol of a lab over containers of a Docker engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import aiodocker
import structlog

from workbench.descriptors.capacity import check_fits_host
from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError, WorkbenchError
from workbench.domain.lab import OHA_LATER, Check, HostFacts
from workbench.domain.topology import Target
from workbench.labs.base import LabCosts, LabSettings
from workbench.labs.components import allotments, disks, mirroring, preflight, wiring
from workbench.labs.components.allotments import HostMemory
from workbench.labs.components.lab import ComponentLab
from workbench.labs.docker import doctor, oha_binary, strays
from workbench.labs.docker.containers import LEAST_MEMORY, Container, Workshop
from workbench.labs.docker.engine import agent_url, connect, dial, speaking_to
from workbench.labs.docker.facts import facts
from workbench.labs.docker.images import build_images
from workbench.labs.programs import Listener

log = structlog.get_logger(__name__)

COSTS = LabCosts(deploy_s=2.5, allocate_s=0.02, drive_overhead_s=0.3)
"""Measured on two busy cores, two functions in the chain; a restart of one costs 0.6 s more."""


class DockerLab(ComponentLab):
    """Functions, source and sink in containers of a local or remote engine.

    Parameters
    ----------
    campaign : what is to be profiled; its first agent of kind `docker` may name the engine.
    settings : `session` labels every container and network.
    """

    name = "docker"
    generators_made_later: Mapping[str, str] = {"oha": OHA_LATER}

    def __init__(self, campaign: Campaign, settings: LabSettings) -> None:
        super().__init__(campaign, settings)
        self._docker: aiodocker.Docker | None = None
        self._images: dict[str, str] = {}
        self._networks: list[str] = []

    @property
    def costs(self) -> LabCosts:
        return COSTS

    async def open(self) -> HostFacts:
        self._docker = docker = await dial(agent_url(self._campaign))
        with speaking_to("the Docker engine"):
            info = await docker.system.info()
            version = await docker.version()
        self._cores = int(info["NCPU"])
        if not self._settings.oversubscribe:
            check_fits_host(self._campaign, self._cores)
        self._check_wiring()
        if not info.get("CpuCfsQuota", True):
            raise LabError(
                "its kernel has no CPU quota",
                where="the Docker engine",
                remedy="Boot a kernel with CONFIG_CFS_BANDWIDTH",
            )
        memory = HostMemory(
            int(info["MemTotal"]),
            LEAST_MEMORY,
            info.get("MemoryLimit", True),
            disks.unlimitable(Path(info["DockerRootDir"]), doctor.is_local(docker)),
        )
        await allotments.check(self._campaign, memory, doctor.is_local(docker))
        await mirroring.check(self._campaign, doctor.is_local(docker))
        self._images = await build_images(
            self._needed(),
            listener=Listener(self._say, lambda line: log.info("images", line=line)),
            docker=docker,
            builds_oha=self._campaign.generator == "oha",
            known=self._settings.images,
            packages=preflight.packages(self._campaign),
        )
        return facts(version, info, self._images, self._details(), doctor.is_local(docker))

    def _say(self, line: str) -> None:
        log.info("images", line=line)
        self._settings.say(line)

    def _maker(self) -> Workshop:
        return Workshop(
            self._engine(), self._settings.session, strays.Owner.this_process(), self._images
        )

    async def _networks_for(self, target: Target) -> Sequence[str]:
        workshop = self._maker()
        self._networks = await workshop.networks_left(self._networks)
        while len(self._networks) < len(wiring.networks(target, self._campaign.templates)):
            self._networks.append(await workshop.network())
        return self._networks

    def _speaking(self, where: str) -> AbstractContextManager[None]:
        return speaking_to(where)

    def known_as(self, component: str) -> dict[str, str]:
        """Its container's id, which cAdvisor's `id` ends in."""
        found = self._deployed.components if self._deployed is not None else []
        mine = next((c for c in found if c.name == component), None)
        return {"container": mine.container.id} if isinstance(mine, Container) else {}

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
