"""Programs of Debian packages, unpacked into a folder of the lab's own: nothing is installed.

What of the packages, and of what they need, is not on this host already is downloaded by the
host's apt, with its own mirrors, proxies and keys, and laid over the host's files in the roots of
components (`namespaces.HOLD_ROOT`). No maintainer script runs, no service starts, and neither apt
nor dpkg of the host learns of it.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from workbench.domain.errors import LabError
from workbench.labs.once import alone, cache
from workbench.labs.programs import Listener, run

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


async def _missing(packages: list[str]) -> list[str]:
    for program in NEEDED:
        if shutil.which(program) is None:
            raise LabError(
                f"this host has no {program}, so that programs cannot be fetched",
                remedy="Use the Docker lab, or a Debian host",
            )
    missing = []
    for package in packages:
        said: list[str] = []
        await run(("dpkg-query", "-W", "-f=${db:Status-Status}", package), said.append)
        if said[-1:] != ["installed"]:
            missing.append(package)
    return missing


async def _make(folder: Path, packages: list[str], listener: Listener) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as making:
        here = Path(making)
        for name in ("lists/partial", "cache/archives/partial", "tree"):
            (here / name).mkdir(parents=True)
        options = {
            "Dir::State::lists": here / "lists",
            "Dir::Cache": here / "cache",
            "Dir::Log": here,
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "",  # the folder is this user's own
            "Acquire::Languages": "none",
            "Debug::NoLocking": "true",  # nothing of the host's is written
        }
        apt = ("apt-get", "-q", *(f"-o{key}={value}" for key, value in options.items()))
        for command in (("update",), ("-y", "--download-only", "install", *packages)):
            code, tail = await run((*apt, *command), listener.line)
            if code != 0:
                raise LabError(
                    f"apt-get could not get {', '.join(packages)}: {tail}",
                    remedy="See that `apt-get update` works on this host",
                )
        tree = here / "tree"
        for package in sorted((here / "cache/archives").glob("*.deb")):
            code, tail = await run(("dpkg-deb", "-x", str(package), str(tree)), listener.line)
            if code != 0:
                raise LabError(f"{package.name} cannot be unpacked: {tail}")
        _merge(tree)
        tree.chmod(0o755)
        tree.rename(folder)


def _merge(tree: Path) -> None:
    """Move what lies where the host has links into /usr, and name what has another name."""
    for top in MERGED:
        if (tree / top).is_dir() and not (tree / top).is_symlink():
            shutil.copytree(tree / top, tree / "usr" / top, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(tree / top)
    for name, program in ALTERNATIVES.items():
        if (tree / "usr" / name).parent.joinpath(program).exists():
            (tree / "usr" / name).symlink_to(program)
