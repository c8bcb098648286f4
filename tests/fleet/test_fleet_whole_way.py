"""A campaign over real processes: hosts that are killed, and what is measured again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from driving import Workbench

CAMPAIGN = """
kind: campaign
targets:
  - vnf: tinyproxy
    resource_parameters:
      - {vnf: tinyproxy, name: vcpu, values: [25%, 50%]}
workload_parameters:
  - {name: filesize, values: [10 kB]}
primary_workload_parameter: {name: rate, range: [100/s, 600/s], scale: log}
load: {kind: open, arrivals: constant, connections: 32}
kpi: p95
sampling: {method: uniform, max_samples: 3, repetitions: 1}
windows: {warmup: 1 s, window: 3 s}
lab: sim
"""
HOSTS = """
kind: hosts
hosts:
  alpha: {kind: simulated}
  beta: {kind: simulated, speed: 0.8}
  gamma: {kind: simulated, speed: 1.25}
  delta: {kind: simulated, noise: 2}
"""
SAMPLES = 2 * 3
LONGEST_S = 240


def standing(workbench: Workbench) -> dict[str, Any]:
    path = workbench.root / ".workbench/fleet/hosts/standing.json"
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except OSError:
        return {"hosts": []}
    return found


def bundles(workbench: Workbench) -> dict[tuple[str, str], bytes]:
    """Manifests of what the hosts have finished, by host and session."""
    root = workbench.root / ".workbench/fleet/hosts/hosts"
    return {
        (path.parts[-4], path.parent.name): path.read_bytes()
        for path in root.glob("*/exports/*.bundle/manifest.json")
    }


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def begun_on(workbench: Workbench, host: str) -> bool:
    """Whether a host measures something that it has not finished."""
    folder = workbench.root / ".workbench/fleet/hosts/hosts" / host
    begun = {path.stem for path in folder.glob("sessions/*.duckdb")}
    return bool(
        begun - {name.removesuffix(".bundle") for h, name in bundles(workbench) if h == host}
    )


def wait_for(what: Any, running: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + LONGEST_S
    while not what():
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def measure_and_kill(workbench: Workbench, hosts: str, of: str) -> dict[str, Any]:
    """Run the campaign; once one shard is finished and `of` measures another, kill that host."""
    (workbench.root / "hosts.yaml").write_text(hosts)
    (workbench.root / "small.yaml").write_text(CAMPAIGN)
    words = "run ./small.yaml --fleet hosts.yaml --session s --seed 7 --pace 20".split()
    running = workbench.start(*words)
    wait_for(lambda: bundles(workbench) and begun_on(workbench, of), running)
    before = bundles(workbench)
    known = standing(workbench)
    (killed,) = (host["pid"] for host in known["hosts"] if host["name"] == of)
    os.kill(killed, signal.SIGKILL)
    out, err = running.communicate(timeout=LONGEST_S)
    assert running.returncode == 0, err
    after = bundles(workbench)

    # Whole: every point once, in one session.
    rows = workbench.samples("s")
    points = Counter((row["tinyproxy.vcpu"], row["wl"]) for row in rows)
    assert len(rows) == len(points) == SAMPLES
    assert re.search(rf"^s: {SAMPLES} samples( and \d+ at anchor points)? in ", out, re.M), out
    # What was finished is as it was, and no shard was finished twice.
    assert f"{of} is gone" in err
    assert before.items() <= after.items()
    assert len({session for _, session in after}) == len(after)
    # Nothing is left of the fleet.
    assert not any(map(lives, [known["pid"], *(host["pid"] for host in known["hosts"])]))
    assert not standing(workbench)["hosts"]
    return {"out": out, "err": err, "finished": after}


@pytest.mark.slow
def test_a_killed_host_goes_on_where_it_was(workbench: Workbench) -> None:
    done = measure_and_kill(workbench, "kind: hosts\nhosts: {alpha: {kind: simulated}}\n", "alpha")

    assert len(done["finished"]) == 2
    assert "Measured by 1 host: alpha" in workbench.run("show", "s").stdout


@pytest.mark.long
def test_a_host_that_is_killed_among_four_costs_no_finished_shard(workbench: Workbench) -> None:
    done = measure_and_kill(workbench, HOSTS, "beta")

    assert len(done["finished"]) == 2 + 4
    assert re.search(
        r"^hosts compared with alpha: \w+ of beta is [\d.]+ times as ", done["out"], re.M
    )
    assert "Hosts compared with alpha: " in workbench.run("show", "s").stdout


def test_the_command_says_what_is_missing(workbench: Workbench) -> None:
    (workbench.root / "hosts.yaml").write_text(HOSTS)
    code = (
        "import sys; sys.modules['distributed'] = None; sys.modules['dask'] = None\n"
        "import workbench.cli as c; c.main()"
    )
    for words in ("fleet up hosts.yaml", "run demo --fleet hosts.yaml"):
        done = subprocess.run(
            [sys.executable, "-c", code, *words.split()],
            env=workbench.environment, cwd=workbench.root, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 2
        assert "pip install 'vnf-workbench[fleet]'" in done.stderr
    assert "is not up" in workbench.run("fleet", "status", "hosts.yaml", expect=1).stderr
    assert "was not up" in workbench.run("fleet", "down", "hosts.yaml").stderr
    refused = workbench.run("run", "demo", "--fleet", "hosts.yaml", "--json", expect=2)
    assert "--json" in refused.stderr
    missing = workbench.run("run", "demo", "--fleet", "missing.yaml", expect=2)
    assert "missing.yaml" in missing.stderr
