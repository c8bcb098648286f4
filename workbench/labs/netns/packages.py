"""Programs of Debian packages, unpacked into a folder of the lab's own: nothing is installed.

What of the packages, and of what they need, is not on this host already is downloaded by the
host's apt, with its own mirrors, proxies and keys, and laid over the host's files in the roots of
components (`namespaces.HOLD_ROOT`). No maintainer script runs, no service starts, and neither apt
nor dpkg of the host learns of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from workbench.domain.errors import LabError
from workbench.labs.once import alone, cache
from workbench.labs.programs import GOT, Listener, PackageProgress, run

NEEDED = ("apt-get", "dpkg-query", "dpkg-deb")
MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Folders of packages that are links into /usr."""
ALTERNATIVES = {"bin/nc": "nc.openbsd", "bin/luajit": "luajit-2.1.0-beta3"}
"""Names that maintainer scripts would have given to programs."""


async def layer(packages: Iterable[str], listener: Listener) -> Path | None:
    """The folder that holds what this host lacks of `packages`; None where it lacks nothing.

    Raises `LabError` with what apt said.
    """
    wanted = sorted(set(packages))
    needs_apt("so that programs cannot be fetched")
    missing = await _missing(wanted)
    if not missing:
        return None
    name = f"packages-{hashlib.sha256(' '.join(missing).encode()).hexdigest()[:12]}"
    folder = cache() / "netns" / name
    async with alone(f"netns-{name}", "programs of the namespace lab", listener):
        if not folder.is_dir():
            listener.step(f"unpacking {', '.join(missing)} of Debian's packages, not installing")
            await _make(folder, missing, listener)
    return folder


def needs_apt(so: str) -> None:
    """Raises `LabError` where the host has none; `so` is what follows from that."""
    for program in NEEDED:
        if shutil.which(program) is None:
            raise LabError(
                f"this host has no {program}, {so}", remedy="Use the Docker lab, or a Debian host"
            )


async def _missing(packages: list[str]) -> list[str]:
    missing = []
    for package in packages:
        said: list[str] = []
        await run(("dpkg-query", "-W", "-f=${db:Status-Status}", package), said.append)
        if said[-1:] != ["installed"]:
            missing.append(package)
    return missing


@dataclass(frozen=True)
class ApartApt:
    """The host's apt, with lists, packages and log in a folder of its own: nothing of the host's
    is written.

    Attributes
    ----------
    folder : may hold anything; what is downloaded stays there.
    listener : hears what apt and dpkg say.
    installed : what counts as installed already: what the host has, or nothing.
    """

    folder: Path
    listener: Listener
    installed: Literal["host", "nothing"] = "host"

    def _argv(self, archives: str, *command: str) -> tuple[str, ...]:
        options = {
            "Dir::State::lists": self.folder / "lists",
            "Dir::Cache": self.folder / "cache",
            "Dir::Cache::archives": self.folder / archives,
            "Dir::Log": self.folder,
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "",  # the folder is this user's own
            "Acquire::Languages": "none",
            "Debug::NoLocking": "true",  # nothing of the host's is written
        }
        if self.installed == "nothing":
            options["Dir::State::status"] = self.folder / "status"
        return ("apt-get", "-q", *(f"-o{key}={value}" for key, value in options.items()), *command)

    async def update(self) -> None:
        """Fetch the lists of packages. Raises `LabError` with what apt said."""
        for name in ("lists/partial", "cache"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "status").touch()
        await self._run("cache", "the lists of its packages", "update")

    async def download(self, packages: Sequence[str], archives: str) -> list[Path]:
        """The packages and what they need, as files in the folder `archives`.

        Raises `LabError` with what apt said.
        """
        (self.folder / archives / "partial").mkdir(parents=True)
        what = ", ".join(packages)
        await self._run(archives, what, "-y", "--download-only", "install", *packages)
        return sorted((self.folder / archives).glob("*.deb"))

    async def _run(self, archives: str, what: str, *command: str) -> None:
        progress = PackageProgress(self.listener, f"downloading {what}", (GOT,))
        code, tail = await run(self._argv(archives, *command), progress.hear)
        if code != 0:
            raise LabError(
                f"apt-get could not get {what}: {tail}",
                remedy="See that `apt-get update` works on this host",
            )

    async def unpack(self, files: Iterable[Path], tree: Path) -> None:
        """Unpack packages over each other into `tree`, as if /usr were merged."""
        for package in files:
            code, tail = await run(("dpkg-deb", "-x", str(package), str(tree)), self.listener.line)
            if code != 0:
                raise LabError(f"{package.name} cannot be unpacked: {tail}")
        await asyncio.to_thread(_merge, tree)


async def _make(folder: Path, packages: list[str], listener: Listener) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as making:
        apt = ApartApt(Path(making), listener)
        await apt.update()
        tree = Path(making) / "tree"
        await apt.unpack(await apt.download(packages, "archives"), tree)
        tree.rename(folder)


def _merge(tree: Path) -> None:
    """Move what lies where the host has links into /usr, and name what has another name."""
    for top in MERGED:
        if (tree / top).is_dir() and not (tree / top).is_symlink():
            shutil.copytree(tree / top, tree / "usr" / top, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(tree / top)
    tree.chmod(0o755)
    for name, program in ALTERNATIVES.items():
        if (tree / "usr" / name).parent.joinpath(program).exists():
            (tree / "usr" / name).symlink_to(program)
