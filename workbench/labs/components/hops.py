"""Where packets are thrown away: queues on their way, and what functions say themselves.

A container's interface is one end of a pair; the other is on this host, and what does not fit into
the container's queue is counted there, as not sent. So a router that cannot keep up loses at the
host's end of its interface, and these counts give a loss its address.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from workbench.domain.errors import LabError
from workbench.domain.topology import VnfTemplate
from workbench.labs.components import mirroring
from workbench.labs.components.component import Component
from workbench.labs.components.target import Deployed
from workbench.measuring.records import Copies

DROPPED = "dropped"
"""What the name of a function's counter begins with that counts packets thrown away."""
STATS_TIMEOUT_S = 10.0
MOST_COUNTERS = 100
_NET = Path("/sys/class/net")
_IPV6 = Path("/proc/sys/net/ipv6/conf")
_SOFTNET = Path("/proc/net/softnet_stat")


@dataclass(frozen=True)
class Hops:
    """What was counted on the way up to now."""

    dropped: Mapping[str, int]
    """Packets thrown away, by where (`firewall: dropped`, `firewall eth0: queue`)."""
    copies: Mapping[str, Copies]
    """By passive function."""

    def since(self, earlier: Hops) -> Hops:
        """What was meanwhile; places where nothing was dropped are left out."""
        counted = {place: n - earlier.dropped.get(place, 0) for place, n in self.dropped.items()}
        return Hops(
            {place: count for place, count in counted.items() if count > 0},
            mirroring.between(earlier.copies, self.copies),
        )


async def read(deployed: Deployed) -> Hops:
    """What was dropped and copied so far.

    Raises
    ------
    LabError
        Where the `stats` of a function hang, fail or print what is no count, and where a mirror is
        gone.
    """
    components = deployed.components
    counts = await asyncio.gather(*(_stated(component) for component in components))
    stated = {c.name: said for c, said in zip(components, counts, strict=True)}
    return Hops(_dropped(deployed, stated), mirroring.counted(deployed.mirrors, stated))


def _dropped(deployed: Deployed, stated: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    # What a passive function drops are copies: nothing of it is missing at the sink.
    components = [c for c in deployed.components if c not in deployed.passive]
    dropped = {
        f"{component.name}: {name}": count
        for component in components
        for name, count in stated[component.name].items()
        if name.startswith(DROPPED)
    }
    for component in components:
        if component.probe is not None:
            dropped.update(_queues(component))
    if any(component.probe is not None for component in components):
        dropped["host: backlog"] = _backlog()
    return dropped


def quieten(components: Sequence[Component]) -> None:
    """Have this host's ends of the components' links send nothing of their own.

    IPv6 of a bridge and its ports asks for routers for ever, ever more rarely; such a packet in a
    full queue is counted as dropped like any other: one in 800,000 (own run). Where it cannot be
    switched off, counts may be off by as much.
    """
    ends = _ends()
    for component in components:
        if component.probe is None:
            continue
        for interface in _interfaces(component):
            with suppress(OSError):
                end = _far_end(interface, ends)
                if end is None:
                    continue
                master = _NET / end / "master"
                names = (end, master.resolve().name) if master.exists() else (end,)
                for name in names:
                    (_IPV6 / name / "disable_ipv6").write_text("1")


async def _stated(component: Component) -> dict[str, int]:
    argv = component.template.stats
    if not argv:
        return {}
    where = f"{component.place}, {' '.join(argv)}"
    try:
        async with asyncio.timeout(STATS_TIMEOUT_S):
            outcome = await component.run(argv)
    except TimeoutError:
        raise LabError(
            f"has not answered for {STATS_TIMEOUT_S:g} s", where=where, remedy=_remedy(component)
        ) from None
    if outcome.exit_code != 0:
        raise LabError(f"failed: {outcome.said}", where=where, remedy=_remedy(component))
    try:
        return dict(parse_stats(outcome.stdout))
    except ValueError as error:
        raise LabError(str(error), where=where, remedy=_remedy(component)) from None


def _remedy(component: Component) -> str:
    template: VnfTemplate = component.template
    return f"Correct `stats` of template {template.name}, or leave it out"


def parse_stats(text: str) -> Iterator[tuple[str, int]]:
    """`NAME COUNT` lines. Raises `ValueError` for anything else."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if len(lines) > MOST_COUNTERS:
        raise ValueError(f"printed {len(lines)} lines, at most {MOST_COUNTERS} are read")
    if not lines:
        raise ValueError("printed nothing; `NAME COUNT` lines are read")
    for words in lines:
        if len(words) != 2 or not words[1].isdecimal():
            raise ValueError(f"printed {' '.join(words)[:60]!r}, which is no `NAME COUNT`")
        yield words[0], int(words[1])


def _queues(component: Component) -> Iterator[tuple[str, int]]:
    """Of each interface of a container: what did not fit in, and what it could not send."""
    ends = _ends()
    for interface in _interfaces(component):
        try:
            peer = _far_end(interface, ends)
            if peer is not None:
                yield f"{component.name} {interface.name}: queue", _count(_NET / peer, "tx_dropped")
            yield f"{component.name} {interface.name}: sending", _count(interface, "tx_dropped")
        except OSError:
            continue  # the container has ended; whoever drives says so


def _interfaces(component: Component) -> list[Path]:
    """Its own: where a lab mounts this host's /sys in it, these would be the host's."""
    found = sorted(Path(f"/proc/{component.pid}/root{_NET}").glob("eth*"))
    return [interface for interface in found if not _is_of_this_host(interface)]


def _is_of_this_host(interface: Path) -> bool:
    try:
        return interface.samefile(_NET / interface.name)
    except OSError:
        return False


def _far_end(interface: Path, ends: Mapping[str, str]) -> str | None:
    """This host's end of a component's interface; None where that leads to another network.

    Each network has numbers of its own: what has the right one is its end where it points back, and
    not an interface that stands for itself. Raises `OSError`.
    """
    index, link = ((interface / name).read_text().strip() for name in ("ifindex", "iflink"))
    end = ends.get(link)
    if end is None or link == index or (_NET / end / "iflink").read_text().strip() != index:
        return None
    return end


def _ends() -> dict[str, str]:
    """Interfaces of this host by index."""
    found = {}
    for file in _NET.glob("*/ifindex"):
        with suppress(OSError):  # others come and go
            found[file.read_text().strip()] = file.parent.name
    return found


def _count(interface: Path, name: str) -> int:
    return int((interface / "statistics" / name).read_text())


def _backlog() -> int:
    """Packets that found a core's queue full, on the whole host."""
    lines = _SOFTNET.read_text().splitlines()
    return sum(int(line.split()[1], 16) for line in lines)
