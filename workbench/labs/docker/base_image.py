"""The base of all images: pulled where a registry answers, else made of Debian's packages."""

from __future__ import annotations

import asyncio

import aiodocker

from workbench.domain.errors import LabError
from workbench.labs.docker import debian_tree
from workbench.labs.once import alone
from workbench.labs.programs import Listener, StepProgress

SUITE = "bookworm"
REPOSITORY = "debian"
TAG = f"{SUITE}-slim"
BASE = f"{REPOSITORY}:{TAG}"
PULL_TIMEOUT_S = 300
MB = 1_000_000


async def ensure_base(docker: aiodocker.Docker, listener: Listener) -> None:
    """Bring `debian:bookworm-slim` to the engine. Raises `LabError` where nothing can."""
    if await present(docker, BASE):
        return
    async with alone("base-image", BASE, listener):
        if await present(docker, BASE):
            return
        try:
            async with asyncio.timeout(PULL_TIMEOUT_S):
                await pull(docker, BASE, listener)
            return
        except (aiodocker.DockerError, TimeoutError) as error:
            listener.step(f"no registry gave {BASE}: {_reason(error)}")
        if lacking := debian_tree.lacking(SUITE):
            raise LabError(
                f"the base image {BASE} can neither be pulled nor made here: {lacking}",
                remedy="Load it into the engine from elsewhere (docker load); the simulated lab "
                "(--lab sim) needs no images",
            )
        await debian_tree.make(docker, SUITE, REPOSITORY, TAG, listener)
        if not await present(docker, BASE):
            raise LabError("the engine did not take the base image", where=BASE)


async def pull(docker: aiodocker.Docker, reference: str, listener: Listener) -> None:
    """Pull an image, and say how much of it has come. Raises `DockerError` where it does not."""
    listener.step(f"pulling {reference}")
    progress = StepProgress(listener, f"pulling {reference}", "MB")
    sizes: dict[str, tuple[int, int]] = {}
    async for message in docker.images.pull(reference, stream=True):
        layer, detail = str(message.get("id", "")), message.get("progressDetail") or {}
        if message.get("status") == "Downloading" and detail.get("total"):
            sizes[layer] = int(detail["current"]), int(detail["total"])
        elif layer in sizes:  # whole by now
            sizes[layer] = (sizes[layer][1],) * 2
        done, total = (
            (sum(sides) for sides in zip(*sizes.values(), strict=True)) if sizes else (0, 0)
        )
        if total:
            progress.reached(round(done / MB), max(1, round(total / MB)))


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
