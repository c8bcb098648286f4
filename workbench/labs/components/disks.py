"""Disk of a function: bytes a second that it may read, and as many that it may write.

The kernel holds a control group to a rate on a block device (`blkio.throttle` in version 1,
`io.max` in version 2), where the group itself speaks to the device: a volume, or the container's
own file system under overlay2. It holds back what goes past the page cache or is synced; what the
kernel writes back later is charged to nobody under version 1. A file system in user space
(fuse-overlayfs) writes in its own name and is not held.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from workbench.domain.errors import LabError
from workbench.labs.components.component import Component
from workbench.probes import cgroup, process

BLOCK = Path("/sys/dev/block")
RATES = ("read", "write")
MEGABYTE = 1e6
NO_DISK = "its components write in memory alone"
"""Why a lab whose components have no file system on a disk gives none."""


def unlimitable(folder: Path, local: bool) -> str | None:
    """A clause why what lies in a folder cannot be held to a rate, or None.

    Tried on a group that nobody is in, where the kernel has version 1; version 2 is only asked
    whether it has the controller.
    """
    if not local:
        return "the engine is on another host, and its control groups are written there alone"
    if os.geteuid() != 0:
        return "only root may write the control groups of containers"
    try:
        device = whole(folder.stat().st_dev)
    except OSError as error:
        return f"{folder} cannot be looked at ({error.strerror})"
    if device is None:
        return f"{folder} lies on no block device of its own, and the kernel limits these alone"
    mounts = cgroup.parse_mounts((process.PROC / "self" / "mountinfo").read_text())
    if "blkio" in mounts:
        return _refused(mounts["blkio"].point, device)
    if cgroup.UNIFIED in mounts:
        there = (mounts[cgroup.UNIFIED].point / "cgroup.controllers").read_text().split()
        return None if "io" in there else "its control groups have no controller io"
    return "its kernel has no controller blkio (CONFIG_BLK_CGROUP)"


def _refused(root: Path, device: str) -> str | None:
    folder = root / f"vnf-workbench-try-{os.getpid()}"
    try:
        folder.mkdir(exist_ok=True)
        (folder / "blkio.throttle.write_bps_device").write_text(f"{device} 1000000000")
    except OSError as error:
        return f"the kernel holds device {device} to no rate ({error.strerror}, {error.filename})"
    finally:
        with suppress(OSError):
            folder.rmdir()
    return None


def whole(number: int) -> str | None:
    """The disk of a device number, `254:0`, also of a partition; None for what is no disk."""
    path = BLOCK / f"{os.major(number)}:{os.minor(number)}"
    if not path.exists():
        return None
    disk = path.resolve()
    if (disk / "partition").exists():
        disk = disk.parent
    return (disk / "dev").read_text().strip()


def devices(pid: int) -> tuple[str, ...]:
    """Disks on which something lies that a process has mounted."""
    found: dict[str, None] = {}
    for line in (process.PROC / str(pid) / "mountinfo").read_text().splitlines():
        major, minor = map(int, line.split()[2].split(":"))
        disk = whole(os.makedev(major, minor))
        if disk is not None:
            found[disk] = None
    return tuple(found)


def hold(component: Component) -> None:
    """Hold a started component to its rate on every disk that it has; a new start forgets it.

    Raises `LabError` where it has none, or where the kernel refuses.
    """
    folder = component.probe.folders.disk if component.probe else None
    if folder is None:
        raise _unheld(component, "its control group on this host limits no disk")
    disks = devices(component.pid)
    if component.disk_mbps and not disks:
        raise _unheld(component, "nothing of it lies on a disk")
    version_1 = (folder / "blkio.throttle.write_bps_device").exists()
    rate = round(component.disk_mbps * MEGABYTE)
    try:
        for disk in disks:
            if version_1:
                for way in RATES:
                    file = folder / f"blkio.throttle.{way}_bps_device"
                    file.write_text(f"{disk} {rate}")  # 0 is no limit
            else:
                most = rate or "max"
                (folder / "io.max").write_text(f"{disk} rbps={most} wbps={most}")
    except OSError as error:
        raise _unheld(component, f"{error.filename}: {error.strerror}") from error


def _unheld(component: Component, why: str) -> LabError:
    return LabError(
        f"it cannot be held to {component.disk_mbps:g} MB/s of disk: {why}",
        where=component.place,
        remedy="Leave `disk` out of its resource parameters and flavors, or use another lab",
    )
