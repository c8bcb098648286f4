"""The whole way by keys over a real SSH client whose link is cut twice; results come by sftp."""

from __future__ import annotations

import signal

import pytest
import whole_way_keys as way
from driving import Workbench
from ssh_door import Door
from terminal import Terminal

pytestmark = pytest.mark.needs("ssh", "sftp")


@pytest.mark.slow
def test_the_whole_way_survives_a_link_that_is_cut_twice(served: Workbench, door: Door) -> None:
    screen = door.screen("ann")
    screen.until("Sessions")
    way.build(screen)
    way.choose(screen)
    screen = after_a_cut(door, screen, 1)  # while the campaign runs
    way.await_breakpoints(screen)
    way.compare(screen)
    way.canary(screen)
    screen = after_a_cut(door, screen, 2)  # while the canary measures
    screen.press("7")
    way.accept(screen)
    way.recommend(screen)
    way.close(screen)

    again = door.screen("ann")
    way.find_again(again)
    way.close(again)

    assert door.sftp("ann", f"get -r {way.SESSION}-r1").returncode == 0
    fetched = way.written(door.keys / f"{way.SESSION}-r1")
    assert [one["kind"] for one in fetched] == ["Component", "Deployment", "Deployment"]
    assert fetched == way.written(served.root / "exports" / f"{way.SESSION}-r1")
    assert door.told("command", who="ann"), "the audit log names who commanded"


def after_a_cut(door: Door, screen: Terminal, count: int) -> Terminal:
    """The client is gone without a word; the next one finds the session as it is now."""
    screen.process.kill(signal.SIGKILL)
    door.until_told("screen_ended", count=count, who="ann")
    found = door.screen("ann")
    found.until(way.SESSION)
    found.press(way.ENTER)
    found.until(lambda text: "RUNNING" in text or "FINISHED" in text)
    return found
