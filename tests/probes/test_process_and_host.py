"""Counters of processes, threads, host and engine, from recorded text and this process itself."""

import os
import subprocess
import threading
import time

import pytest

from workbench.probes import containers, host, process

NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100      2    0    0    0     0          0         0      100       2    0    0    0     0       0          0
  eth0: 3289026   7077    0    0    0     0          0         0  3246462    6974    0    0    0     0       0          0
  eth1:      10      1    0    0    0     0          0         0       20       2    0    0    0     0       0          0
"""  # noqa: E501 - as the kernel writes it
STAT = (
    "31501 (tiny) proxy) S 31482 31501 31501 0 -1 4194560 1300 0 38 0 15 27 0 0 20 0 1 0 "
    "235104 205676544 673 18446744073709551615 1 1 0 0 0 0 4096 82434 1 0 0 17 1 0 0 0 0 0\n"
)
PROC_STAT = "cpu  100 20 30 4000 500 6 7 8 90 0\ncpu0 1 1 1 1 1\ncpu1 1 1 1 1 1\nintr 5\n"
STATS = {
    "cpu_stats": {
        "cpu_usage": {"total_usage": 199669072},
        "system_cpu_usage": 4750060000000,
        "throttling_data": {"periods": 69, "throttled_periods": 4, "throttled_time": 2000000},
    },
    "memory_stats": {"usage": 4059136, "stats": {"total_inactive_file": 2207744}},
    "networks": {
        "eth0": {"rx_bytes": 10, "rx_packets": 1, "tx_bytes": 20, "tx_packets": 2},
        "eth1": {"rx_bytes": 1, "rx_packets": 1, "tx_bytes": 2, "tx_packets": 2},
    },
}


def test_network_counters_leave_the_loopback_out() -> None:
    counted = process.parse_net_dev(NET_DEV)
    assert counted == process.NetworkCounters(3289036, 7078, 3246482, 6976)


def test_a_namespace_with_a_loopback_only() -> None:
    assert process.parse_net_dev("\n\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n") == (
        process.NetworkCounters()
    )


def test_a_program_may_have_parentheses_in_its_name() -> None:
    assert process.parse_stat_cpu_s(STAT) == pytest.approx(42 * process.TICK_S)
    assert process.parse_start_s(STAT) == pytest.approx(235104 * process.TICK_S)


def test_busy_time_is_what_is_not_idle() -> None:
    assert host.parse_busy_s(PROC_STAT, 30.0) == pytest.approx(2 * 30.0 - 45.0)
    busy = host.read_busy_s()
    assert host.read_busy_s() >= busy - 0.05


def test_cpu_model() -> None:
    assert host.parse_cpu_model("processor\t: 0\nmodel name\t: AMD EPYC\n") == "AMD EPYC"
    assert host.parse_cpu_model("processor\t: 0\n") == ""


def test_the_engines_statistics_are_counters_too() -> None:
    counted = containers.from_engine(STATS)
    assert counted.cpu_s == pytest.approx(0.199669072)
    assert (counted.periods, counted.throttled_periods) == (69, 4)
    assert counted.throttled_s == pytest.approx(0.002)
    assert counted.memory_bytes == 4059136 - 2207744
    assert (counted.rx_bytes, counted.tx_packets) == (11, 4)


def test_this_process_is_seen_as_it_is() -> None:
    pid = os.getpid()
    begun = process.read_start_s(pid)
    assert 0 < begun <= time.clock_gettime(time.CLOCK_BOOTTIME)
    busy = threading.get_native_id()
    before = process.read_threads([busy])[busy].cpu_s
    while time.thread_time() < before + 0.05:
        pass
    assert process.read_threads([busy])[busy].cpu_s >= before + 0.03
    assert process.read_threads([2**22 + 1]) == {}, "threads that ended are left out"


def test_a_process_that_has_ended_is_none_though_nobody_asked_how() -> None:
    assert process.started(os.getpid()) == process.read_start_s(os.getpid())
    with subprocess.Popen(["true"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert process.started(ended.pid) is None
    assert process.started(2**22 + 1) is None


def test_this_process_is_no_container() -> None:
    assert containers.ContainerProbe.find("0a1b2c3d4e5f", os.getpid()) is None
    assert containers.ContainerProbe.find("0a1b2c3d4e5f", 0) is None


def test_threads_keep_their_place_though_they_come_and_go() -> None:
    ledger = containers.ThreadLedger()
    ledger.note({7: 1.0})
    ledger.note({7: 1.5, 9: 0.25})
    ledger.note({9: 0.75, 8: 0.1})
    assert ledger.columns() == [(1.0, 0.0, 0.0), (1.5, 0.25, 0.0), (1.5, 0.75, 0.1)]


def test_offloads_of_an_interface() -> None:
    assert set(host.read_offloads("lo").values()) <= {"on", "off"}
    assert host.read_offloads("no-such-if") == {}
