"""`kill -9` at any moment: what was announced is there, resume measures nothing twice."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path
from typing import Any

from driving import Workbench


def run_and_kill(
    workbench: Workbench, arguments: list[str], after_lines: int
) -> list[dict[str, Any]]:
    """Start a headless run, kill it after that many lines; the events that it announced."""
    process = workbench.start(*arguments)
    assert process.stdout is not None
    announced = []
    for line in process.stdout:
        announced.append(json.loads(line))
        if len(announced) >= after_lines or announced[-1]["event"] == "RunFinished":
            break
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    # What was in the pipe when it died was announced as well; its last line may be torn.
    announced += [json.loads(line) for line in rest.splitlines() if line.endswith("}")]
    return announced


def ids(events: list[dict[str, Any]]) -> list[str]:
    return [event["sample"]["id"] for event in events if event["event"] == "SampleTaken"]


def test_nothing_announced_is_lost_and_nothing_is_measured_twice(
    workbench: Workbench, small_campaign: Path, full_length: bool
) -> None:
    run = ["run", str(small_campaign), "--lab", "sim", "--json", "--session"]
    whole = workbench.events(*run, "whole")
    generator = random.Random(20)
    for number in range(20 if full_length else 4):
        session = f"killed-{number}"
        announced = run_and_kill(workbench, [*run, session], generator.randint(1, len(whole)))
        stored = {row["id"]: row for row in workbench.samples(session)}
        assert set(ids(announced)) <= set(stored)
        listed = {row["name"]: row["state"] for row in workbench.json("ls", "--json")}
        if announced[-1]["event"] != "RunFinished":
            assert listed[session] == "interrupted"
            resumed = workbench.events("resume", session, "--json")
            assert not set(ids(resumed)) & set(stored)
            assert resumed[-1]["outcome"] == "done"
        after = {row["id"]: row for row in workbench.samples(session)}
        assert sorted(after) == sorted(ids(whole))
        assert {name: after[name] for name in stored} == stored
