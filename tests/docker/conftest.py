"""One lab at a time over images that are built once; whatever a test leaves is removed."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from types import MappingProxyType

import host_needs
import pytest
from docker_targets import OpenLab, campaign, templates

from workbench.domain.campaign import Agent, EvidenceKind, Manager
from workbench.domain.competitors import COMPETITOR
from workbench.domain.errors import LabError
from workbench.domain.parameters import LoadModel, Parameter
from workbench.domain.topology import Target, VnfTemplate
from workbench.labs.base import LabSettings
from workbench.labs.docker import DockerLab
from workbench.labs.docker.images import build_all_images
from workbench.labs.programs import Listener
from workbench.paths import Workspace


@pytest.fixture(scope="session")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[VnfTemplate, ...]:
    """The shipped templates, their images built."""
    shipped = templates(Workspace(tmp_path_factory.mktemp("workspace")))
    try:
        asyncio.run(build_all_images(shipped, listener=Listener(print, print)))
    except LabError as error:
        host_needs.no_base_image(error)
        raise
    return shipped


@pytest.fixture
def session() -> str:
    return f"test-{secrets.token_hex(4)}"


@pytest.fixture
async def open_lab(known: tuple[VnfTemplate, ...], session: str) -> AsyncIterator[OpenLab]:
    """Opens labs of one session; templates can be changed on the way in, cores given."""
    labs: list[DockerLab] = []

    async def make(
        load: LoadModel,
        *targets: Target,
        changed: VnfTemplate | None = None,
        oversubscribe: bool = False,
        url: str = "",
        generator: str = "",
        kpi: str = "p95_ms",
        most: float | None = None,
        cpusets: Mapping[str, str] = MappingProxyType({}),
        request_timeout_s: float = 5.0,
        competitors: tuple[str, ...] = (),
        evidence: EvidenceKind = "kernel",
    ) -> DockerLab:
        used = tuple(changed if changed and t.name == changed.name else t for t in known)
        settings = replace(LabSettings(session), oversubscribe=oversubscribe)
        made = replace(campaign(used, targets, load, most), generator=generator, kpi=kpi)
        made = replace(made, evidence=evidence)
        managers = tuple(Manager(name, "here", cores) for name, cores in cpusets.items())
        windows = replace(made.windows, request_timeout_s=request_timeout_s)
        made = replace(made, managers=managers, windows=windows)
        if competitors:
            varied = (*made.workload, Parameter(COMPETITOR, competitors))
            made = replace(made, workload=varied)
        if url:
            made = replace(made, agents=(Agent("elsewhere", "docker", url),))
        lab = DockerLab(made, settings)
        labs.append(lab)
        await lab.open()
        return lab

    yield make
    # The last one first: a lab whose engine a test took away leaves its containers to another.
    for lab in reversed(labs):
        await lab.close()
