"""What a guest boots: a kernel of Debian's, and a file system with the packages of a function.

Both are downloaded by the host's apt, with its mirrors, proxies and keys, and unpacked, not
installed: no kernel comes to the host, no maintainer script runs, and neither apt nor dpkg of the
host learns of it. They are made once for each set of packages and kept in the user's cache.
"""

from __future__ import annotations

import asyncio
import hashlib
import lzma
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.domain.errors import LabError
from workbench.labs.netns.packages import MERGED, ApartApt, needs_apt
from workbench.labs.once import alone, cache
from workbench.labs.programs import Listener
from workbench.labs.vm import guest_init
from workbench.labs.vm.cpio import CpioWriter
from workbench.labs.vm.vm_options import KERNELS, VmOptions

BASICS = ("busybox-static",)
"""Packages of every guest: its init is a script for busybox."""
LEFT_OUT = frozenset(f"usr/share/{n}" for n in ("doc", "info", "lintian", "locale", "man"))
MADE_WITHIN_S = 900.0
DRIVERS = {
    "virtio": ("virtio_pci", "virtio_console", "virtio_net"),
    "e1000": ("virtio_pci", "virtio_console", "e1000"),
}
"""By NIC model; each is loaded after those that it needs."""
_DEPENDS = b"\0depends="


@dataclass(frozen=True)
class GuestFiles:
    """What QEMU is given to boot."""

    kernel: Path
    initramfs: Path
    digest: str
    """Of both, `sha256:` and hexadecimal digits."""

    @classmethod
    def in_folder(cls, folder: Path) -> GuestFiles:
        digest = (folder / "digest").read_text(encoding="ascii").strip()
        return cls(folder / "kernel", folder / "initramfs", digest)


async def guest_files(
    packages: Iterable[str], options: VmOptions, listener: Listener
) -> GuestFiles:
    """Files of a guest that has these packages and what they need.

    Raises
    ------
    LabError
        With what apt said, or where it takes longer than `MADE_WITHIN_S`.
    """
    wanted = sorted({*BASICS, *packages})
    key = "\n".join((*wanted, KERNELS[options.nic], options.nic, guest_init.INIT))
    name = f"guest-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    folder = cache() / "vm" / name
    what = f"a guest with {', '.join(wanted)}"
    async with alone(f"vm-{name}", what, listener):
        if not folder.is_dir():
            needs_apt("so that no guest can be made")
            listener.step(f"making {what}: packages are downloaded and unpacked, not installed")
            try:
                async with asyncio.timeout(MADE_WITHIN_S):
                    await _make(folder, wanted, options, listener)
            except TimeoutError:
                raise LabError(
                    f"{what} was not made in {MADE_WITHIN_S:g} s",
                    remedy="See how fast `apt-get update` is on this host, and start again",
                ) from None
            except OSError as error:
                raise LabError(
                    f"{what} cannot be made: {error.strerror or error}",
                    where=str(error.filename or folder),
                    remedy="Make room, or set XDG_CACHE_HOME to a folder that has some",
                ) from error
        return await asyncio.to_thread(GuestFiles.in_folder, folder)


async def _make(
    folder: Path, packages: Sequence[str], options: VmOptions, listener: Listener
) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as making:
        here = Path(making)
        apt = ApartApt(here, listener, installed="nothing")
        await apt.update()
        await apt.unpack(await apt.download(packages, "archives"), here / "tree")
        kernels = await apt.download((KERNELS[options.nic],), "kernels")
        # The rest is what an installed kernel needs to make a file system of its own.
        images = [file for file in kernels if file.name.startswith("linux-image-")]
        await apt.unpack(images, here / "kernel")
        listener.step("packing the guest's file system")
        made = here / "made"
        made.mkdir()
        await asyncio.to_thread(_pack, here, made, DRIVERS[options.nic])
        made.rename(folder)


def _pack(here: Path, made: Path, drivers: Sequence[str]) -> None:
    """From the folders `tree` and `kernel` to files in `made`."""
    top = here / "kernel"
    kernels = sorted((top / "boot").glob("vmlinuz-*"))
    if not kernels:
        raise LabError("the package of the kernel holds none", where=str(top))
    release = kernels[-1].name.removeprefix("vmlinuz-")
    wanted = in_order(drivers, modules_below(top / "usr/lib/modules" / release), release)
    with (made / "initramfs").open("wb") as out, CpioWriter(out) as archive:
        write_file_system(archive, here / "tree", wanted)
    kernels[-1].rename(made / "kernel")
    digest = hashlib.sha256()
    for name in ("kernel", "initramfs"):
        with (made / name).open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    (made / "digest").write_text(f"sha256:{digest.hexdigest()}\n", encoding="ascii")


def write_file_system(archive: CpioWriter, tree: Path, drivers: Mapping[str, bytes]) -> None:
    """The first file system of a guest: unpacked packages, drivers in their order, an init."""
    archive.tree(tree, LEFT_OUT)
    for name in MERGED:
        if not (tree / name).exists():
            archive.link(name, f"usr/{name}")
    archive.folder("dev")
    archive.device("dev/console", 5, 1)
    archive.file("init", guest_init.INIT.encode(), 0o755)
    archive.file("etc/passwd", guest_init.USERS.encode())
    archive.file("etc/group", guest_init.GROUPS.encode())
    archive.file("etc/hosts", b"127.0.0.1 localhost\n")
    folder = guest_init.DRIVERS.removeprefix("/lib/")
    archive.folder(f"usr/lib/{folder}")
    for name, content in drivers.items():
        archive.file(f"usr/lib/{folder}/{name}.ko", content)
    order = "".join(f"{name}.ko\n" for name in drivers)
    archive.file(f"usr/lib/{folder}/order", order.encode())


def modules_below(folder: Path) -> dict[str, Path]:
    """Files of a kernel's modules by name, as `virtio_net`."""
    files = sorted((folder / "kernel").rglob("*.ko*"))
    return {file.name.partition(".")[0].replace("-", "_"): file for file in files}


def in_order(wanted: Sequence[str], there: Mapping[str, Path], release: str) -> dict[str, bytes]:
    """Modules and what they need, such that each comes after what it needs; by name.

    Built-in ones are needed by nobody. Raises `LabError` where one is missing.
    """
    found: dict[str, bytes] = {}

    def visit(name: str) -> None:
        if name in found:
            return
        if name not in there:
            raise LabError(
                f"the kernel {release} has no module {name}",
                remedy="Choose another nic (--lab vm:nic=virtio)",
            )
        content = _module(there[name])
        for needed in needs(content):
            visit(needed)
        found[name] = content

    for name in wanted:
        visit(name)
    return found


def needs(module: bytes) -> list[str]:
    """Names of the modules that a module states to need (its section `.modinfo`)."""
    begin = module.find(_DEPENDS)
    if begin < 0:
        return []
    begin += len(_DEPENDS)
    stated = module[begin : module.index(b"\0", begin)].decode("ascii", errors="replace")
    return [name.replace("-", "_") for name in stated.split(",") if name]


def _module(file: Path) -> bytes:
    content = file.read_bytes()
    return lzma.decompress(content) if file.suffix == ".xz" else content
