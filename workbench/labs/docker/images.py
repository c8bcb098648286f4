"""Images of functions, source and sink: built from the Dockerfiles in `templates/`, or given.

An image is tagged with a digest of everything that went into it, so that a template that did not
change is not built again, and a change is never missed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import aiodocker

from workbench import plugins
from workbench.domain.errors import LabError
from workbench.domain.lab import OHA_LATER
from workbench.domain.topology import VnfTemplate
from workbench.labs.docker import oha_binary
from workbench.labs.docker.base_image import BASE, ensure_base, present, pull
from workbench.labs.docker.building import PREFIX, BuildFailed, Context, build, digest
from workbench.labs.docker.engine import connect, speaking_to
from workbench.labs.once import alone
from workbench.labs.programs import Listener, StepProgress
from workbench.paths import located
from workbench.traffic.packets import PacketGenerator

LABEL = "vnf-workbench.template"
DESCRIPTOR = "vnf.yaml"
"""Not part of the context: what it configures is rendered into the container, not the image."""
LISTS = f"FROM {BASE}\nRUN apt-get -qq update\n"
"""How Dockerfiles of functions begin: the engine makes this layer once and all share it."""
TAKES_GENERATORS = re.compile(
    rb"^\s*(?:COPY|ADD)\s.*(?<![\w/.-])(?:\./)?(?:packages|bin/)", re.M | re.I
)
"""In the Dockerfile of a source that holds whichever generators a campaign needs. One that does not
is the same image for all of them."""
AT_ONCE = 3
"""Images that are built beside each other: each waits for downloads and for the disk."""

NOT_BUILT = (
    "oha is not built yet: this session measures with steady (open loops) or hey (closed ones), "
    f"and it {OHA_LATER}, or by `workbench images build`"
)


async def build_images(
    templates: Iterable[VnfTemplate],
    *,
    listener: Listener,
    docker: aiodocker.Docker | None = None,
    builds_oha: bool = True,
    known: Mapping[str, str] | None = None,
    packages: Sequence[str] = (),
) -> dict[str, str]:
    """Build or pull what is missing; the image id of every template, by name.

    Parameters
    ----------
    builds_oha : whether to wait for the minutes that takes; else the source goes without.
    known : images that a session was begun with, by template: its source is taken as it was, since
        one that holds oha meanwhile would measure by another definition.
    packages : Debian packages of the generators that the source is to hold (`preflight.packages`).

    Raises
    ------
    LabError
        Where there is no engine, no base image, or a Dockerfile fails; with its last lines.
    """
    if docker is None:
        async with connect() as own:
            return await build_images(
                templates,
                listener=listener,
                docker=own,
                builds_oha=builds_oha,
                known=known,
                packages=packages,
            )
    with speaking_to("the Docker engine"):
        wanted = [
            await _wanted(docker, template, listener, builds_oha, known or {}, packages)
            for template in templates
        ]
        missing = [image for image in wanted if not await present(docker, image.reference)]
        if missing:
            await _make(docker, missing, listener)
        return {image.template.name: await _id(docker, image.reference) for image in wanted}


async def build_all_images(
    templates: Sequence[VnfTemplate], *, listener: Listener
) -> dict[str, tuple[str, ...]]:
    """Build what any campaign may need: the source once with each generator.

    Ids by template, those of the source by generator. Raises `LabError` as `build_images` does.
    """
    kinds, _ = plugins.load_all("traffic")
    made = [kind() for kind in kinds.values()]
    packages = dict.fromkeys(g.packages for g in made if not isinstance(g, PacketGenerator))
    found: dict[str, dict[str, None]] = {template.name: {} for template in templates}
    for one in packages:
        built = await build_images(templates, listener=listener, packages=one)
        for name, image in built.items():
            found[name][image] = None
    return {name: tuple(ids) for name, ids in found.items()}


@dataclass(frozen=True)
class _Image:
    """What a template needs: what the engine calls it, and of what it is built where it is."""

    template: VnfTemplate
    reference: str
    context: Context


async def _id(docker: aiodocker.Docker, reference: str) -> str:
    return str((await docker.images.inspect(reference))["Id"])


async def _wanted(
    docker: aiodocker.Docker,
    template: VnfTemplate,
    listener: Listener,
    builds_oha: bool,
    known: Mapping[str, str],
    packages: Sequence[str],
) -> _Image:
    if template.image:
        await _pull(docker, template, listener)
        return _Image(template, template.image, {})
    if template.role == "source":
        before = known.get(template.name, "")
        if before and await present(docker, before):
            return _Image(template, before, {})
    context = read_context(located(template.build))
    if template.role == "source" and TAKES_GENERATORS.search(context["Dockerfile"]):
        context |= await _oha(docker, listener, builds_oha)
        context["packages"] = "".join(f"{package}\n" for package in packages).encode()
    return _Image(template, f"{PREFIX}/{template.name}:{digest(context)}", context)


async def _pull(docker: aiodocker.Docker, template: VnfTemplate, listener: Listener) -> None:
    if await present(docker, template.image):
        return
    try:
        await pull(docker, template.image, listener)
    except aiodocker.DockerError as error:
        raise LabError(
            f"image {template.image} is not on the engine and cannot be pulled: {error.message}",
            where=f"template {template.name}",
            remedy="Load it into the engine, or correct its name",
        ) from error


async def _make(docker: aiodocker.Docker, missing: list[_Image], listener: Listener) -> None:
    await ensure_base(docker, listener)
    async with alone("images", "images of functions", listener):
        left = [image for image in missing if not await present(docker, image.reference)]
        if len(left) > 1:
            # Anew each time: a mirror has no more what is named by a list of last month.
            listener.step(f"building {len(left)} images: fetching the lists of packages")
            lists = {"Dockerfile": LISTS.encode()}
            await build(docker, lists, f"{PREFIX}/package-lists", listener, anew=True)
        progress = StepProgress(listener, "building images", "done")
        gate = asyncio.Semaphore(AT_ONCE)
        done = 0

        async def make(image: _Image) -> None:
            nonlocal done
            async with gate:
                listener.step(f"building {image.reference}")
                await _build(docker, image, listener)
            done += 1
            progress.reached(done, len(left))

        try:
            async with asyncio.TaskGroup() as group:
                for image in left:
                    group.create_task(make(image))
        except BaseExceptionGroup as errors:  # one is enough to say; the others were stopped
            raise errors.exceptions[0] from None


async def _build(docker: aiodocker.Docker, image: _Image, listener: Listener) -> None:
    template = image.template
    labels = {LABEL: template.name}
    try:
        await build(docker, image.context, image.reference, listener, labels=labels)
    except BuildFailed as error:
        raise LabError(
            error.what,
            where=f"template {template.name}",
            remedy=f"Correct {located(template.build) / 'Dockerfile'}; it starts from {BASE}",
        ) from error


async def _oha(docker: aiodocker.Docker, listener: Listener, builds: bool) -> dict[str, bytes]:
    binary = await (oha_binary.find_or_build(listener, docker) if builds else oha_binary.find())
    if binary is None and not builds:
        listener.step(NOT_BUILT)
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
