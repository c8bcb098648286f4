"""Copies for passive functions: what reaches a component is mirrored to them by the kernel.

A pair of virtual interfaces joins the component, whose ingress is copied, and the passive function;
`tc` mirrors into it (mirred, by a u32 filter that fits every packet: this needs no matchall). Both
ends lie in the components' own networks and end with them, so that nothing has to be removed. What
was mirrored, what arrived and what the function says it processed are counted apart.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError
from workbench.labs.components.component import Component
from workbench.labs.programs import run
from workbench.measuring.records import Copies
from workbench.probes.process import PROC

COPY = "copy0"
"""The interface on which a passive function finds its copy."""
PROGRAMS = ("tc", "ip", "nsenter", "unshare")
CAPTURED = "captured"
"""What the `stats` of a passive function call the packets that it has processed."""


async def check(campaign: Campaign, local: bool) -> None:
    """Raises `LabError` where a campaign has passive functions and this host cannot mirror."""
    if not any(plan.target.copies for plan in campaign.targets):
        return
    if reason := await _unable(local):
        raise LabError(
            f"traffic cannot be mirrored here: {reason}",
            where=f"campaign {campaign.name}",
            remedy="Leave its passive functions out",
        )


async def _unable(local: bool) -> str:
    """A clause why nothing can be mirrored here; it is tried where nothing is harmed."""
    if not local:
        return "the engine is on another host, and its links are set from there alone"
    for program in PROGRAMS:
        if shutil.which(program) is None:
            return f"this host has no {program} (packages iproute2 and util-linux)"
    if os.geteuid() != 0:
        return "only root may set the links of other network namespaces"
    code, said = await run(
        ("unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "ingress"), _unheard
    )
    return f"the kernel lets nothing look at what arrives ({said})" if code else ""


async def mirror(copied: Component, passive: Sequence[Component]) -> None:
    """Mirror all that reaches `copied`, on its side of the source, to each passive function.

    What was mirrored from it before, as to functions that have started again since, ends.
    """
    interface = await _interface(copied)
    await _tc(copied, "qdisc", "del", "dev", interface, "ingress", gone_is_fine=True)
    actions: list[str] = []
    for number, function in enumerate(passive):
        out = f"copy-out{number}"
        await _ip(copied, "link", "del", out, gone_is_fine=True)
        ends = ("link", "add", out, "type", "veth", "peer", "name", COPY)
        await _ip(copied, *ends, "netns", str(function.pid))
        for component, end in ((function, COPY), (copied, out)):
            # Neither end says anything of its own: counts are of copies alone.
            await _ip(component, "link", "set", end, "addrgenmode", "none", "arp", "off", "up")
        more = ("pipe",) if number + 1 < len(passive) else ()
        actions += ["action", "mirred", "egress", "mirror", "dev", out, *more]
    await _tc(copied, "qdisc", "add", "dev", interface, "ingress")
    everything = ("protocol", "all", "u32", "match", "u32", "0", "0")
    await _tc(copied, "filter", "add", "dev", interface, "ingress", *everything, *actions)


def groups(
    pairs: Iterable[tuple[Component, Component]],
) -> list[tuple[Component, list[Component]]]:
    """Passive functions by the component whose ingress is copied to them."""
    found: dict[str, tuple[Component, list[Component]]] = {}
    for passive, copied in pairs:
        found.setdefault(copied.name, (copied, []))[1].append(passive)
    return list(found.values())


def counted(
    pairs: Iterable[tuple[Component, Component]], stated: Mapping[str, Mapping[str, int]]
) -> dict[str, Copies]:
    """By passive function: packets mirrored to it, arrived and processed so far.

    `stated` are the counters of the functions' own `stats`. Raises `LabError` where an end of a
    mirror is gone.
    """
    numbers: dict[str, int] = defaultdict(int)
    found: dict[str, Copies] = {}
    for passive, copied in pairs:
        out = f"copy-out{numbers[copied.name]}"
        numbers[copied.name] += 1
        sent, arrived = _counts(copied, out), _counts(passive, COPY)
        # veth(4) counts what it could not hand over as dropped, not as sent.
        found[passive.name] = Copies(
            sent["tx_packets"] + sent["tx_dropped"],
            arrived["rx_packets"],
            stated.get(passive.name, {}).get(CAPTURED),
        )
    return found


def between(before: Mapping[str, Copies], after: Mapping[str, Copies]) -> dict[str, Copies]:
    """What was copied meanwhile."""
    return {name: copies.since(before[name]) for name, copies in after.items() if name in before}


def _counts(component: Component, interface: str) -> dict[str, int]:
    try:
        lines = (PROC / str(component.pid) / "net" / "dev").read_text().splitlines()
    except OSError as error:
        raise LabError(f"its network is gone ({error.strerror})", where=component.place) from None
    for line in lines:
        name, _, numbers = line.partition(":")
        if name.strip() == interface:
            fields = [int(number) for number in numbers.split()]
            return {"rx_packets": fields[1], "tx_packets": fields[9], "tx_dropped": fields[11]}
    raise LabError(
        f"its interface {interface} is gone: nothing is mirrored any more", where=component.place
    )


async def _interface(component: Component) -> str:
    """The interface that has the address at which a component is spoken to."""
    said = await _ip(component, "-oneline", "addr", "show")
    match = re.search(rf"^\d+: (\S+)\s+inet {re.escape(component.address)}/", said, re.MULTILINE)
    if match is None:
        raise LabError(f"no interface has its address {component.address}", where=component.place)
    return match[1]


async def _ip(component: Component, *argv: str, gone_is_fine: bool = False) -> str:
    return await _inside(component, ("ip", *argv), gone_is_fine)


async def _tc(component: Component, *argv: str, gone_is_fine: bool = False) -> str:
    return await _inside(component, ("tc", *argv), gone_is_fine)


async def _inside(component: Component, argv: tuple[str, ...], gone_is_fine: bool) -> str:
    network = Path(f"/proc/{component.pid}/ns/net")
    code, said = await run(("nsenter", f"--net={network}", *argv), _unheard)
    if code and not gone_is_fine:
        raise LabError(
            f"traffic cannot be mirrored: {' '.join(argv)} says: {said}",
            where=component.place,
            remedy="Leave the passive function out, or see that this kernel has veth, "
            "act_mirred and cls_u32",
        )
    return said


def _unheard(line: str) -> None:
    """What these commands say is told where they fail."""
