"""`kill -9` at any moment: what was announced is there, resume measures nothing twice."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from driving import Workbench, run_and_kill, sample_ids


@pytest.mark.slow
def test_nothing_announced_is_lost_and_nothing_is_measured_twice(
    workbench: Workbench, small_campaign: Path, full_length: bool
) -> None:
    # Two blocks: some moments lie in the second one, whose deployment is not the first.
    blocks = "sampling: {method: uniform, max_samples: 6, repetitions: 2}"
    descriptor = small_campaign.read_text(encoding="utf-8")
    small_campaign.write_text(descriptor.replace("sampling: {max_samples: 6}", blocks), "utf-8")
    run = ["run", str(small_campaign), "--lab", "sim", "--json", "--session"]
    whole = workbench.events(*run, "whole")
    generator = random.Random(20)
    half = len(whole) // 2
    for number in range(20 if full_length else 2):
        session = f"killed-{number}"
        moment = generator.randint(1, half) + (number % 2) * half  # in either block in turn
        announced = run_and_kill(workbench, [*run, session], after_lines=moment)
        stored = {row["id"]: row for row in workbench.samples(session)}
        assert set(sample_ids(announced)) <= set(stored)
        listed = {row["name"]: row["state"] for row in workbench.json("ls", "--json")}
        if listed[session] != "finished":  # the last event may be stored and not yet announced
            assert listed[session] == "interrupted"
            resumed = workbench.events("resume", session, "--json")
            assert not set(sample_ids(resumed)) & set(stored)
            assert resumed[-1]["outcome"] == "done"
        after = {row["id"]: row for row in workbench.samples(session)}
        assert sorted(after) == sorted(sample_ids(whole))
        assert {name: after[name] for name in stored} == stored
