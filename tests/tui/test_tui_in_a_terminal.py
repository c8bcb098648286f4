"""The live screen in a real pty at 80x24, driven by keys against the simulated lab."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from chain_session import SESSION, write_chain_session
from driving import COMMAND, Workbench, a_workbench
from terminal import PATIENCE_S, Terminal


def run_arguments(campaign: str | Path, pace: str = "20") -> list[str]:
    return ["run", str(campaign), "--lab", "sim", "--seed", "7", "--session", "s", "--pace", pace]


REPLAY = ("replay", "chain-real", "--speed", "60")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """A workspace whose engine runs, for screens that are about nothing but their terminal."""
    with a_workbench(tmp_path_factory.mktemp("shared")) as made, made.serving():
        yield made


def without_toasts(text: str) -> bool:
    return "▌" not in text


def nothing_runs(text: str) -> bool:
    """No configuration of the list is measured or waits: one that is stopped, has its last sample
    after the title says so."""
    return re.search("^[ ›][·▶]", text, re.MULTILINE) is None


@pytest.mark.slow
def test_keys_drive_the_run_and_the_screen_shows_its_state(served: Workbench) -> None:
    screen = Terminal(served, *run_arguments("demo"))
    screen.until("RUNNING", "simulated lab")
    # Samples, fitted curve with its band, what is asked next, a breakpoint, the SLA limit.
    screen.until("●", "░", "next", "◇", "capacity", "SLA p95", "┊")

    screen.press("?")
    screen.until("The plot shows one configuration")
    screen.press("\x1b")
    screen.until(lambda text: "The plot shows one configuration" not in text)

    screen.press("f")
    screen.until("FROZEN")
    screen.press("f")
    screen.until(lambda text: "FROZEN" not in text)

    screen.press("p")
    screen.until("PAUSED")
    screen.press("p")
    screen.until("RUNNING")

    screen.press("K", "y")  # skip asks first
    screen.until("skip")
    screen.press("Q", "\x07", "%")  # keys without a meaning
    screen.press("s")
    screen.until("top")
    screen.press("y")
    last = screen.until("STOPPED", without_toasts, nothing_runs)
    screen.press("q")
    assert screen.ended() == 0

    shown = served.json("show", "s", "--json")
    assert shown["state"] == "stopped"
    assert "skipped" in {c["state"] for c in shown["configurations"]}

    # Replay ends with the same list; its time line takes a row of the plot and of the list.
    marks = (" ✓", " ·", " ■", " »", "›")
    body = [line for line in last.splitlines() if line.startswith(marks)][:4]
    assert len(body) == 4
    replay = Terminal(served, "replay", "s", "--speed", "1000")
    replay.until("REPLAY", "STOPPED", without_toasts, *body)
    replay.press("q")
    assert replay.ended() == 0


@pytest.mark.slow
def test_a_screen_may_go_and_come_without_the_run_noticing(
    workbench: Workbench, small_campaign: Path
) -> None:
    first = Terminal(workbench, *run_arguments(small_campaign, pace="8"))
    first.until("RUNNING", "●")
    first.process.kill(signal.SIGKILL)
    second = Terminal(workbench, "attach", "s")
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
    served: Workbench, small_campaign: Path
) -> None:
    screen = Terminal(served, *run_arguments(small_campaign), columns=20, rows=5)
    screen.until("60")  # columns that it needs
    screen.resize(80, 24)
    screen.until("s ", "●")
    screen.press("q")
    assert screen.ended() == 0


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "linux", "COLORTERM": ""}])
def test_without_colours_nothing_is_missing(
    served: Workbench, small_campaign: Path, variables: dict[str, str]
) -> None:
    screen = Terminal(served, *run_arguments(small_campaign), **variables)
    screen.until("RUNNING", "●", "◇", "SLA p95", "capacity")
    screen.press("q")
    assert screen.ended() == 0


@pytest.mark.parametrize("size", [(80, 24), (20, 5)])
def test_a_vanished_terminal_ends_the_screen(shared: Workbench, size: tuple[int, int]) -> None:
    columns, rows = size
    screen = Terminal(shared, *REPLAY, columns=columns, rows=rows)
    screen.until("REPLAY" if rows == 24 else "60")
    pid = screen.process.pid
    os.close(screen.process.child_fd)  # as when an SSH connection is cut
    status = os.waitpid(pid, 0)[1]
    assert os.WIFEXITED(status) or os.WIFSIGNALED(status)


def in_a_bare_pty(workbench: Workbench) -> tuple[subprocess.Popen[bytes], int, int]:
    """A screen in a pty that is not its controlling terminal, with our end and its own."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    process = subprocess.Popen(
        [COMMAND, *REPLAY],
        env=workbench.environment | {"TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    return process, ours, theirs


def test_a_screen_that_gets_no_signal_ends_too(shared: Workbench) -> None:
    """Such a pty sends no SIGHUP; nor can it be written to."""
    process, ours, theirs = in_a_bare_pty(shared)
    os.close(theirs)
    assert os.read(ours, 1000)
    os.close(ours)
    assert process.wait(timeout=PATIENCE_S) is not None


def test_a_signal_ends_a_screen_whose_terminal_nobody_reads(shared: Workbench) -> None:
    process, ours, theirs = in_a_bare_pty(shared)
    filling = os.open(os.ttyname(theirs), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        seen, patience = b"", time.monotonic() + PATIENCE_S
        while b"REPLAY" not in seen:
            readable, _, _ = select.select([ours], [], [], patience - time.monotonic())
            assert readable, seen[-1000:]
            seen += os.read(ours, 1 << 16)
        for _ in range(20):  # the kernel moves on what was written, until nothing fits
            with suppress(BlockingIOError):
                while True:
                    os.write(filling, b"x")
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_S) == 0
    finally:
        process.kill()
        for end in (filling, theirs, ours):
            os.close(end)


def test_a_newcomer_tours_and_reads_a_recording_by_keys_alone(workbench: Workbench) -> None:
    screen = Terminal(workbench)
    screen.until("Tour 1/5", "demo-real")
    screen.press("T")
    screen.until("Tour 2/5")
    screen.press("X")
    screen.until(lambda text: "Tour" not in text)
    screen.press("/")
    screen.until("filter: ")
    screen.press(*"demo-real", "\r")
    screen.until("⏎ Open", lambda text: "science" not in text)
    screen.press("\r")
    screen.until("FINISHED", "breakpoints")
    screen.press("9", "k")
    screen.until("events and logs · level all", "→")
    screen.press("t")  # the next theme, which is remembered
    screen.until("Theme light")
    screen.press("q")
    assert screen.ended() == 0
    again = Terminal(workbench)
    again.until("demo-real", lambda text: "Tour" not in text)
    again.press("q")
    assert again.ended() == 0


def test_a_picture_needs_no_terminal(workbench: Workbench) -> None:
    picture = workbench.root / "plot.svg"
    options = ("--plot", "--size", "100x30", "--theme", "safe")
    workbench.run("show", "demo-real", "--export-svg", str(picture), *options)
    assert "breakpoint" in picture.read_text(encoding="utf-8")
    wrong = workbench.run(
        "show", "demo-real", "--export-svg", str(picture), "--screen", "nope", expect=2
    )
    assert wrong.stderr.startswith("there is no screen 'nope'. Use sessions, ")


@pytest.mark.slow
def test_a_picture_of_a_screen_that_computes_needs_no_engine_either(workbench: Workbench) -> None:
    asyncio.run(write_chain_session(workbench.root / "sessions" / f"{SESSION}.duckdb"))
    picture = workbench.root / "compare.svg"
    workbench.run("show", SESSION, "--export-svg", str(picture), "--screen", "compare")
    assert "predicted" in picture.read_text(encoding="utf-8")
