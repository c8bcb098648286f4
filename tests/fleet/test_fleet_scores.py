"""Models that the hosts of a fleet score: the same figures as the engine's own worker has."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest
from driving import Workbench

HOSTS = "kind: hosts\nhosts: {alpha: {kind: simulated}, beta: {kind: simulated}}\n"
WORDS = (
    "models",
    "demo-real",
    "--target",
    "haproxy",
    "--methods",
    "k-nearest,interpolation",
)


def scored(workbench: Workbench, *more: str) -> list[dict[str, Any]]:
    said = workbench.run(*WORDS, *more, "--json")
    found: list[dict[str, Any]] = json.loads(said.stdout)
    for row in found:
        row.pop("fit_s")
    return found


@pytest.mark.long
def test_hosts_score_models_as_the_own_worker_does(workbench: Workbench) -> None:
    (workbench.root / "hosts.yaml").write_text(HOSTS)
    here = scored(workbench)
    workbench.run("fleet", "up", "hosts.yaml")
    try:
        there = scored(workbench, "--fleet", "hosts.yaml")
        told = workbench.run(*WORDS, "--fleet", "hosts.yaml").stderr
    finally:
        workbench.run("fleet", "down", "hosts.yaml")
    assert [row["method"] for row in there] == [row["method"] for row in here]
    keys = set(here[0]) & set(there[0])
    assert {"rmse", "coverage", "width", "best"} <= keys
    for one, other in zip(here, there, strict=True):
        assert {k: one[k] for k in ("rmse", "mae", "coverage", "width", "best", "trouble")} == {
            k: other[k] for k in ("rmse", "mae", "coverage", "width", "best", "trouble")
        }
    assert "scored by 2 hosts of hosts; nothing is stored" in " ".join(told.split())
    assert "(2 of 2)" in told


def test_a_fleet_that_is_not_up_scores_nothing(workbench: Workbench) -> None:
    (workbench.root / "hosts.yaml").write_text(HOSTS)
    refused = workbench.run(*WORDS, "--fleet", "hosts.yaml", expect=3)
    assert "is not up" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.long
def test_who_asks_leaves_while_hosts_still_score(workbench: Workbench) -> None:
    """The hosts stand still once they were asked, so that no score ever comes."""
    (workbench.root / "hosts.yaml").write_text(HOSTS)
    workbench.run("fleet", "up", "hosts.yaml")
    folder = workbench.root / ".workbench" / "fleet" / "hosts"
    standing = json.loads((folder / "standing.json").read_text())
    pids = [host["pid"] for host in standing["hosts"]]
    try:
        asking = workbench.start(*WORDS, "--fleet", "hosts.yaml")
        assert asking.stderr is not None
        said = next(line for line in asking.stderr if "scores by" in line)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        asking.send_signal(signal.SIGINT)
        _, rest = asking.communicate(timeout=20)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    finally:
        workbench.run("fleet", "down", "hosts.yaml")
    assert said == "2 scores by 2 hosts\n"
    assert asking.returncode == 130
    assert "Traceback" not in rest


@pytest.mark.long
def test_hosts_that_all_died_are_not_waited_for(workbench: Workbench) -> None:
    (workbench.root / "hosts.yaml").write_text(HOSTS)
    workbench.run("fleet", "up", "hosts.yaml")
    folder = workbench.root / ".workbench" / "fleet" / "hosts"
    standing = json.loads((folder / "standing.json").read_text())
    try:
        asking = workbench.start(*WORDS, "--fleet", "hosts.yaml")
        assert asking.stderr is not None
        next(line for line in asking.stderr if "scores by" in line)
        for host in standing["hosts"]:
            os.kill(host["pid"], signal.SIGKILL)
        _, rest = asking.communicate(timeout=90)
    finally:
        workbench.run("fleet", "down", "hosts.yaml")
    assert "lost all its hosts" in " ".join(rest.split())
    assert asking.returncode == 3
