"""What packets between components pass: Docker's rules, or none, and why none."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from workbench.domain.errors import UsageError
from workbench.labs.netns import bridge_firewall
from workbench.labs.netns.bridge_firewall import RULES, BridgeFirewall, firewall_asked_for
from workbench.labs.netns.namespaces import Bridge, Namespace, hold_root

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces")


def test_it_is_asked_for_behind_the_lab_s_name() -> None:
    assert (firewall_asked_for(""), firewall_asked_for("firewall=none")) == ("docker", "none")
    assert firewall_asked_for("firewall=docker") == "docker"
    with pytest.raises(UsageError, match="netns:firewall=nftables is no namespace lab"):
        firewall_asked_for("firewall=nftables")


async def test_a_host_whose_docker_has_none_has_none_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file stands in for the kernel's."""
    bridged = tmp_path / "bridge-nf-call-iptables"
    monkeypatch.setattr(bridge_firewall, "BRIDGED", bridged)
    assert "br_netfilter is not loaded" in (await BridgeFirewall.usable("docker")).described
    bridged.write_text("0\n")
    assert "is 0 on this host" in (await BridgeFirewall.usable("docker")).described
    bridged.write_text("1\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await BridgeFirewall.usable("docker") == BridgeFirewall(
        "", "there is no iptables on this host"
    )
    assert (await BridgeFirewall.usable("none")).details == {"firewall": "none: as asked for"}
    assert BridgeFirewall(RULES).details["options"] == "firewall=docker"


@root
@pytest.mark.needs("unshare", "iptables-restore")
async def test_what_iptables_refuses_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bridged = tmp_path / "bridge-nf-call-iptables"
    bridged.write_text("1\n")
    monkeypatch.setattr(bridge_firewall, "BRIDGED", bridged)
    monkeypatch.setattr(bridge_firewall, "RULES", "*filter\n-A NOWHERE -j ACCEPT\nCOMMIT\n")
    assert re.search(r"none: iptables says \w", (await BridgeFirewall.usable("docker")).described)


@pytest.fixture
async def held(tmp_path: Path) -> AsyncIterator[list[Namespace]]:
    """Namespaces that are ended."""
    made: list[Namespace] = []
    yield made
    for one in made:
        await one.end()


@root
@pytest.mark.needs("ip", "nsenter", "iptables-restore", "iptables-save")
@pytest.mark.parametrize("rules", [RULES, ""])
async def test_packets_of_components_pass_its_rules(
    held: list[Namespace], tmp_path: Path, rules: str
) -> None:
    if rules and not (await BridgeFirewall.usable("docker")).rules:
        pytest.skip("this host's kernel takes no firewall for bridges")
    bridge = await Bridge.make(9, rules)
    held.append(bridge.namespace)
    for number in range(2):
        (work := tmp_path / f"{number}").mkdir()
        held.append(await hold_root(None, work, 1 << 20))
        await bridge.connect(held[-1], "eth0")
    listener = await asyncio.create_subprocess_exec(
        *("nsenter", f"--net={held[1].network}", "timeout", "10", "bash", "-c"),
        "exec 3<>/dev/tcp/10.77.9.3/9",  # nobody listens: a packet there and a refusal back
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert await listener.wait() == 1
    save = ["nsenter", f"--net={bridge.namespace.network}", "iptables-save", "-c"]
    said = subprocess.run(save, check=True, capture_output=True, text=True).stdout
    passed = re.search(r"\[(\d+):\d+\] -A FORWARD -i bridge -o bridge -j ACCEPT", said)
    assert (int(passed[1]) if passed else 0) == (2 if rules else 0), said
