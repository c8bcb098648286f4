"""Making what is made once: by one process of the host at a time, in containers that go with it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiodocker
from aiodocker.containers import DockerContainer

from workbench.labs.docker.strays import MAKING_LABEL, Owner, remove_container

STDOUT = 1


class Lines:
    """Cuts what a program writes into lines, also those that it draws over each other."""

    _ENDS = re.compile(rb"[\r\n]+")

    def __init__(self) -> None:
        self._rest = b""

    def of(self, data: bytes) -> list[str]:
        """The lines that are whole by now; empty ones are left out."""
        *whole, self._rest = self._ENDS.split(self._rest + data)
        return [text for line in whole if (text := line.decode(errors="replace").rstrip())]


@asynccontextmanager
async def container(
    docker: aiodocker.Docker,
    image: str,
    command: tuple[str, ...],
    *,
    environment: Mapping[str, str],
    settings: Mapping[str, Any],
) -> AsyncIterator[DockerContainer]:
    """A container that is not started yet; it is removed at the end, whatever it does then."""
    created = await docker.containers.create(
        {
            "Image": image,
            "Cmd": list(command),
            "Env": [f"{key}={value}" for key, value in environment.items()],
            "Labels": {MAKING_LABEL: str(Owner.this_process())},
            # What it says is read as it comes, and may be a whole file system.
            "HostConfig": {**settings, "LogConfig": {"Type": "none"}},
        }
    )
    try:
        yield created
    finally:
        await remove_container(docker, created.id)


async def output(made: DockerContainer) -> AsyncIterator[tuple[int, bytes]]:
    """Start it; what it writes until it ends, with the number of the stream."""
    stream = made.attach(stdout=True, stderr=True)
    async with stream:
        await made.start()
        while message := await stream.read_out():
            yield message.stream, message.data


async def exit_code(made: DockerContainer) -> int:
    return int((await made.wait())["StatusCode"])
