"""Models that the hosts of a fleet score: the same figures as the engine's own worker has."""

from __future__ import annotations

import json
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


def test_a_fleet_that_is_not_up_scores_nothing(workbench: Workbench) -> None:
    (workbench.root / "hosts.yaml").write_text(HOSTS)
    refused = workbench.run(*WORDS, "--fleet", "hosts.yaml", expect=3)
    assert "is not up" in refused.stderr
    assert "Traceback" not in refused.stderr
