"""Networks of a chain of routers, and the kernel's figures that packets are judged by."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.domain.topology import Vnf, VnfTemplate
from workbench.labs.components.packets import parse_dropped
from workbench.labs.components.wiring import segments
from workbench.probes import network_threads
from workbench.probes.host import parse_softirq_s
from workbench.probes.process import TICK_S

TEMPLATES = {
    "proxy": VnfTemplate("proxy"),
    "router": VnfTemplate("router", passage="router"),
}
SNMP = """\
Ip: Forwarding DefaultTTL
Ip: 1 64
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors
Udp: 1000 0 37 0 37 0
UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors
UdpLite: 0 0 0 0 0 0
"""


@pytest.mark.parametrize(
    ("functions", "places"),
    [
        (("proxy",), ((0,), (0,), (0,))),
        (("router",), ((0,), (0, 1), (1,))),
        (("router", "router"), ((0,), (0, 1), (1, 2), (2,))),
    ],
)
def test_each_router_begins_another_network(
    functions: tuple[str, ...], places: tuple[tuple[int, ...], ...]
) -> None:
    chain = [(Vnf(f"{name}{i}", name),) for i, name in enumerate(functions)]
    assert segments(chain, TEMPLATES) == places


def test_what_a_full_socket_threw_away_is_read_by_its_name() -> None:
    assert parse_dropped(SNMP) == 37
    assert parse_dropped("") == 0


def test_softirq_time_is_the_seventh_figure() -> None:
    stat = "cpu  1 2 3 4 5 6 700 8 0 0\ncpu0 1 2 3 4 5 6 700 8 0 0\n"
    assert parse_softirq_s(stat) == pytest.approx(700 * TICK_S)


@pytest.mark.parametrize(("of", "given_back"), [("a", "4711"), ("b", "")])
def test_a_container_gives_its_own_threads_back_and_no_others(
    of: str, given_back: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted = tmp_path / "unified"
    (tmp_path / "self").mkdir()
    mount = f"30 23 0:26 / {mounted} rw - cgroup2 cgroup2 rw\n"
    (tmp_path / "self" / "mountinfo").write_text(mount)
    threads = (("4711", "napi/eth0-8193", "a" * 64), ("4712", "ksoftirqd/0", "b" * 64))
    for thread, name, container in threads:
        (tmp_path / thread).mkdir()
        (tmp_path / thread / "comm").write_text(f"{name}\n")
        (tmp_path / thread / "cgroup").write_text(f"0::/docker/{container}\n")
    mounted.mkdir()
    (mounted / "cgroup.procs").touch()
    monkeypatch.setattr(network_threads, "PROC", tmp_path)
    network_threads.release(of * 64)
    assert (mounted / "cgroup.procs").read_text() == given_back, "to the root group"


def test_a_thread_that_ends_meanwhile_keeps_no_other_from_being_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted = tmp_path / "unified"
    mounted.mkdir()
    (mounted / "cgroup.procs").touch()
    for process in ("self", "4712"):
        (tmp_path / process).mkdir()
    mount = f"30 23 0:26 / {mounted} rw - cgroup2 cgroup2 rw\n"
    (tmp_path / "self" / "mountinfo").write_text(mount)
    (tmp_path / "4712" / "cgroup").write_text(f"0::/docker/{'a' * 64}\n")
    monkeypatch.setattr(network_threads, "PROC", tmp_path)
    monkeypatch.setattr(network_threads, "_threads", lambda: iter((4711, 4712)))
    network_threads.release("a" * 64)
    assert (mounted / "cgroup.procs").read_text() == "4712"


def test_a_process_that_is_gone_has_no_interfaces_to_serve() -> None:
    folders = network_threads.cgroup.CgroupFolders("v1", *[network_threads.PROC] * 3)
    with pytest.raises(OSError, match=r"No such file|Operation not permitted"):
        network_threads.charge(2**22 + 1, folders)
