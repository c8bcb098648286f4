"""Deployments that fail or are cancelled halfway: no namespace, group or folder of them is left."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from left_groups import left_groups

from workbench.descriptors.loading import load_campaign
from workbench.domain.errors import LabError
from workbench.domain.parameters import Configuration
from workbench.domain.topology import VnfTemplate
from workbench.labs.attached.source import make_source
from workbench.labs.base import LabSettings
from workbench.labs.netns import NetnsLab
from workbench.paths import Workspace
from workbench.probes.process import PROC

CHAIN = "haproxy-tinyproxy"
HALF = Configuration({"haproxy.vcpu": 0.25, "tinyproxy.vcpu": 0.25}, {"filesize_bytes": 10_000.0})

pytestmark = [
    pytest.mark.needs("apt-get", "dpkg-deb", "ip", "nsenter"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces"),
]


def left_of(session: str) -> list[str]:
    """Groups, folders and holders of namespaces of a session; a holder names its folder."""
    holders = []
    for command in PROC.glob("[0-9]*/cmdline"):
        try:
            words = command.read_text().split("\0")
        except OSError:
            continue
        if "unshare" in words and any(f".{session}." in word for word in words):
            holders.append(command.parent.name)
    folders = [folder.name for folder in Path("/var/tmp").glob(f"*.{session}.*")]
    return [*left_groups(session), *folders, *holders]


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[NetnsLab]:
    loaded = load_campaign("demo", workspace=Workspace(tmp_path)).campaign
    opened = NetnsLab(loaded, LabSettings(f"failing-{os.getpid()}"))
    await opened.open()
    try:
        yield opened
    finally:
        await opened.close()


async def test_nothing_is_left_where_one_of_several_components_cannot_be_made(
    lab: NetnsLab,
) -> None:
    lacking = {"TOKEN": "${NOBODY_HAS_SET_THIS}"}
    lab._campaign = replace(
        lab._campaign,
        templates=tuple(
            replace(t, environment=lacking) if t.name == "tinyproxy" else t
            for t in lab._campaign.templates
        ),
    )
    with pytest.raises(LabError, match="NOBODY_HAS_SET_THIS"):
        await lab.deploy(lab._campaign.target_plan(CHAIN).target, HALF)
    await lab.close()
    assert left_of(lab._settings.session) == []


async def test_nothing_is_left_of_a_deployment_that_is_cancelled(lab: NetnsLab) -> None:
    target = lab._campaign.target_plan(CHAIN).target
    deploying = asyncio.create_task(lab.deploy(target, HALF))
    await until(lambda: len(left_groups(lab._settings.session)) == 4)
    assert left_of(lab._settings.session)
    deploying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deploying
    await lab.close()
    assert left_of(lab._settings.session) == []


async def test_nothing_is_left_of_a_source_that_cannot_be_set_up() -> None:
    session = f"sourceless-{os.getpid()}"
    impossible = {"/proc/nowhere/program": b"#!/bin/sh\n"}
    with pytest.raises(LabError, match="/proc/nowhere/program cannot be written"):
        await make_source(session, None, VnfTemplate("source"), impossible)
    assert left_of(session) == []
