"""Namespaces that live as long as this process does, and what connects them.

Each is held by a process of its own that the kernel ends with this one (`PR_SET_PDEATHSIG`), and
with it whatever runs in its process namespace, its interfaces and its mounts. So nothing is left
behind, however this process ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workbench.domain.errors import LabError
from workbench.labs.netns.bridge_firewall import SET_UP
from workbench.probes.child_ending import signal_child, uncancelled
from workbench.probes.process import PROC

READY = b"ready\n"
PATIENCE_S = 10.0
POLL_S = 0.01
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

HOLD_ROOT = r"""
set -eu
mount --make-rprivate /
mount -t tmpfs -o mode=755 vnf-workbench "$2"
mkdir "$2/upper" "$2/work" "$2/root"
if [ -n "$1" ]; then cp -a "$1/." "$2/upper/"; fi
mount -t overlay -o "lowerdir=/,upperdir=$2/upper,workdir=$2/work" overlay "$2/root"
cd "$2/root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o "size=$3" shm dev/shm
mount -t tmpfs -o mode=755 run run
mount -t tmpfs -o mode=1777 tmp tmp
trap '' CHLD
echo ready
exec chroot . sleep infinity
"""
"""A root of its own, in memory: over the host's files lie those of the lab's packages, and what is
written. The packages are copied, as overlayfs takes no layer that lies inside of another.
Arguments: folder of the packages or nothing, an empty folder to work in, bytes of /dev/shm."""
HOLD_NETWORK = "echo ready; exec sleep infinity"
SET = 'while [ $# -gt 1 ]; do printf %s "$2" >"/proc/sys/$1"; shift 2; done'
JOIN = 'while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs"; shift; done; shift; exec "$@"'
"""Joins the groups whose folders come before `--`, then becomes the program behind it."""


@dataclass(frozen=True)
class Namespace:
    """A set of namespaces and the process that holds it."""

    holder: asyncio.subprocess.Process
    pid: int
    """First process of its own process namespace, by its number on the host; of a network, the
    holder."""

    @property
    def network(self) -> str:
        return f"{PROC}/{self.pid}/ns/net"

    @property
    def alive(self) -> bool:
        return self.holder.returncode is None and self._there()

    def _there(self) -> bool:
        return Path(self.network).exists()

    def inside(self, argv: Sequence[str], groups: Sequence[Path] = ()) -> tuple[str, ...]:
        """The command that runs a program in it, in these control groups."""
        return (
            *("sh", "-c", JOIN, "join", *map(str, groups), "--"),
            *("nsenter", "--target", str(self.pid), "--net", "--mount", "--pid", "--ipc", "--uts"),
            *("--root", "--wd", "--", *argv),
        )

    async def end(self) -> None:
        """End all that runs in it, and see that it has ended; gone already is no error."""
        signal_child(self.holder)
        await self.holder.wait()
        until = time.monotonic() + PATIENCE_S
        # The kernel ends what the holder held, and rings no bell for us.
        while self._there() and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)


async def hold_network() -> Namespace:
    """A network without addresses, for a bridge."""
    holder = await _begin(("unshare", "--net", "sh", "-c", HOLD_NETWORK))
    return Namespace(holder, holder.pid)


async def hold_root(
    packages: Path | None, work: Path, shared_memory_bytes: int, *, own_network: bool = True
) -> Namespace:
    """Namespaces of a component, with a root of their own: `packages` over the host's files.

    `work` is an empty folder that nobody else uses. Raises `LabError` with what mount said.
    """
    own = (
        *(("--net",) if own_network else ()),
        "--mount",
        "--pid",
        "--ipc",
        "--uts",
        "--fork",
        "--kill-child",
    )
    lower = str(packages or "")
    size = str(shared_memory_bytes)
    argv = ("unshare", *own, "sh", "-c", HOLD_ROOT, "hold", lower, str(work), size)
    holder = await _begin(argv)
    try:
        children = (PROC / str(holder.pid) / "task" / str(holder.pid) / "children").read_text()
        return Namespace(holder, int(children.split()[0]))
    except (OSError, IndexError) as error:
        await uncancelled(_ended(holder))
        raise LabError(
            "a namespace ended as soon as it was made", remedy="See who ended it, and try again"
        ) from error


async def _begin(argv: Sequence[str]) -> asyncio.subprocess.Process:
    holder = await asyncio.create_subprocess_exec(
        *("setpriv", "--pdeathsig", "KILL", "--", *argv),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": PATH},
    )
    assert holder.stdout is not None
    assert holder.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            if await holder.stdout.readline() == READY:
                return holder
            said = (await holder.stderr.read()).decode(errors="replace").strip()
    except TimeoutError:
        said = f"nothing within {PATIENCE_S:g} s"
    except BaseException:
        await uncancelled(_ended(holder))
        raise
    await uncancelled(_ended(holder))
    raise LabError(
        f"a namespace cannot be made: {said or 'its process ended without a word'}",
        remedy="Run as root on Linux, outside of a container that forbids namespaces and mounts",
    )


async def _ended(holder: asyncio.subprocess.Process) -> None:
    signal_child(holder)
    await holder.wait()


ADDRESSES = 250
"""Of a bridge's network; a target's components are gone before the next one's come."""


@dataclass
class Bridge:
    """A network of the lab: a bridge in a namespace of its own, that leads nowhere else."""

    namespace: Namespace
    number: int
    """Addresses are 10.77.`number`.0/24."""
    _ports: int = field(default=0)

    @classmethod
    async def make(cls, number: int, rules: str = "") -> Bridge:
        """A new one, whose packets pass `rules` as `iptables-restore` reads them."""
        namespace = await hold_network()
        try:
            await set_links(namespace.network, "link add bridge type bridge", "link set bridge up")
            if rules:
                inside = ("nsenter", f"--net={namespace.network}", "sh", "-ec", SET_UP)
                await _inside(inside, rules)
        except BaseException:
            await uncancelled(namespace.end())
            raise
        return cls(namespace, number)

    async def connect(self, component: Namespace, interface: str) -> str:
        """Give a component an interface on this network; its address, which was free: that of a
        component long gone where all have been given."""
        self._ports += 1
        address = f"10.77.{self.number}.{(self._ports - 1) % ADDRESSES + 2}"
        port = f"port{self._ports}"
        await set_links(
            self.namespace.network,
            f"link add {port} type veth peer name {interface} netns {component.pid}",
            f"link set {port} master bridge up",
        )
        await set_links(
            component.network,
            f"addr add {address}/24 dev {interface}",
            f"link set {interface} up",
            "link set lo up",
        )
        return address


async def set_links(network: str, *commands: str) -> None:
    """Run commands of ip-batch(8) in a network. Raises `LabError` with what ip said."""
    await _inside(("nsenter", f"--net={network}", "ip", "-batch", "-"), "\n".join(commands))


async def set_kernel(namespace: Namespace, settings: Mapping[str, str]) -> None:
    """Set kernel parameters of its network, by names such as `net.ipv4.ip_forward`."""
    pairs = [part for name, value in settings.items() for part in (name.replace(".", "/"), value)]
    await _inside(namespace.inside(("sh", "-ec", SET, "set", *pairs)), "")


async def _inside(argv: Sequence[str], feed: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate(feed.encode())
    if process.returncode != 0:
        raise LabError(
            f"a network of the lab cannot be set up: {said.decode(errors='replace').strip()}",
            remedy="See that this kernel has veth and bridges",
        )
