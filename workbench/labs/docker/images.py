"""Images of functions, source and sink: built from the Dockerfiles in `templates/`, or given.

An image is tagged with a digest of everything that went into it, so that a template that did not
change is not built again, and a change is never missed.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import aiodocker

from workbench.domain.errors import LabError
from workbench.domain.topology import VnfTemplate
from workbench.labs.docker import oha_binary
from workbench.labs.docker.base_image import BASE, ensure_base, present
from workbench.labs.docker.engine import connect, speaking_to
from workbench.labs.docker.programs import Listener
from workbench.paths import located

LABEL = "vnf-workbench.template"
PREFIX = "vnf-workbench"
DESCRIPTOR = "vnf.yaml"
"""Not part of the context: what it configures is rendered into the container, not the image."""
PROXY_VARIABLES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")
"""Build arguments that every Dockerfile takes unasked, so that apt gets out where the host does."""

Context = Mapping[str, bytes]
"""Files of a build by path."""


async def build_images(
    templates: Iterable[VnfTemplate],
    *,
    listener: Listener,
    docker: aiodocker.Docker | None = None,
) -> dict[str, str]:
    """Build or pull what is missing; the image id of every template, by name.

    Raises
    ------
    LabError
        Where there is no engine, no base image, or a Dockerfile fails; with its last lines.
    """
    if docker is None:
        async with connect() as own:
            return await build_images(templates, listener=listener, docker=own)
    ids: dict[str, str] = {}
    with speaking_to("the Docker engine"):
        for template in templates:
            if template.image:
                ids[template.name] = await _given(docker, template, listener)
            else:
                ids[template.name] = await _built(docker, template, listener)
    return ids


async def _given(docker: aiodocker.Docker, template: VnfTemplate, listener: Listener) -> str:
    if not await present(docker, template.image):
        listener.step(f"pulling {template.image}")
        try:
            await docker.images.pull(template.image)
        except aiodocker.DockerError as error:
            raise LabError(
                f"image {template.image} is not on the engine and cannot be pulled: "
                f"{error.message}",
                where=f"template {template.name}",
                remedy="Load it into the engine, or correct its name",
            ) from error
    return str((await docker.images.inspect(template.image))["Id"])


async def _built(docker: aiodocker.Docker, template: VnfTemplate, listener: Listener) -> str:
    context = read_context(located(template.build))
    if template.role == "source":
        context = {**context, **await _oha(listener)}
    tag = f"{PREFIX}/{template.name}:{digest(context)}"
    if not await present(docker, tag):
        await ensure_base(docker, listener)
        listener.step(f"building {tag}")
        await _build(docker, template, context, tag, listener)
    return str((await docker.images.inspect(tag))["Id"])


async def _oha(listener: Listener) -> Context:
    binary = await oha_binary.find_or_build(listener)
    # The folder is always there, so that the Dockerfile can copy it with or without a binary.
    empty = {"bin/.keep": b""}
    return {**empty, "bin/oha": binary.read_bytes()} if binary else empty


def read_context(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but its descriptor, by path; executables stay executable."""
    if not (folder / "Dockerfile").is_file():
        raise LabError(
            "there is no Dockerfile", where=str(folder), remedy="Write one, or name an `image`"
        )
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != DESCRIPTOR
    }


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


async def _build(
    docker: aiodocker.Docker, template: VnfTemplate, context: Context, tag: str, listener: Listener
) -> None:
    tail: list[str] = []
    messages = docker.images.build(
        fileobj=pack(context),
        encoding="identity",
        tag=tag,
        labels={LABEL: template.name},
        buildargs=proxies(),
        rm=True,
        forcerm=True,
        stream=True,
    )
    try:
        async for message in messages:
            for line in str(message.get("stream", "")).splitlines():
                if line.strip():
                    listener.line(line.rstrip())
                    tail = [*tail[-5:], line.rstrip()]
    except aiodocker.DockerError as error:
        said = "\n".join([*tail, str(error.message)])
        raise LabError(
            f"its image cannot be built: {said}",
            where=f"template {template.name}",
            remedy=f"Correct {located(template.build) / 'Dockerfile'}; it starts from {BASE}",
        ) from error
