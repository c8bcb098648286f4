"""Evidence as the kernel counts it: parsed from real files, absent with a reason, summed up."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from workbench.domain.observations import OBSERVABLES
from workbench.probes import cgroup, evidence, host, process, tcp
from workbench.probes.containers import ContainerProbe
from workbench.probes.process import ThreadCounters

NETSTAT = """\
TcpExt: SyncookiesSent DelayedACKs ListenOverflows ListenDrops TCPTimeouts TCPToZeroWindowAdv
TcpExt: 0 30 2 3 1 4
IpExt: InNoRoutes
IpExt: 0
"""
SNMP = """\
Tcp: RtoAlgorithm ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs \
RetransSegs
Tcp: 1 17 2 5 0 7 9409 4584 11
"""
SOCKSTAT = "sockets: used 62\nTCP: inuse 1 orphan 0 tw 412 alloc 1 mem 1\nUDP: inuse 0 mem 0\n"
STAT = """\
cpu  16789 36001 9374 156854 494 3 126 170 0 0
cpu0 5576 17565 3956 82679 106 1 11 83 0 0
cpu1 11212 18435 5417 74175 388 2 114 87 0 0
intr 580268 0
"""
SOFTIRQS = """\
                    CPU0       CPU1
          HI:          0          1
      NET_RX:       4049       6627
         RCU:      39108      40728
