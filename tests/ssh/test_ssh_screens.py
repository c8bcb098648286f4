"""Screens over a real SSH client: seen, cut off, found again; the campaign does not notice."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from driving import Workbench
from ssh_door import Door
from terminal import Terminal

pytestmark = pytest.mark.needs("ssh")


@pytest.mark.slow
def test_a_link_that_is_cut_twice_leaves_the_campaign_alone(
    door: Door, workbench: Workbench, small_campaign: Path
) -> None:
    options = ("--headless", "--json", "--lab", "sim", "--seed", "7")
    paced = ("--session", "s", "--pace", "40")
    with workbench.begin("run", str(small_campaign), *options, *paced) as run:
        assert run.stdout is not None
        assert run.stdout.readline()
        for count in (1, 2):
            screen = opened(door)
            screen.process.kill(signal.SIGKILL)  # the client is gone, without a word
            door.until_told("screen_ended", count=count, who="ann")
        screen = opened(door)
        screen.press("q")
        assert screen.ended() == 0
        out = run.stdout.read()  # not `communicate`, which knows nothing of what was read ahead
        _, errors = run.communicate()
        assert run.returncode == 0, errors
    events = [json.loads(line) for line in out.splitlines()]
    assert events[-1]["event"] == "RunFinished"
    assert not {"RunPaused", "StopRequested"} & {event["event"] for event in events}
    assert {e["sample"]["id"] for e in events if e["event"] == "SampleTaken"} <= {
        row["id"] for row in workbench.samples("s")
    }
    assert door.told("command", who="ann") == []


def opened(door: Door) -> Terminal:
    """The live screen, whether the campaign runs still or not."""
    screen = door.screen("ann")
    screen.until(lambda text: "running" in text or "finished" in text)
    screen.press("\r")
    screen.until(lambda text: "RUNNING" in text or "FINISHED" in text, "●")
    return screen


def test_the_server_ends_and_takes_its_screens_with_it(door: Door) -> None:
    screen = door.screen("olga")
    screen.until("Sessions")
    door.process.terminate()
    assert screen.ended() != 0
    door.until_told("screen_ended", who="olga")
    assert door.process.wait(timeout=60) in (0, 130)
    door.until_told("ended")
