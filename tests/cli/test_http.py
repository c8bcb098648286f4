"""`/status` and `/metrics`, scraped in mid-run; loopback only, off unless asked for."""

from __future__ import annotations

import json
import socket
import urllib.request
from pathlib import Path

import pytest
from driving import Workbench


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.slow
def test_status_and_metrics_in_mid_run(workbench: Workbench, small_campaign: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    process = workbench.begin(
        *("run", str(small_campaign), "--lab", "sim", "--session", "s", "--json"),
        *("--pace", "10", "--http", address),
    )
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["event"] == "SampleTaken":
            break
    with urllib.request.urlopen(f"http://{address}/status") as answer:
        status = json.load(answer)
    assert status["running"] == "s"
    with urllib.request.urlopen(f"http://{address}/metrics") as answer:
        metrics = answer.read().decode()
    assert "workbench_samples_total" in metrics
    assert 'session="s"' in metrics
    workbench.run("engine", "stop")
    process.communicate()
    listed = {row["name"]: row["state"] for row in workbench.json("ls", "--json")}
    assert listed["s"] in {"interrupted", "stopped"}
    assert workbench.events("resume", "s", "--json")[-1]["outcome"] == "done"
