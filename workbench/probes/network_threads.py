"""Kernel threads that do a container's forwarding, so that its own CPU group is charged for it.

The kernel forwards a packet in whatever context it arrives: mostly the sender's, which is then
charged and throttled for a router's work. With threaded NAPI (Linux 5.12) an interface of a
container is served by a kernel thread of its own, and that can be moved into the container's
group like any other. A virtual interface uses it where it gathers what it receives (GRO) and its
far end does not segment (TSO off).

Needs root on the engine's own host.
"""

from __future__ import annotations

import array
import ctypes
import errno
import fcntl
import os
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from workbench.probes import cgroup
from workbench.probes.process import PROC

NEW_MOUNTS, NEW_NETWORK = 0x00020000, 0x40000000
"""`CLONE_NEWNS` and `CLONE_NEWNET` (linux/sched.h)."""
REMOUNT, RECURSIVE, PRIVATE, READ_ONLY, DETACH = 0x20, 0x4000, 0x40000, 0x1, 0x2
"""Flags of mount(2) and umount2(2)."""
SIOCETHTOOL, SET_TSO, SET_GRO = 0x8946, 0x1F, 0x2C
"""linux/sockios.h, linux/ethtool.h."""
INTERFACES = Path("/sys/class/net")
THREAD_NAME = "napi/"
APPEARS_S = 0.5

_libc = ctypes.CDLL(None, use_errno=True)


def charge(pid: int, folders: cgroup.CgroupFolders) -> int:
    """Serve the interfaces of a container by threads in its own group; how many there are.

    Parameters
    ----------
    pid : of the container's first process.
    folders : of the container's CPU group.

    Raises
    ------
    OSError
        Where this process may not, or the kernel cannot.
    """
    before = set(_threads())
    served: list[tuple[int, int]] = []
    _apart(lambda: served.extend(_serve_by_threads(pid)))
    for name in [_far_end(*numbers) for numbers in served]:
        _set(name, SET_TSO, on=False)
    deadline = time.monotonic() + APPEARS_S
    while len(found := set(_threads()) - before) < len(served) and time.monotonic() < deadline:
        time.sleep(0.005)
    for thread in found:
        for folder in {folders.cpu, folders.cpuacct}:
            (folder / "cgroup.procs").write_text(str(thread))
    return len(found)


def release(container_id: str) -> None:
    """Give the threads of a container back to the host: a group that holds some is never removed.

    Nothing happens where there are none, or where this process may not.
    """
    with suppress(OSError):
        mounts = cgroup.parse_mounts((PROC / "self" / "mountinfo").read_text())
        for thread in _threads():
            with suppress(OSError):  # it has ended meanwhile; the others have not
                _give_back(thread, container_id, mounts)


def _give_back(thread: int, container_id: str, mounts: dict[str, cgroup.Mount]) -> None:
    groups = (PROC / str(thread) / "cgroup").read_text()
    for controller in ("cpu", "cpuacct", cgroup.UNIFIED):
        if container_id in cgroup.parse_membership(groups).get(controller, ""):
            (mounts[controller].point / "cgroup.procs").write_text(str(thread))


def _threads() -> Iterator[int]:
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if (entry / "comm").read_text().startswith(THREAD_NAME):
                    yield int(entry.name)


def _serve_by_threads(pid: int) -> list[tuple[int, int]]:
    """In the container's network: threads and gathering on; numbers of interfaces and far ends."""
    folder = tempfile.mkdtemp(prefix="vnf-sys-")
    try:
        _call("unshare", _libc.unshare(NEW_MOUNTS))
        _call("mount", _libc.mount(b"none", b"/", None, RECURSIVE | PRIVATE, None))
        with (PROC / str(pid) / "ns" / "net").open("rb") as network:
            _call("setns", _libc.setns(network.fileno(), NEW_NETWORK))
        place = folder.encode()
        # The engine mounted it read-only, and all mounts of one network share that.
        _call("mount", _libc.mount(b"sysfs", place, b"sysfs", 0, None))
        _call("mount", _libc.mount(b"none", place, None, REMOUNT, None))
        try:
            return [_serve_by_thread(each) for each in _virtual(Path(folder) / "class" / "net")]
        finally:
            _libc.mount(b"none", place, None, REMOUNT | READ_ONLY, None)
            _libc.umount2(place, DETACH)
    finally:
        Path(folder).rmdir()


def _virtual(interfaces: Path) -> list[Path]:
    return [each for each in sorted(interfaces.iterdir()) if each.name.startswith("eth")]


def _serve_by_thread(interface: Path) -> tuple[int, int]:
    _set(interface.name, SET_GRO, on=True)
    (interface / "threaded").write_text("1")
    return int((interface / "ifindex").read_text()), int((interface / "iflink").read_text())


def _far_end(own: int, far: int) -> str:
    """The end on this network of a container's interface, by the numbers of both.

    Each network has numbers of its own: what has the right one is its end where it points back, and
    not an interface that stands for itself. Raises `OSError` where there is none.
    """
    name = socket.if_indextoname(far)
    if far == own or int((INTERFACES / name / "iflink").read_text()) != own:
        raise OSError(errno.ENODEV, "its interfaces lead to another network than this host's")
    return name


def _set(interface: str, command: int, *, on: bool) -> None:
    value = array.array("I", [command, int(on)])
    request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCETHTOOL, request)


def _call(name: str, result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _apart(work: Callable[[], None]) -> None:
    """Do it in a thread that ends with it: the namespaces it enters are that thread's alone."""
    failures: list[OSError] = []

    def body() -> None:
        try:
            work()
        except OSError as error:
            failures.append(error)

    thread = threading.Thread(target=body, name="container-network")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
