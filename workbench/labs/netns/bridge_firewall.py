"""Rules that packets between components pass, as those between containers pass Docker's.

Where br_netfilter is loaded, which Docker's engine does, packets that a bridge forwards go through
the firewall and the connection tracking of its namespace. A tenth of a small proxy's CPU and more
was that (docs/netns-lab.md): without it this lab's functions would carry more than Docker's.
"""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from workbench.domain.errors import UsageError
from workbench.domain.lab import OPTIONS
from workbench.probes.child_ending import signal_child

FIREWALLS: tuple[Firewall, ...] = ("docker", "none")
Firewall = Literal["docker", "none"]
BRIDGED = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
SET_UP = f"echo 1 >{BRIDGED}; exec iptables-restore --wait 5"
PATIENCE_S = 10.0
MOST_SHOWN = 200
RULES = """\
*filter
:FORWARD DROP [0:0]
:DOCKER - [0:0]
:DOCKER-ISOLATION-STAGE-1 - [0:0]
:DOCKER-ISOLATION-STAGE-2 - [0:0]
:DOCKER-USER - [0:0]
-A FORWARD -j DOCKER-USER
-A FORWARD -j DOCKER-ISOLATION-STAGE-1
-A FORWARD -i bridge -o bridge -j ACCEPT
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -o docker0 -j DOCKER
-A FORWARD -i docker0 ! -o docker0 -j ACCEPT
-A FORWARD -i docker0 -o docker0 -j ACCEPT
-A DOCKER-ISOLATION-STAGE-1 ! -s 10.77.0.0/16 -o bridge -j DROP
-A DOCKER-ISOLATION-STAGE-1 ! -d 10.77.0.0/16 -i bridge -j DROP
-A DOCKER-ISOLATION-STAGE-1 -i docker0 ! -o docker0 -j DOCKER-ISOLATION-STAGE-2
-A DOCKER-ISOLATION-STAGE-1 -j RETURN
-A DOCKER-ISOLATION-STAGE-2 -o docker0 -j DROP
-A DOCKER-ISOLATION-STAGE-2 -j RETURN
-A DOCKER-USER -j RETURN
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A DOCKER -i docker0 -j RETURN
COMMIT
"""
"""Those of an engine with its own bridge and one internal network, which is `bridge` here."""


@dataclass(frozen=True)
class BridgeFirewall:
    """Whether packets pass rules, and why if not."""

    rules: str
    why_not: str = ""

    @property
    def described(self) -> str:
        return f"none: {self.why_not}" if self.why_not else "rules and connections as of Docker's"

    @property
    def details(self) -> dict[str, str]:
        """For a session's facts. One that was begun without rules does not go on with them."""
        options = {OPTIONS: "firewall=docker"} if self.rules else {}
        return {"firewall": self.described, **options}

    @classmethod
    async def usable(cls, asked: Firewall) -> BridgeFirewall:
        """What this host can do of what is asked for; tried in a namespace that ends with it."""
        if asked == "none":
            return cls("", "as asked for")
        if why_not := _lacking() or await _tried():
            return cls("", why_not)
        return cls(RULES)


def _lacking() -> str:
    """What the rules need and is not here; empty for nothing."""
    try:
        bridged = BRIDGED.read_text().strip()
    except OSError:
        return "br_netfilter is not loaded, which Docker's engine does"
    if bridged == "0":
        return f"{BRIDGED.name} is 0 on this host, so that Docker's has none either"
    if shutil.which("iptables-restore") is None:
        return "there is no iptables on this host"
    return ""


async def _tried() -> str:
    """What is said against the rules here; empty for nothing."""
    process = await asyncio.create_subprocess_exec(
        *("unshare", "--net", "sh", "-ec", SET_UP),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            _, said = await process.communicate(RULES.encode())
    except TimeoutError:
        return f"iptables says nothing within {PATIENCE_S:g} s"
    finally:
        signal_child(process)
        await process.wait()
    if process.returncode == 0:
        return ""
    why = " ".join(said.decode(errors="replace").split())[:MOST_SHOWN]
    return f"iptables says {why or 'nothing, and fails'}"


def firewall_asked_for(text: str) -> Firewall:
    """Of what follows the colon of `netns:`. Raises `UsageError`."""
    if not text:
        return "docker"
    for one in FIREWALLS:
        if text == f"firewall={one}":
            return one
    raise UsageError(
        f"netns:{text} is no namespace lab", remedy="Write netns, or netns:firewall=none"
    )