"""


def test_counters_of_tcp_are_called_by_our_names() -> None:
    assert tcp.parse_netstat(NETSTAT) == {
        "delayed_acks": 30.0,
        "tcp_timeouts": 1.0,
        "zero_windows": 4.0,
        "listen_overflows": 2.0,
        "listen_drops": 3.0,
    }, "backlog_drops is left out, as this kernel has none"
    assert tcp.parse_snmp(SNMP) == {
        "segments_sent": 4584.0,
        "retransmitted": 11.0,
        "connections_opened": 17.0,
        "connections_accepted": 2.0,
        "connections_failed": 5.0,
        "established": 7.0,
    }
    assert tcp.parse_sockstat(SOCKSTAT) == {"time_wait": 412.0}
    assert tcp.parse_netstat("") == tcp.parse_snmp("Tcp: A\n") == tcp.parse_sockstat("UDP: x") == {}


def test_a_connection_is_counted_where_it_was_opened() -> None:
    files = Path("/proc/self/net/snmp")
    before = tcp.parse_snmp(files.read_text())
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
    after = tcp.parse_snmp(files.read_text())
    assert after["connections_opened"] >= before["connections_opened"] + 1


def test_the_hosts_times_are_told_by_core() -> None:
    found = host.parse_stat(STAT, 1000.0)
    tick = process.TICK_S
    assert found["softirq_s", ""] == pytest.approx(126 * tick)
    assert found["interrupt_s", ""] == pytest.approx(3 * tick)
    assert found["stolen_s", ""] == pytest.approx(170 * tick)
    assert found["core_busy_s", "cpu1"] == pytest.approx(1000.0 - (74175 + 388) * tick)
    softirqs = host.parse_softirqs(SOFTIRQS)
    assert softirqs["softirqs", "NET_RX"] == 10676.0
    assert softirqs["core_softirqs", "cpu1"] == 6627.0
    assert ("softirqs", "HI") not in softirqs


def test_pressure_is_the_time_of_some() -> None:
    text = "some avg10=1.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.0 total=7\n"
    assert host.parse_pressure(text) == 2.5
    with pytest.raises(ValueError, match="no line of 'some'"):
        host.parse_pressure("")


def test_memory_and_disk_of_both_versions_of_groups(tmp_path: Path) -> None:
    (tmp_path / "memory.stat").write_text("total_pgfault 70\ntotal_pgmajfault 3\n")
    (tmp_path / "memory.failcnt").write_text("12\n")
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\noom_kill 1\n")
    (tmp_path / "blkio.throttle.io_service_bytes").write_text(
        "8:0 Read 30\n8:0 Write 8\n8:0 Sync 38\n8:0 Discard 500\n8:0 Total 538\n"
        "9:0 Write 2\n9:0 Total 2\nTotal 540\n"
    )
    (tmp_path / "blkio.throttle.io_serviced").write_text("8:0 Read 3\n8:0 Write 1\nTotal 9\n")
    v1 = cgroup.CgroupFolders("v1", tmp_path, tmp_path, tmp_path, tmp_path)
    seen = {"page_faults": 70.0, "major_faults": 3.0, "limit_hits": 12.0, "oom_kills": 1.0}
    assert cgroup.read_memory_events(v1) == seen
    assert cgroup.read_disk(v1) == {"disk_bytes": 40.0, "disk_operations": 4.0}
    (tmp_path / "memory.stat").write_text("pgfault 70\npgmajfault 3\n")
    (tmp_path / "memory.events").write_text("low 0\nmax 12\noom_kill 1\n")
    (tmp_path / "io.stat").write_text("8:0 rbytes=30 wbytes=10 rios=3 wios=1 dbytes=0 dios=0\n")
    v2 = cgroup.CgroupFolders("v2", tmp_path, tmp_path, tmp_path, tmp_path)
    assert cgroup.read_memory_events(v2) == seen
    assert cgroup.read_disk(v2) == {"disk_bytes": 40.0, "disk_operations": 4.0}
    (tmp_path / "memory.failcnt").unlink()
    assert "limit_hits" not in cgroup.read_memory_events(v1), "missing is not zero"


def test_what_a_host_lacks_is_named_and_never_zero() -> None:
    probe = ContainerProbe(os.getpid(), cgroup.CgroupFolders("v1", *[Path("/nowhere")] * 3))
    own = evidence.ComponentEvidence(probe)
    seen = own.read({threading.get_native_id(): ThreadCounters(1.0, 0.5, 3, 4)})
    assert seen["cpu_wait_s", ""] == 0.5
    assert ("delayed_acks", "") in seen
    assert ("oom_kills", "") not in seen
    assert own.absent["oom_kills"] == "this kernel does not count it"
    assert own.absent["disk_bytes"] == "its control group counts no disk (controller blkio)"
    assert "version 1" in own.absent["pressure_cpu_s"]
    assert {name for name, _ in seen} | set(own.absent) <= set(OBSERVABLES)
    gone = evidence.ComponentEvidence(ContainerProbe(2**22 + 1, probe.folders))
    gone.read()
    assert gone.absent["delayed_acks"] == "No such file or directory"


def test_too_many_threads_are_said_and_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "threads", lambda _: tuple(range(evidence.MOST_THREADS + 1)))
    monkeypatch.setattr(process, "read_threads", lambda *_, **__: pytest.fail("they were read"))
    probe = ContainerProbe(os.getpid(), cgroup.CgroupFolders("v1", *[Path("/nowhere")] * 3))
    own = evidence.ComponentEvidence(probe)
    own.read()
    assert own.absent["cpu_wait_s"] == "it has 513 threads; up to 512 are read"


def test_threads_that_end_or_whose_number_is_given_again_still_count() -> None:
    sums = evidence.ThreadSums()
    sums.note({7: ThreadCounters(1.0, 0.5, 3, 4)})
    sums.note({7: ThreadCounters(1.5, 0.7, 5, 4), 9: ThreadCounters(0.2, 0.1, 1, 0)})
    seen = sums.note({9: ThreadCounters(0.1, 0.0, 0, 0)})
    assert seen["cpu_wait_s", ""] == pytest.approx(0.7 + 0.1 + 0.0)
    assert seen["voluntary_switches", ""] == 6.0
    assert (seen["threads", ""], seen["threads_begun", ""]) == (1.0, 2.0)
    assert seen["thread_cpu_s", "thread 1"] == 1.5, "its last figure, though it has ended"


def test_waiting_and_switches_of_a_thread_are_read() -> None:
    own = threading.get_native_id()
    found = process.read_threads([own], switches=True)[own]
    assert found.cpu_s > 0
    assert found.wait_s is not None
    assert found.voluntary_switches is not None
    assert process.parse_switches("Name:\tx\n") == (None, None)


@pytest.mark.slow
def test_waiting_for_cpu_is_the_truth_of_a_known_load() -> None:
    """Who never sleeps waits whenever it does not run; but for what interrupts took on its core, of
    which a busy host has some percent."""
    core = min(os.sched_getaffinity(0))
    spinning = (
        f"import os\nos.sched_setaffinity(0, {{{core}}})\nprint(flush=True)\nwhile True: pass"
    )
    argv = [sys.executable, "-c", spinning]
    started = [subprocess.Popen(argv, stdout=subprocess.PIPE) for _ in range(3)]
    try:
        for one in started:
            assert one.stdout is not None
            one.stdout.readline()
        ids = [one.pid for one in started]
        before, began_s = process.read_threads(ids, switches=True), time.monotonic()
        time.sleep(2.5)  # a wait that has not ended is not counted yet
        after, seconds = process.read_threads(ids, switches=True), time.monotonic() - began_s
    finally:
        for one in started:
            one.kill()
            one.communicate()
    ran = sum(after[one].cpu_s - before[one].cpu_s for one in ids)
    waited = sum((after[one].wait_s or 0.0) - (before[one].wait_s or 0.0) for one in ids)
    assert waited == pytest.approx(len(ids) * seconds - ran, rel=0.1)
    assert waited > seconds, "three on one core: each waits two thirds of the time or more"


def test_who_else_uses_the_host_is_known_from_the_second_look_on() -> None:
    look = evidence.HostEvidence()
    assert look.look_round([]) == {}
    seen = look.look_round([])
    assert seen["others_cores", ""] >= 0.0
    assert {name for name, _ in seen} <= {"others_cores", "burner_cores"}
    names = {name for name, _ in look.read()} | set(look.absent)
    assert names <= set(OBSERVABLES)
    assert {"softirqs", "core_busy_s"} <= names


def test_what_others_take_of_its_cores_is_told_without_its_own() -> None:
    here = frozenset(os.sched_getaffinity(0))
    core = min(here)
    burning = (
        f"import os, time; os.sched_setaffinity(0, {{{core}}}); print(flush=True)\n"
        "while time.process_time() < 0.6: pass\ntime.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", burning], stdout=subprocess.PIPE) as burner:
        assert burner.stdout is not None
        burner.stdout.readline()
        own, others = evidence.OthersOnCores(), evidence.OthersOnCores()
        before = (own.read(burner.pid, _cpu_s(burner.pid)), others.read(burner.pid, 0.0))
        while _cpu_s(burner.pid) < 0.55:
            time.sleep(0.02)
        after = (own.read(burner.pid, _cpu_s(burner.pid)), others.read(burner.pid, 0.0))
        burner.kill()
    name = (evidence.OTHERS, "")
    without, whole = (after[place][name] - before[place][name] for place in (0, 1))
    assert whole > 0.35, "its core was busy with it"
    assert whole - without > 0.35, "its own CPU is none of others'"


def test_others_step_back_never_and_changed_cores_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = evidence.OthersOnCores()
    before = shared.read(os.getpid(), 0.0)
    assert shared.read(os.getpid(), 1e6) == before, "a tick less is no less"
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, host.MOST_CORES})
    with pytest.raises(ValueError, match="the cores that it may run on were changed"):
        shared.read(os.getpid(), 0.0)
    with pytest.raises(ValueError, match="only 64 of this host"):
        evidence.OthersOnCores().read(os.getpid(), 0.0)


def _cpu_s(pid: int) -> float:
    return process.parse_stat_cpu_s(Path(f"/proc/{pid}/stat").read_text())
