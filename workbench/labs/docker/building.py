"""Builds an image of a context: files by path, one of which is the Dockerfile."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections import deque
from collections.abc import Mapping

import aiodocker

from workbench.domain.errors import LabError
from workbench.labs.programs import TAIL, Listener

PREFIX = "vnf-workbench"
PROXY_VARIABLES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")
"""Build arguments that every Dockerfile takes unasked, so that apt gets out where the host does."""

STALE = "Unable to fetch some archives"
"""What apt says where a list names packages that its mirror has no more."""

Context = Mapping[str, bytes]
"""Files of a build by path."""


def digest(context: Context) -> str:
    """Twelve characters that change with any name or byte of the context."""
    summary = hashlib.sha256()
    for path, content in sorted(context.items()):
        summary.update(f"{path}\0{len(content)}\0".encode())
        summary.update(content)
    return summary.hexdigest()[:12]


def pack(context: Context) -> io.BytesIO:
    """The context as a tar; times and owners are left out, modes are all executable.

    A file's own mode may be lost in a wheel; a Dockerfile that copies a script expects to run it.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, content in sorted(context.items()):
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            entry.mode = 0o755
            tar.addfile(entry, io.BytesIO(content))
    packed.seek(0)
    return packed


def proxies() -> dict[str, str]:
    """The host's proxy settings, in both spellings."""
    found = {}
    for name in PROXY_VARIABLES:
        for spelling in (name, name.upper()):
            if value := os.environ.get(spelling):
                found[spelling] = value
    return found


async def build(
    docker: aiodocker.Docker,
    context: Context,
    tag: str,
    listener: Listener,
    *,
    labels: Mapping[str, str] | None = None,
    anew: bool = False,
) -> None:
    """Build and tag it. Raises `BuildFailed` with its last lines.

    Layers of earlier builds are used again, if not `anew`. Where packages of a list that is kept
    that way are gone from their mirror, it is built once more without.
    """
    labels = labels or {}
    try:
        await _build(docker, context, tag, listener, labels, nocache=anew)
    except BuildFailed as error:
        if anew or STALE not in error.what:
            raise
        listener.step(f"the package lists are too old for {tag}: fetching them again")
        await _build(docker, context, tag, listener, labels, nocache=True)


class BuildFailed(LabError):
    """A Dockerfile that does not build; the sentence holds its last lines."""


async def _build(
    docker: aiodocker.Docker,
    context: Context,
    tag: str,
    listener: Listener,
    labels: Mapping[str, str],
    *,
    nocache: bool,
) -> None:
    tail: deque[str] = deque(maxlen=TAIL)
    messages = docker.images.build(
        fileobj=pack(context),
        encoding="identity",
        tag=tag,
        labels=dict(labels),
        buildargs=proxies(),
        nocache=nocache,
        rm=True,
        forcerm=True,
        stream=True,
    )
    try:
        async for message in messages:
            for line in str(message.get("stream", "")).splitlines():
                if line.strip():
                    listener.line(line.rstrip())
                    tail.append(line.rstrip())
    except aiodocker.DockerError as error:
        said = "\n".join([*tail, str(error.message)])
        raise BuildFailed(f"its image cannot be built: {said}", where=tag) from error
