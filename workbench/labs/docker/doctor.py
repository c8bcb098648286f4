"""The Docker lab's lines of `workbench doctor`."""

from __future__ import annotations

import shutil
from pathlib import Path

import aiodocker
import aiohttp

from workbench.domain.errors import LabError
from workbench.domain.lab import Check
from workbench.labs.components import disks
from workbench.labs.docker import debian_tree, oha_binary, strays
from workbench.labs.docker.base_image import BASE, SUITE, present
from workbench.labs.docker.engine import connect, speaking_to
from workbench.labs.docker.facts import cgroup_version
from workbench.labs.docker.images import LABEL
from workbench.probes import host

LEAST_CORES = 4
"""Source, sink and two functions on cores of their own."""


def is_local(docker: aiodocker.Docker) -> bool:
    """Whether the engine is reached by a socket of this host."""
    # The connector for ssh is a kind of the one for sockets.
    return type(docker.connector) is aiohttp.UnixConnector


async def examine() -> tuple[Check, ...]:
    """What the lab needs, what of it is here, and how to get the rest."""
    try:
        async with connect() as docker:
            with speaking_to("the Docker engine"):
                return await _examine(docker)
    except LabError as error:
        return (Check("docker engine", "missing", error.what, error.remedy or ""),)


async def _examine(docker: aiodocker.Docker) -> tuple[Check, ...]:
    info = await docker.system.info()
    version = await docker.version()
    images = await docker.images.list(filters={"label": [LABEL]})
    containers, _ = await strays.labelled(docker)
    stray = [c for c in containers if strays.is_stray(c.get("Labels") or {}, frozenset())]
    return (
        Check("docker engine", "ok", f"{version['Version']} on {info['OperatingSystem']}"),
        Check(
            "cgroups",
            "ok" if info.get("CpuCfsQuota", True) else "missing",
            f"{cgroup_version(info)}, {info.get('CgroupDriver', 'unknown')} driver",
            "Boot a kernel with CPU quotas (CONFIG_CFS_BANDWIDTH)",
        ),
        _cores(int(info["NCPU"])),
        _disk(Path(info["DockerRootDir"]), is_local(docker)),
        _conntrack(),
        Check(
            "docker images",
            "ok" if images else "warning",
            f"{len(images)} built",
            "Run `workbench images build`",
        ),
        await _base(docker),
        _oha(),
        Check(
            "docker strays",
            "warning" if stray else "ok",
            f"{len(stray)} containers of dead sessions",
            "Run `workbench reap`",
        ),
    )


def _cores(cores: int) -> Check:
    return Check(
        "docker cores",
        "ok" if cores >= LEAST_CORES else "warning",
        f"{cores}",
        f"Below {LEAST_CORES} cores source, functions and sink share them; figures are noisier",
    )


def _disk(folder: Path, local: bool) -> Check:
    why = disks.unlimitable(folder, local)
    return Check(
        "docker disk",
        "ok" if why is None else "warning",
        "volumes can be held to a rate" if why is None else f"cannot be allotted: {why}",
        "Leave `disk` out of campaigns",
    )


def _conntrack() -> Check:
    used, limit = host.read_conntrack()
    if not limit:
        return Check("conntrack", "ok", "connections are not tracked")
    full = used > 0.5 * limit
    return Check(
        "conntrack",
        "warning" if full else "ok",
        f"{used} of {limit} entries",
        "Raise net.netfilter.nf_conntrack_max, or wait two minutes",
    )


async def _base(docker: aiodocker.Docker) -> Check:
    if await present(docker, BASE):
        return Check("base image", "ok", f"{BASE} is on the engine")
    if lacking := debian_tree.lacking(SUITE):
        return Check(
            "base image",
            "warning",
            f"{BASE} must come from a registry: {lacking}",
            "Load it into the engine (docker load) where no registry answers",
        )
    return Check("base image", "ok", f"{BASE} is pulled, or made of Debian's packages")


def _oha() -> Check:
    if oha_binary.cached().is_file():
        return Check("oha", "ok", f"{oha_binary.VERSION} is built and kept")
    if shutil.which("oha"):
        return Check("oha", "ok", "installed on this host")
    if why := oha_binary.trouble():
        said = f"could not be built: {why} steady and hey stand in"
        return Check("oha", "warning", said, "`workbench images build` tries again")
    return Check(
        "oha",
        "ok",
        "built in the engine while nothing is measured; steady and hey stand in until then",
    )
