"""The base of all images: pulled where a registry answers, else made from the host's own mirror."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import aiodocker

from workbench.domain.errors import LabError
from workbench.labs.docker import apt_sources
from workbench.labs.docker.programs import Listener, run

SUITE = "bookworm"
REPOSITORY = "debian"
TAG = f"{SUITE}-slim"
BASE = f"{REPOSITORY}:{TAG}"
PULL_TIMEOUT_S = 300
BLOCK = 1 << 20
LEFTOVERS = ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale")
"""Folders whose content no image needs; the debootstrap tree is half as large without."""


async def ensure_base(docker: aiodocker.Docker, listener: Listener) -> None:
    """Bring `debian:bookworm-slim` to the engine. Raises `LabError` where nothing can."""
    if await present(docker, BASE):
        return
    listener.step(f"pulling {BASE}")
    try:
        async with asyncio.timeout(PULL_TIMEOUT_S):
            await docker.images.pull(BASE)
        return
    except (aiodocker.DockerError, TimeoutError) as error:
        listener.step(f"no registry gave {BASE}: {_reason(error)}")
    await _bootstrap(docker, listener)


async def present(docker: aiodocker.Docker, reference: str) -> bool:
    """Whether the engine holds an image of that name."""
    try:
        await docker.images.inspect(reference)
    except aiodocker.DockerError as error:
        if error.status == 404:
            return False
        raise
    return True


def _reason(error: Exception) -> str:
    message = error.message if isinstance(error, aiodocker.DockerError) else "it took too long"
    return str(message).strip().splitlines()[-1]


async def _bootstrap(docker: aiodocker.Docker, listener: Listener) -> None:
    program = shutil.which("debootstrap")
    if os.geteuid() != 0 or program is None:
        missing = "debootstrap is not installed" if program is None else "this user is not root"
        raise LabError(
            f"the base image {BASE} can neither be pulled nor made here: {missing}",
            remedy="Load it into the engine from elsewhere, or run `workbench images build` as "
            "root with debootstrap installed; the simulated lab (--lab sim) needs no images",
        )
    # /tmp is mounted without device files on many hosts, which debootstrap refuses.
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="vnf-workbench-") as folder:
        root = Path(folder) / "root"
        sources = apt_sources.read_sources()
        mirror = apt_sources.mirror(sources, SUITE)
        secure = ("--include=ca-certificates",) if mirror and mirror.startswith("https:") else ()
        listener.step(f"making {BASE} with debootstrap, once on this engine: about half a minute")
        code, tail = await run(
            (
                *(program, "--variant=minbase", *secure, SUITE, str(root)),
                *((mirror,) if mirror else ()),
            ),
            listener.line,
        )
        if code != 0:
            raise LabError(
                f"debootstrap failed: {tail}",
                where=BASE,
                remedy="See that the host's apt can reach its mirror",
            )
        await asyncio.to_thread(_finish, root, apt_sources.debian_sources(sources, SUITE))
        await _import(docker, root)


def _finish(root: Path, sources: tuple[apt_sources.AptSource, ...]) -> None:
    if sources:
        # debootstrap knows the main archive only; images should get security fixes as well.
        (root / "etc/apt/sources.list").write_text(apt_sources.render(sources))
    for name in LEFTOVERS:
        for entry in (root / name).glob("*"):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()


async def _import(docker: aiodocker.Docker, root: Path) -> None:
    tar = await asyncio.create_subprocess_exec(
        *("tar", "--numeric-owner", "-C", str(root), "-c", "."), stdout=asyncio.subprocess.PIPE
    )

    async def blocks() -> AsyncIterator[bytes]:
        assert tar.stdout is not None
        while block := await tar.stdout.read(BLOCK):
            yield block

    # aiodocker's import is `docker load`; a bare tree comes in by `docker import`.
    async with docker._query(
        "images/create",
        method="POST",
        params={"fromSrc": "-", "repo": REPOSITORY, "tag": TAG},
        headers={"Content-Type": "application/x-tar"},
        data=blocks(),
    ) as response:
        answer = await response.text()
    if await tar.wait() != 0 or not await present(docker, BASE):
        raise LabError(f"the engine did not take the base image: {answer[-200:]}", where=BASE)
