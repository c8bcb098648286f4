"""File descriptors: as many as the host grants, and some kept back for who has to be served."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import time
from pathlib import Path
from typing import Any

from workbench.log import logger

WANTED = 8192
RESERVE = 320
"""Kept free of screens and commands: for log-ins, logs, and connections that come in bursts, of
which some are open before they can be counted."""
QUIET_S = 60.0
OPEN = Path("/proc/self/fd")

log = logger("serve")


def raise_limit() -> None:
    """Take what the host grants: each screen needs several."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def are_short() -> bool:
    """Whether no more than the reserve is free; of a small number, half is kept back."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return False
    return soft - sum(1 for _ in os.scandir(OPEN)) < min(RESERVE, soft // 2)


class SeldomTold:
    """What the loop has to complain of, in the log; of what comes in floods one line a minute."""

    def __init__(self) -> None:
        self._since = -QUIET_S
        self._untold = 0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """The loop's exception handler."""
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)):
            log.error(context.get("message", "unexpected"), exc_info=error)
            return
        self._untold += 1
        if loop.time() - self._since >= QUIET_S:
            log.warning("no file descriptors are left for who comes", times=self._untold)
            self._since, self._untold = loop.time(), 0


class Knocks:
    """Who did not get in: so many are told a minute, the rest is counted.

    Parameters
    ----------
    most : lines a minute.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._since = -QUIET_S
        self._told = self._untold = 0

    def count(self) -> tuple[bool, int]:
        """Whether to tell of one, and how many were not told of in the minute before."""
        now, before = time.monotonic(), 0
        if now - self._since >= QUIET_S:
            before, self._untold = self._untold, 0
            self._since, self._told = now, 0
        tell = self._told < self._most
        self._told += tell
        self._untold += not tell
        return tell, before

    def rest(self) -> int:
        """How many nobody was told of, at the end."""
        rest, self._untold = self._untold, 0
        return rest
