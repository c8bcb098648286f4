"""A small Debian, made by whoever may talk to the engine: no root, no debootstrap, no registry.

The host's apt resolves and downloads the packages, with its own mirrors, proxies and keys, into a
folder of ours. Their files make a tree that can just run dpkg; in a container of that tree dpkg
installs them as it should, and what comes of it is the image.
"""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiodocker

from workbench.domain.errors import LabError
from workbench.labs.docker import apt_sources, making
from workbench.labs.programs import (
    GOT,
    SET_UP,
    UNPACKED,
    Listener,
    PackageProgress,
    run,
)

PACKAGES = ("?essential", "apt", "usr-is-merged")
NEEDED = ("apt-get", "dpkg-deb")
MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Folders of packages that are links into /usr."""
UNREAD = ("usr/share/doc", "usr/share/info", "usr/share/locale", "usr/share/man")
"""Nobody reads them in an image: left out of this one and of what is installed on it."""
ARCHITECTURES = {"arm": "armhf", "386": "i386", "ppc64le": "ppc64el"}
"""Debian's names of processors where they are not the engine's."""
ARCHIVES = "var/cache/apt/archives"
BLOCK = 1 << 20

# The engine's file systems may be slow to sync, and dpkg syncs often: it works in memory.
# Copies of devices are refused by an engine without root; plain files serve dpkg as well.
SETTLE = f"""
set -e
exec 3>&1 1>&2
export PATH=/usr/sbin:/usr/bin DEBIAN_FRONTEND=noninteractive
for entry in /*; do
    case $entry in /proc | /sys | /dev | /target) ;; *) cp -a "$entry" /target/ ;; esac
done
cd /target
mkdir dev proc sys
for name in null zero full random urandom; do cp -a /dev/$name dev/ || : > dev/$name; done
ln -sf mawk usr/bin/awk
chroot . sh -ec '
    cd /{ARCHIVES}
    dpkg --force-depends --install ./base-passwd_*.deb
    dpkg --force-depends --unpack ./*.deb
    dpkg --force-depends --force-configure-any --configure --pending
    rm ./*.deb
    apt-get check'
rm -rf dev/* etc/hostname etc/hosts etc/resolv.conf etc/mtab var/log/*.log var/cache/debconf/*-old
tar --numeric-owner -c . >&3
"""
TMPFS = {"/target": "rw,exec,suid,dev"}


def lacking(suite: str, sources: tuple[apt_sources.AptSource, ...] | None = None) -> str:
    """What this host lacks for it, as a clause; empty where nothing."""
    for program in NEEDED:
        if shutil.which(program) is None:
            return f"this host has no {program}"
    here = apt_sources.read_sources() if sources is None else sources
    if not apt_sources.debian_sources(here, suite):
        return "this host's apt names no Debian archive"
    return ""


async def make(
    docker: aiodocker.Docker, suite: str, repository: str, tag: str, listener: Listener
) -> None:
    """Make the image. Raises `LabError` with what apt or dpkg said."""
    name = f"{repository}:{tag}"
    sources = apt_sources.debian_sources(apt_sources.read_sources(), suite)
    listener.step(f"making {name} of Debian's packages, once on this engine: about half a minute")
    machine = str((await docker.version())["Arch"])
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="vnf-workbench-") as folder:
        packages = await _download(
            Path(folder), sources, ARCHITECTURES.get(machine, machine), listener, name
        )
        listener.step(f"making {name}: unpacking {len(packages)} packages")
        tree = Path(folder) / "tree.tar"
        await asyncio.to_thread(pack, packages, configuration(sources), tree)
        raw = await _import(docker, tree)
        try:
            steps = UNPACKED, SET_UP
            settling = PackageProgress(listener, f"making {name}", steps, len(packages))
            await _settle(docker, raw, tree, settling)
        finally:
            await docker.images.delete(raw, force=True)
        await _import(docker, tree, repository, tag)


async def _download(
    folder: Path,
    sources: tuple[apt_sources.AptSource, ...],
    machine: str,
    listener: Listener,
    name: str,
) -> list[Path]:
    """What apt would install on an empty system; nothing of the host's own apt is touched."""
    for name in ("state/lists/partial", "cache/archives/partial", "parts"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "sources.list").write_text(apt_sources.render(sources, trust=True))
    options = {
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": folder / "parts",
        "Dir::Etc::preferencesparts": folder / "parts",
        "APT::Architecture": machine,
        "APT::Architectures": machine,
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "",  # the folder is this user's own
        "Acquire::Languages": "none",
    }
    apt = ("apt-get", "-q", *(f"-o{key}={value}" for key, value in options.items()))
    secure = ("ca-certificates",) if any(s.uri.startswith("https:") for s in sources) else ()
    getting = PackageProgress(listener, f"making {name}: getting what it is made of", (GOT,))
    for command in (("update",), ("-y", "--download-only", "install", *PACKAGES, *secure)):
        code, tail = await run((*apt, *command), getting.hear)
        if code != 0:
            raise LabError(
                f"apt-get could not get the packages of a base image: {tail}",
                remedy="See that `apt-get update` works on this host",
            )
    return sorted((folder / "cache/archives").glob("*.deb"))


def configuration(sources: tuple[apt_sources.AptSource, ...]) -> dict[str, str]:
    """Files of the image that no package brings: quick and small, as images of Debian are."""
    unread = "".join(f"path-exclude=/{name}/*\n" for name in UNREAD)
    return {
        "etc/apt/sources.list": apt_sources.render(sources),
        "etc/apt/apt.conf.d/90image": 'Acquire::Languages "none";\nAcquire::GzipIndexes "true";\n'
        'Dir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\n',
        "etc/dpkg/dpkg.cfg.d/90image": f"force-unsafe-io\n{unread}",
        "var/lib/dpkg/status": "",
        "var/lib/dpkg/available": "",
    }


def pack(packages: list[Path], files: dict[str, str], into: Path) -> None:
    """The files of all packages, the packages themselves and files of our own as one tar.

    Owners and modes are those of the packages: no file is ever this user's own.
    """
    folders: set[str] = set()
    with tarfile.open(into, "w", format=tarfile.GNU_FORMAT) as tar:
        for package in packages:
            for member, content in _members(package):
                member.name = member.name.removeprefix(".").strip("/")
                top, _, below = member.name.partition("/")
                if not member.name or member.name.startswith(UNREAD):
                    continue
                if top in MERGED:
                    _merge(tar, top, folders)
                    if not below:
                        continue
                    member.name = f"usr/{member.name}"
                if member.islnk():
                    linked = member.linkname.removeprefix("./")
                    merged = linked.partition("/")[0] in MERGED
                    member.linkname = f"usr/{linked}" if merged else linked
                if member.isdir():
                    if member.name in folders:
                        continue
                    folders.add(member.name)
                tar.addfile(member, content.extractfile(member) if member.isreg() else None)
        for package in packages:
            entry = tarfile.TarInfo(f"{ARCHIVES}/{package.name}")
            entry.size = package.stat().st_size
            with package.open("rb") as file:
                tar.addfile(entry, file)
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))


def _merge(tar: tarfile.TarFile, top: str, folders: set[str]) -> None:
    if f"usr/{top}" not in folders:
        folders.add(f"usr/{top}")
        folder = tarfile.TarInfo(f"usr/{top}")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(folder)
    if top not in folders:
        folders.add(top)
        link = tarfile.TarInfo(top)
        link.type, link.linkname = tarfile.SYMTYPE, f"usr/{top}"
        tar.addfile(link)


def _members(package: Path) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarFile]]:
    with (
        subprocess.Popen(
            ("dpkg-deb", "--fsys-tarfile", str(package)), stdout=subprocess.PIPE
        ) as unpacking,
        tarfile.open(fileobj=unpacking.stdout, mode="r|") as content,
    ):
        for member in content:
            yield member, content
    if unpacking.returncode != 0:
        raise LabError("a package cannot be read", where=package.name)


async def _import(docker: aiodocker.Docker, tree: Path, repository: str = "", tag: str = "") -> str:
    """The id of an image that is just this tree."""

    async def blocks() -> AsyncIterator[bytes]:
        with tree.open("rb") as file:
            while block := await asyncio.to_thread(file.read, BLOCK):
                yield block

    # aiodocker's import is `docker load`; a bare tree comes in by `docker import`.
    async with docker._query(
        "images/create",
        method="POST",
        params={"fromSrc": "-", **({"repo": repository, "tag": tag} if repository else {})},
        headers={"Content-Type": "application/x-tar"},
        data=blocks(),
    ) as response:
        answer = await response.text()
    last = json.loads(answer.strip().splitlines()[-1])
    if "error" in last:
        raise LabError(f"the engine did not take the base image: {last['error']}")
    return str(last["status"])


async def _settle(docker: aiodocker.Docker, raw: str, tree: Path, hearer: PackageProgress) -> None:
    """Have the dpkg of a raw tree install its packages; what comes of it takes the tree's place."""
    async with making.container(
        docker, raw, ("sh", "-c", SETTLE), environment={}, settings={"Tmpfs": TMPFS}
    ) as settling:
        said = making.Lines()
        with tree.open("wb") as file:
            async for stream, data in making.output(settling):
                if stream == making.STDOUT:
                    file.write(data)
                else:
                    for line in said.of(data):
                        hearer.hear(line)
        if await making.exit_code(settling) != 0:
            last = "\n".join(hearer.tail)
            raise LabError(f"dpkg could not set up the base image: {last}")
