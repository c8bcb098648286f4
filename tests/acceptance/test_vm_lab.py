"""haproxy in a guest of QEMU, emulated (TCG), profiled end to end by the installed command."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from driving import Workbench

from workbench.labs.vm.qemu_command import QEMU
from workbench.probes.process import PROC

CAMPAIGN = """
kind: campaign
targets:
  - vnf: haproxy
    resource_parameters:
      - {vnf: haproxy, name: vcpu, values: [50%]}
workload_parameters:
  - {name: filesize, values: [10 kB]}
primary_workload_parameter: {name: rate, range: [20/s, 80/s], scale: linear}
load: {kind: open, arrivals: constant, connections: 16}
kpi: p95
kpi_max: 5 s
sampling: {method: uniform, max_samples: 3, repetitions: 1}
windows: {warmup: 2 s, window: 3 s, timeout: 30 s}
"""
ENDED_WITHIN_S = 60.0

pytestmark = [
    pytest.mark.long,
    pytest.mark.needs("apt-get", "dpkg-deb", "ip", "nsenter", QEMU),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces"),
]


def guests(session: str) -> Iterator[int]:
    """Processes of QEMU in control groups of a session."""
    for group in set(Path("/sys/fs/cgroup").glob(f"**/vnf-workbench/*.{session}.haproxy.*")):
        with suppress(OSError):
            for pid in (group / "cgroup.procs").read_text().split():
                with suppress(OSError):
                    if (PROC / pid / "cmdline").read_bytes().startswith(QEMU.encode()):
                        yield int(pid)


def some_guest(session: str) -> int:
    """A guest of the session, once it runs."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        for pid in guests(session):
            return pid
        time.sleep(0.2)
    pytest.fail("no guest came up")


def network_of(pid: int) -> str:
    """Its network namespace; empty where it has ended."""
    with suppress(OSError):
        return str((PROC / str(pid) / "ns" / "net").readlink())
    return ""


def wait_until_gone(*pids: int) -> None:
    until = time.monotonic() + ENDED_WITHIN_S
    while any((PROC / str(pid)).exists() for pid in pids) and time.monotonic() < until:
        time.sleep(0.1)
    assert not [pid for pid in pids if (PROC / str(pid)).exists()]


@pytest.fixture
def campaign(workbench: Workbench) -> Path:
    path = workbench.root / "guest.yaml"
    path.write_text(CAMPAIGN)
    return path


def test_haproxy_is_profiled_in_a_guest(workbench: Workbench, campaign: Path) -> None:
    workbench.longest_s = 900
    for session in (f"guest-{number}" for number in (1, 2, 3)):  # others may spoil the first ones
        run = ("run", str(campaign), "--lab", "vm", "--session", session, "--headless")
        said = workbench.run(*run, expect=None)
        samples = workbench.samples(session)
        assert len(samples) == 3, said.stdout
        if all(sample["valid"] for sample in samples):
            break
        assert "not valid: host_saturated" in said.stdout, said.stdout
    assert [sample["valid"] for sample in samples] == [True, True, True]
    rates = [sample["wl"] for sample in samples]
    for sample in samples:
        assert sample["throughput_rps"] == pytest.approx(sample["wl"], rel=0.1)
        assert 0 < sample["usage.haproxy.cpu_cores"] < 0.6
    assert max(rates) > 2 * min(rates)
    told = workbench.run("show", session).stdout
    assert "Emulated: TCG of QEMU" in told
    assert all("emulated" in sample["labels"] for sample in samples)
    assert not list(guests(session))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_guest_outlives_the_workbench(
    workbench: Workbench, campaign: Path, how: signal.Signals
) -> None:
    running = workbench.start(
        "run", str(campaign), "--lab", "vm", "--session", "ended", "--headless"
    )
    pid = some_guest("ended")
    namespace = network_of(pid)
    engine = int(workbench.json("engine", "status", "--json")["pid"])
    for one in (running.pid, engine):
        with suppress(ProcessLookupError):
            os.kill(one, how)
    running.communicate(timeout=ENDED_WITHIN_S)
    wait_until_gone(pid)
    assert namespace
    assert not [one for one in PROC.glob("[0-9]*") if network_of(int(one.name)) == namespace], (
        "its interfaces and the tap end with the last process there"
    )
