"""An engine that is killed in mid-sample: the next start and `reap` put everything back."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from driving import Workbench
from forked_commands import Started

WAIT_S = 120.0
"""Until a sample is under way, on a host that others keep busy."""
Run = subprocess.Popen[str] | Started


def told_by_the_next_start(process: Run, what: str) -> None:
    """Reads what it says until it says that."""
    assert process.stdout is not None
    heard = []
    for line in process.stdout:
        heard.append(line)
        if what in line:
            return
    pytest.fail(f"it was not told of {what!r}: {heard}")


def wait_for(process: Run, seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not seen():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "in vain"
        time.sleep(0.01)  # no bell is rung; a look in a row takes CPU from what is waited for


def killed_and_put_back(
    workbench: Workbench,
    campaign: Path,
    settings: Callable[[], object],
    again: str,
    rounds: int,
) -> None:
    """Killed in mid-sample; the next start and `reap`, in turn, put it back and say `again`."""
    before = settings()
    for number in range(rounds):
        run = ["run", str(campaign), "--headless", "--session", f"killed-{number}"]
        process = workbench.begin(*run)
        if number % 2:
            told_by_the_next_start(process, again)
        wait_for(process, lambda: settings() != before)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert settings() != before
        if number % 2:
            assert again in workbench.run("reap").stdout
            assert settings() == before
    assert again not in workbench.run("reap").stdout, "nothing is left to put back"
