"""Interfaces of this host that are no end of a component's: neither written to nor counted."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from workbench.labs.components import hops
from workbench.labs.components.component import Component
from workbench.probes import network_threads
from workbench.probes.cgroup import CgroupFolders

ROUTER = cast(Component, SimpleNamespace(name="router", pid=os.getpid(), probe=object()))


def interface(folder: Path, name: str, index: int, link: int) -> Path:
    """As the kernel shows it, with 7 packets that it did not send."""
    made = folder / name
    (made / "statistics").mkdir(parents=True)
    (made / "statistics" / "tx_dropped").write_text("7\n")
    (made / "ifindex").write_text(f"{index}\n")
    (made / "iflink").write_text(f"{link}\n")
    return made


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands in for this host's interfaces: eth0 is a card, docker0 a bridge with veth9 on it."""
    net, settings = tmp_path / "net", tmp_path / "ipv6"
    for name, index, link in (("eth0", 2, 2), ("docker0", 3, 3), ("veth9", 9, 8)):
        interface(net, name, index, link)
        (settings / name).mkdir(parents=True)
        (settings / name / "disable_ipv6").write_text("0")
    (net / "veth9" / "master").symlink_to(net / "docker0")
    monkeypatch.setattr(hops, "_NET", net)
    monkeypatch.setattr(hops, "_IPV6", settings)
    return tmp_path


def silenced(host: Path) -> set[str]:
    files = (host / "ipv6").glob("*/disable_ipv6")
    return {file.parent.name for file in files if file.read_text() == "1"}


def test_a_component_that_sees_this_hosts_interfaces_has_none_of_them(host: Path) -> None:
    """As in the namespace lab, whose components have this host's /sys."""
    hops.quieten([ROUTER])
    assert silenced(host) == set()
    assert list(hops._queues(ROUTER)) == []


@pytest.mark.parametrize(
    ("index", "link", "ends", "counted"),
    [
        (8, 9, {"veth9", "docker0"}, {"router eth0: queue": 7, "router eth0: sending": 7}),
        (5, 9, set(), {"router eth0: sending": 7}),
        (5, 3, set(), {"router eth0: sending": 7}),
        (2, 2, set(), {"router eth0: sending": 7}),
        (5, 77, set(), {"router eth0: sending": 7}),
    ],
    ids=["its end", "another's end", "a bridge of that number", "itself", "nothing"],
)
def test_only_what_points_back_is_its_end(
    host: Path,
    monkeypatch: pytest.MonkeyPatch,
    index: int,
    link: int,
    ends: set[str],
    counted: dict[str, int],
) -> None:
    own = interface(host / "component", "eth0", index, link)
    monkeypatch.setattr(hops, "_interfaces", lambda component: [own])
    hops.quieten([ROUTER])
    assert silenced(host) == ends
    assert dict(hops._queues(ROUTER)) == counted


@pytest.fixture
def served(host: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], list[str]]:
    """Has a router's interface of these numbers served by threads; whose segmenting is off then."""
    names = {2: "eth0", 3: "docker0", 9: "veth9"}

    def named(index: int) -> str:
        if index not in names:
            raise OSError("no interface with this index")
        return names[index]

    def of(own: int, far: int) -> list[str]:
        changed: list[str] = []

        def note(name: str, command: int, *, on: bool) -> None:
            assert (command, on) == (network_threads.SET_TSO, False)
            changed.append(name)

        stand_ins: dict[str, Any] = {
            "INTERFACES": host / "net",
            "APPEARS_S": 0.0,
            "_apart": lambda work: work(),
            "_serve_by_threads": lambda pid: [(own, far)],
            "_threads": lambda: iter(()),
            "_set": note,
        }
        for name, stand_in in stand_ins.items():
            monkeypatch.setattr(network_threads, name, stand_in)
        monkeypatch.setattr(socket, "if_indextoname", named)
        try:
            network_threads.charge(os.getpid(), CgroupFolders("v2", host, host, host))
        except OSError:
            changed.append("refused")
        return changed

    return of


def test_segmenting_is_switched_off_at_its_end_alone(
    served: Callable[[int, int], list[str]],
) -> None:
    assert served(8, 9) == ["veth9"]
    for own, far in ((5, 9), (5, 3), (2, 2), (5, 77)):
        assert served(own, far) == ["refused"]
