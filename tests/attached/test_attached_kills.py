"""An engine that is killed in mid-sample: the next start and `reap` put everything back."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable

import pytest
from driving import Workbench
from running_system import RunningSystem


def told_by_the_next_start(process: subprocess.Popen[str], what: str) -> None:
    """Reads what it says until it says that."""
    assert process.stdout is not None
    heard = []
    for line in process.stdout:
        heard.append(line)
        if what in line:
            return
    pytest.fail(f"it was not told of {what!r}: {heard}")


def wait_for(process: subprocess.Popen[str], seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not seen():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "in vain"


def test_what_a_killed_engine_changed_is_put_back(
    workbench: Workbench, system: RunningSystem, full_length: bool
) -> None:
    """Killed in mid-sample; `reap` and the next start put it back, and say so."""
    before = system.settings()
    campaign = system.campaign(workbench.root, samples=20)
    again = f"process {system.pid}: {system.quota.name} is 40000"
    for number in range(20 if full_length else 2):
        run = ["run", str(campaign), "--headless", "--session", f"killed-{number}"]
        process = workbench.start(*run)
        if number % 2:
            told_by_the_next_start(process, again)
        wait_for(process, lambda: system.settings() != before)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert system.settings() != before
        if number % 2:
            assert again in workbench.run("reap").stdout
            assert system.settings() == before
    assert workbench.run("reap").stderr.strip() == "no strays"
