"""Children of this process: signalled so that asyncio still learns how they ended."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress


def signal_child(process: asyncio.subprocess.Process, number: int = signal.SIGKILL) -> None:
    """Send a signal to a child; one that has ended is let be.

    `process.kill()` would first ask the kernel whether it has ended, and thereby take its exit code
    from whoever waits for it: asyncio says "Unknown child process pid" then, and 255.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
