"""The oha binary for the source's image: built once in the engine, then kept in the user's cache.

Debian's own Rust compiles it in a container, so that no tool of the host is needed and the binary
fits the C library of the images. What an interrupted build has compiled stays in a volume of the
engine, and the next one goes on from there.
"""

from __future__ import annotations

import platform
import re
import shutil
import tarfile
from contextlib import suppress
from pathlib import Path

import aiodocker
from aiodocker.containers import DockerContainer

from workbench import files
from workbench.domain.errors import LabError
from workbench.labs import once
from workbench.labs.docker import cargo_settings, making
from workbench.labs.docker.base_image import BASE, ensure_base, present
from workbench.labs.docker.building import PREFIX, build, digest, proxies
from workbench.labs.docker.containers import pack
from workbench.labs.docker.engine import connect, speaking_to
from workbench.labs.programs import (
    GOT,
    SET_UP,
    UNPACKED,
    Listener,
    PackageProgress,
    StepProgress,
    run,
)
from workbench.log import logger

log = logger("labs.docker.oha")

VERSION = "1.16.0"
"""The version whose records `traffic.oha` was checked against."""

DOCKERFILE = f"""\
FROM {BASE}
RUN apt-get -qq update
RUN DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends \\
    ca-certificates cargo-web gcc libc6-dev libssl-dev make pkg-config rustc-web
"""
"""Debian's Rust for its web browsers, the newest that a release has."""
VOLUME = f"{PREFIX}-cargo"
"""Cargo's registry, and what an interrupted build compiled."""
BUILD = f"""
cargo "$@" install oha --version {VERSION} --locked --no-default-features --features native-tls \
    --root /made
rm -rf "$CARGO_TARGET_DIR"
"""
"""Functions are spoken to in the clear, but oha 1.16 does not compile without TLS. Debian's
OpenSSL costs least, and curl brings it to the source's image as well; rustls takes a third more."""
MADE = "/made/bin/oha"
SHARES = 102
"""A tenth of what a container gets beside others, should a core be wanted elsewhere."""
DRAWN = re.compile(r"(\d+)/(\d+)")
"""Cargo's bar: units of compilation that are done, and all."""
TO_GET = re.compile(r"Downloading (\d+) crates?\b")
"""The same while it downloads: crates that have not come yet."""


def cached() -> Path:
    """Where the binary of this version and processor is kept."""
    return once.cache() / f"oha-{VERSION}-{platform.machine()}" / "bin" / "oha"


def _trouble() -> Path:
    """Why the last attempt to build it failed."""
    return cached().with_name("trouble.txt")


def trouble() -> str:
    """The same as a sentence; empty: no attempt failed, or a later one did not."""
    try:
        return _trouble().read_text(errors="replace").strip()
    except OSError:
        return ""


async def find() -> Path | None:
    """The binary, where it was built or installed before."""
    kept = cached()
    if kept.is_file():
        return kept
    installed = shutil.which("oha")
    return Path(installed) if installed and await _is_right(installed) else None


async def find_or_build(listener: Listener, docker: aiodocker.Docker | None = None) -> Path | None:
    """The binary, or None with a sentence where it cannot be had."""
    if found := await find():
        return found
    if docker is None:
        async with connect() as own:
            return await find_or_build(listener, own)
    async with once.alone("oha", f"oha {VERSION}", listener):
        if cached().is_file():
            return cached()
        try:
            with speaking_to("the Docker engine"):
                binary = await _build(docker, listener)
            return _keep(binary)
        except LabError as error:
            listener.step(f"oha could not be built: {error} Other generators stand in")
            log.warning("oha could not be built", error=str(error))
            with suppress(OSError):
                files.make_folder(_trouble().parent)
                _trouble().write_text(f"{error}\n")
            return None


async def _build(docker: aiodocker.Docker, listener: Listener) -> bytes:
    """The binary's bytes, compiled in a container."""
    context = {"Dockerfile": DOCKERFILE.encode()}
    builder = f"{PREFIX}/rust:{digest(context)}"
    if not await present(docker, builder):
        await ensure_base(docker, listener)
        what = f"building oha {VERSION}: getting Debian's Rust"
        listener.step(f"{what}, 180 MB, once on this engine")
        getting = PackageProgress(listener, what, (GOT, UNPACKED, SET_UP))
        await build(docker, context, builder, Listener(listener.step, getting.hear))
    settings = cargo_settings.of_this_host()
    command = ("sh", "-ec", BUILD, "build", *settings.options)
    environment = {
        **proxies(),
        **settings.environment,
        "CARGO_HOME": "/cargo",
        "CARGO_TARGET_DIR": "/cargo/target",
        "CARGO_TERM_PROGRESS_WHEN": "always",
        "CARGO_TERM_PROGRESS_WIDTH": "80",
    }
    host = {"Binds": [f"{VOLUME}:/cargo"], "CpuShares": SHARES}
    async with making.container(
        docker, builder, command, environment=environment, settings=host
    ) as compiling:
        if settings.files:
            await compiling.put_archive("/", pack(settings.files))  # type: ignore[no-untyped-call]  # it has no types
        listener.step(f"building oha {VERSION}: getting its sources")
        await _compile(compiling, listener)
        archive: tarfile.TarFile = await compiling.get_archive(MADE)
        with archive:
            file = archive.extractfile(archive.getmembers()[0])
            assert file is not None
            return file.read()


async def _compile(compiling: DockerContainer, listener: Listener) -> None:
    progress = StepProgress(listener, f"building oha {VERSION}", "parts")
    sources = StepProgress(listener, f"building oha {VERSION}: getting its sources", "crates")
    crates = 0
    lines = making.Lines()
    last, trouble = "cargo said nothing", ""
    async for _, data in making.output(compiling):
        for line in lines.of(data):
            drawn = DRAWN.search(line) if "Building" in line else None
            if drawn:
                progress.reached(int(drawn[1]), int(drawn[2]))
            elif to_get := TO_GET.search(line):
                crates = max(crates, int(to_get[1]))
                sources.reached(crates - int(to_get[1]), crates)
            else:
                listener.line(line)
                last = line.strip()
                trouble = trouble or (last if last.startswith("error") else "")
    if await making.exit_code(compiling) != 0:
        raise LabError(trouble or last, where="cargo")


def _keep(binary: bytes) -> Path:
    """Raises `LabError` where it cannot be written."""
    kept = cached()
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        _trouble().unlink(missing_ok=True)
        with files.whole(kept) as unfinished:
            unfinished.write_bytes(binary)
            unfinished.chmod(0o755)
        return kept
    except OSError as error:
        raise LabError(
            f"what was built cannot be kept: {error.strerror}",
            where=str(kept.parent),
            remedy="Make room there",
        ) from None


async def _is_right(program: str) -> bool:
    code, output = await run((program, "--version"), lambda _: None)
    return code == 0 and output.split()[-1:] == [VERSION]
