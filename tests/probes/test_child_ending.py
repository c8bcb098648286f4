"""A child that is signalled as it ends: how it ended is still told."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from workbench.probes.child_ending import signal_child
from workbench.probes.process import PROC


async def _zombie(process: asyncio.subprocess.Process) -> None:
    """Waits until it has ended and nobody has asked how."""
    async with asyncio.timeout(20):
        # The kernel rings no bell for a child that another thread is to wait for.
        while (PROC / str(process.pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z":  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_its_exit_code_is_not_taken_from_whoever_waits(
    number: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    signalled, ask = threading.Event(), os.waitpid

    def late(pid: int, options: int) -> tuple[int, int]:
        if not options & os.WNOHANG:  # asyncio's own thread, which is slow for once
            assert signalled.wait(20)
        return ask(pid, options)

    monkeypatch.setattr(os, "waitpid", late)
    process = await asyncio.create_subprocess_exec("sh", "-c", "exit 7")
    await _zombie(process)
    signal_child(process, number)
    signalled.set()
    assert await process.wait() == 7
    assert "Unknown child process" not in caplog.text
    signal_child(process, number)  # one that has ended is let be


async def test_one_that_runs_is_ended() -> None:
    process = await asyncio.create_subprocess_exec("sleep", "60")
    signal_child(process)
    assert await process.wait() == -signal.SIGKILL
