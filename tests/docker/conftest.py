"""One lab at a time over images that are built once; whatever a test leaves is removed."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from docker_targets import OpenLab, campaign, templates

from workbench.domain.campaign import Agent
from workbench.domain.parameters import LoadModel
from workbench.domain.topology import Target, VnfTemplate
from workbench.labs.base import LabSettings
from workbench.labs.docker import DockerLab
from workbench.labs.docker.images import build_images
from workbench.paths import Workspace


@pytest.fixture(scope="session")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[VnfTemplate, ...]:
    """The shipped templates, their images built."""
    shipped = templates(Workspace(tmp_path_factory.mktemp("workspace")))
    asyncio.run(build_images(shipped, on_line=print))
    return shipped


@pytest.fixture
def session() -> str:
    return f"test-{secrets.token_hex(4)}"


@pytest.fixture
async def open_lab(known: tuple[VnfTemplate, ...], session: str) -> AsyncIterator[OpenLab]:
    """Opens labs of one session; templates can be changed on the way in."""
    labs: list[DockerLab] = []

    async def make(
        load: LoadModel,
        *targets: Target,
        changed: VnfTemplate | None = None,
        oversubscribe: bool = False,
        url: str = "",
    ) -> DockerLab:
        used = tuple(changed if changed and t.name == changed.name else t for t in known)
        settings = replace(LabSettings(session), oversubscribe=oversubscribe)
        made = campaign(used, targets, load)
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
