"""Children of this process: signalled so that asyncio still learns how they ended; and what has to
be done to its end on every way out."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any


def signal_child(process: asyncio.subprocess.Process, number: int = signal.SIGKILL) -> None:
    """Send a signal to a child; one that has ended is let be.

    `process.kill()` would first ask the kernel whether it has ended, and thereby take its exit code
    from whoever waits for it: asyncio says "Unknown child process pid" then, and 255.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


async def uncancelled(way_out: Coroutine[Any, Any, None]) -> None:
    """Do it to its end, which is bounded, though this is cancelled meanwhile."""
    task = asyncio.ensure_future(way_out)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))  # a second one does not end it either
        raise
