"""The installed command on the real lab: a campaign, and `kill -9` in the middle of one."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from driving import REPOSITORY, Workbench, run_and_kill, sample_ids
from real_campaigns import short_campaign

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("known")]  # its images are built

LABEL = "vnf-workbench.session"
ATTEMPTS, BUDGET = 3, "90s"
"""Of a campaign that a shared host may spoil, which waits no longer for a quiet one."""


def ours_on_the_engine(session: str) -> list[str]:
    """Containers and networks that carry the label of a session."""
    label = f"label={LABEL}={session}"
    containers = ["docker", "ps", "--all", "--quiet", "--filter", label]
    networks = ["docker", "network", "ls", "--quiet", "--filter", label]
    return [
        line
        for command in (containers, networks)
        for line in subprocess.run(
            command, check=True, capture_output=True, text=True
        ).stdout.splitlines()
    ]


def played(workbench: Workbench, *command: str) -> list[dict[str, Any]]:
    """Events of a campaign, whether its host let it come to a result or not."""
    done = workbench.run(*command, "--json", expect=None)
    assert done.returncode in (0, 1), done.stderr  # 1: a configuration without any result
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def real_campaign(workbench: Workbench) -> Path:
    return Path(
        shutil.copy(REPOSITORY / "tests" / "data" / "real.yaml", workbench.root / "real.yaml")
    )


def test_a_campaign_finds_the_capacity_and_leaves_nothing(
    workbench: Workbench, real_campaign: Path
) -> None:
    for attempt in range(ATTEMPTS):
        session = f"real-run-{attempt}"
        events = played(
            workbench, "run", str(real_campaign), "--session", session, "--budget", BUDGET
        )
        last = events[-1]
        assert last["event"] == "RunFinished"
        assert ours_on_the_engine(session) == []
        samples = [event["sample"] for event in events if event["event"] == "SampleTaken"]
        assert all(sample["generator"].startswith("oha ") for sample in samples)
        valid = [sample for sample in samples if sample["valid"]]
        assert all(0 < sample["usage"]["tinyproxy"]["cpu_share"] < 1.3 for sample in valid)
        capacity = next((b for b in last["breakpoints"] if b["rule"] == "capacity"), None)
        if len(valid) >= 3 and capacity and capacity["state"] == "found":
            break
    assert last["outcome"] == "done"
    assert len(valid) >= 3, [sample["findings"] for sample in samples]
    assert capacity
    assert capacity["state"] == "found"
    assert 100 < capacity["low"] <= capacity["wl"] <= capacity["high"] < 2000
    plan = next(event["plan"] for event in events if event["event"] == "CampaignPlanned")
    assert plan["lab"] == "docker"
    facts = next(event["host"] for event in events if event["event"] == "SessionCreated")
    assert set(facts["image_digests"]) == {"tinyproxy", "source", "sink"}


@pytest.mark.unhurried
def test_kill_9_loses_nothing_announced_and_reap_removes_the_rest(
    workbench: Workbench, real_campaign: Path, full_length: bool
) -> None:
    path = real_campaign if full_length else short_campaign(workbench.root, 2)
    announced = run_and_kill(
        workbench,
        ["run", str(path), "--session", "real-killed", "--json"],
        after_samples=2 if full_length else 1,
    )
    stored = {row["id"] for row in workbench.samples("real-killed")}
    assert set(sample_ids(announced)) <= stored
    workbench.run("reap")
    assert ours_on_the_engine("real-killed") == []
    resumed = played(workbench, "resume", "real-killed")
    assert resumed[-1]["outcome"] == "done"
    assert not set(sample_ids(resumed)) & stored
    assert ours_on_the_engine("real-killed") == []
