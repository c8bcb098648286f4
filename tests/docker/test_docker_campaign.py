"""The installed command on the real lab: a campaign, and `kill -9` in the middle of one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from driving import REPOSITORY, Workbench, run_and_kill, sample_ids

pytestmark = pytest.mark.docker

LABEL = "vnf-workbench.session"


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


@pytest.fixture
def real_campaign(workbench: Workbench) -> Path:
    return Path(
        shutil.copy(REPOSITORY / "tests" / "data" / "real.yaml", workbench.root / "real.yaml")
    )


def test_a_campaign_finds_the_capacity_and_leaves_nothing(
    workbench: Workbench, real_campaign: Path
) -> None:
    events = workbench.events("run", str(real_campaign), "--session", "real-run", "--json")
    last = events[-1]
    assert (last["event"], last["outcome"]) == ("RunFinished", "done")
    samples = [event["sample"] for event in events if event["event"] == "SampleTaken"]
    assert all(sample["generator"].startswith("oha ") for sample in samples)
    valid = [sample for sample in samples if sample["valid"]]
    assert len(valid) >= 3, [sample["findings"] for sample in samples]
    assert all(0 < sample["usage"]["tinyproxy"]["cpu_share"] < 1.3 for sample in valid)
    capacity = next(b for b in last["breakpoints"] if b["rule"] == "capacity")
    assert capacity["state"] == "found"
    assert 100 < capacity["low"] <= capacity["wl"] <= capacity["high"] < 2000
    plan = next(event["plan"] for event in events if event["event"] == "CampaignPlanned")
    assert plan["lab"] == "docker"
    facts = next(event["host"] for event in events if event["event"] == "SessionCreated")
    assert set(facts["image_digests"]) == {"tinyproxy", "source", "sink"}
    assert ours_on_the_engine("real-run") == []


def test_kill_9_loses_nothing_announced_and_reap_removes_the_rest(
    workbench: Workbench, real_campaign: Path
) -> None:
    announced = run_and_kill(
        workbench,
        ["run", str(real_campaign), "--session", "real-killed", "--json"],
        after_samples=2,
    )
    stored = {row["id"] for row in workbench.samples("real-killed")}
    assert set(sample_ids(announced)) <= stored
    workbench.run("reap")
    assert ours_on_the_engine("real-killed") == []
    resumed = workbench.events("resume", "real-killed", "--json")
    assert resumed[-1]["outcome"] == "done"
    assert not set(sample_ids(resumed)) & stored
    assert ours_on_the_engine("real-killed") == []
