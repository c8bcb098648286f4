"""Two lab hosts in namespaces with an sshd each, by the README's command: measured, and removed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from driving import REPOSITORY, Workbench
from factors_told import interval_told

CAMPAIGN = """
kind: campaign
targets:
  - vnf: tinyproxy
    resource_parameters:
      - {vnf: tinyproxy, name: vcpu, values: [25%, 50%]}
workload_parameters:
  - {name: filesize, values: [10 kB]}
primary_workload_parameter: {name: rate, range: [100/s, 400/s], scale: log}
load: {kind: open, arrivals: constant, connections: 32}
kpi: p95
sampling: {method: uniform, max_samples: 2, repetitions: 1}
windows: {warmup: 1 s, window: 2 s}
"""
SAMPLES = 2 * 2
LONGEST_S = 900

pytestmark = [
    pytest.mark.long,
    pytest.mark.needs("apt-get", "dpkg-deb", "ip", "nsenter", "sshd", "ssh-keygen"),
]


def begin(workbench: Workbench) -> subprocess.Popen[str]:
    (workbench.root / "small.yaml").write_text(CAMPAIGN)
    script = str(REPOSITORY / "scripts" / "two_hosts.py")
    return subprocess.Popen(
        [sys.executable, script, "./small.yaml", "--session", "s"],
        env=workbench.environment, cwd=workbench.root, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def groups() -> list[Path]:
    """Control groups of both hosts."""
    return list(Path("/sys/fs/cgroup").glob("**/vnf-workbench-two-hosts"))


def processes() -> list[int]:
    """Of the hosts: all that is in their control groups; sshd clears its environment, so that no
    workspace is named there."""
    found = set()
    for group in groups():
        for file in group.glob("**/cgroup.procs"):
            with suppress(OSError):
                found |= {int(pid) for pid in file.read_text().split()}
    return sorted(found)


def test_two_hosts_measure_and_agree(workbench: Workbench) -> None:
    running = begin(workbench)
    out, _ = running.communicate(timeout=LONGEST_S)

    assert running.returncode == 0, out
    assert "alpha  up" in out
    assert "beta   up" in out
    assert len(workbench.samples("s")) == SAMPLES
    # The same cores, measured in turns: the factor is near one. That an interval of 95 % holds
    # one is not asked for, which would fail one run in twenty.
    for kpi in ("throughput_rps", "p95_ms"):
        interval = interval_told(out, "beta", kpi)
        assert interval is not None, out
        assert interval[0] < 1.2
        assert interval[1] > 1 / 1.2
    workbench.run("engine", "stop", expect=None)
    assert processes() == []
    assert groups() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_host_outlives_the_command(workbench: Workbench, number: signal.Signals) -> None:
    running = begin(workbench)
    assert running.stdout is not None
    for line in running.stdout:
        if line.startswith("beta   up"):
            break
    else:
        pytest.fail("the hosts did not come up")
    running.send_signal(number)
    running.communicate(timeout=60)

    deadline = time.monotonic() + 30
    while (left := processes()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []
    if number is not signal.SIGKILL:  # then they are empty, and removed by the next start
        assert groups() == []
