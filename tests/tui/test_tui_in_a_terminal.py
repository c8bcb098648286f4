"""The live screen in a real pty at 80x24, driven by keys against the simulated lab."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from driving import Workbench
from terminal import Terminal


def run_arguments(campaign: str | Path, pace: str = "20") -> list[str]:
    return ["run", str(campaign), "--lab", "sim", "--seed", "7", "--session", "s", "--pace", pace]


def without_toasts(text: str) -> bool:
    return "▌" not in text


def test_keys_drive_the_run_and_the_screen_shows_its_state(workbench: Workbench) -> None:
    screen = Terminal(workbench, *run_arguments("demo"))
    screen.until("RUNNING", "simulated lab")
    # Samples, fitted curve with its band, what is asked next, a breakpoint, the SLA limit.
    screen.until("●", "░", "next", "◇", "capacity", "SLA p95", "┊")

    screen.press("?")
    screen.until("Keys", "Freeze")
    screen.press("\x1b")
    screen.until(lambda text: "Hold the drawing" not in text)

    screen.press("f")
    screen.until("FROZEN")
    screen.press("f")
    screen.until(lambda text: "FROZEN" not in text)

    screen.press("p")
    screen.until("PAUSED")
    screen.press("p")
    screen.until("RUNNING")

    screen.press("x", "y")  # skip asks first
    screen.until("skip")
    screen.press("Q", "\x07", "%")  # keys without a meaning
    screen.press("s")
    screen.until("top")
    screen.press("y")
    last = screen.until("STOPPED", without_toasts)
    screen.press("q")
    assert screen.ended() == 0

    shown = workbench.json("show", "s", "--json")
    assert shown["state"] == "stopped"
    assert "skipped" in {c["state"] for c in shown["configurations"]}

    # Replay ends on the same screen: same plot, list and log.
    replay = Terminal(workbench, "replay", "s", "--speed", "1000")
    again = replay.until("REPLAY", "STOPPED", without_toasts)
    replay.press("q")
    assert replay.ended() == 0
    body = [line for line in last.splitlines() if line.startswith(("│", "╭", " ✓", " ·"))]
    assert body
    missing = [line for line in body if line not in again]
    assert not missing, f"{missing}\n{again}"


def test_a_screen_may_go_and_come_without_the_run_noticing(
    workbench: Workbench, small_campaign: Path
) -> None:
    first = Terminal(workbench, *run_arguments(small_campaign, pace="8"))
    first.until("RUNNING", "●")
    first.process.kill(signal.SIGKILL)
    second = Terminal(workbench)
    second.until("running")
    second.press("\r")
    second.until("RUNNING", "●")
    second.process.kill(signal.SIGHUP)  # the SSH client is gone
    second.ended()
    third = Terminal(workbench)
    third.until(lambda text: "running" in text or "finished" in text)
    third.press("\r")
    third.until("FINISHED")
    third.press("q")
    third.ended()
    alone = workbench.events(
        *("run", str(small_campaign), "--lab", "sim", "--seed", "7", "--session", "alone", "--json")
    )
    undisturbed = [e["sample"]["id"] for e in alone if e["event"] == "SampleTaken"]
    assert [row["id"] for row in workbench.samples("s")] == undisturbed


def test_a_terminal_of_20x5_says_what_it_needs_and_grows_again(
    workbench: Workbench, small_campaign: Path
) -> None:
    screen = Terminal(workbench, *run_arguments(small_campaign), columns=20, rows=5)
    screen.until("60")  # columns that it needs
    screen.resize(80, 24)
    screen.until("RUNNING", "●")
    screen.press("q")
    assert screen.ended() == 0


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "linux", "COLORTERM": ""}])
def test_without_colours_nothing_is_missing(
    workbench: Workbench, small_campaign: Path, variables: dict[str, str]
) -> None:
    screen = Terminal(workbench, *run_arguments(small_campaign), **variables)
    screen.until("RUNNING", "●", "◇", "SLA p95", "capacity")
    screen.press("q")
    assert screen.ended() == 0


def test_a_vanished_terminal_leaves_no_spinning_process(
    workbench: Workbench, small_campaign: Path
) -> None:
    screen = Terminal(workbench, *run_arguments(small_campaign))
    screen.until("RUNNING")
    pid = screen.process.pid
    screen.process.close(force=False)
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and not _is_zombie(pid):
        assert time.monotonic() < deadline, "the screen outlives its terminal"


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True
