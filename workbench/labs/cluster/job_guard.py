"""Watches a running system from within its cluster: a second container beside the load's.

curl asks ten times a second and tells each answer in a line; the lines are followed and judged here
as those of the guard of this host are (`labs.attached.load_guard`). A guard that says nothing stops
the load like one that is broken.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil

from workbench.domain.errors import LabError, LabStopped
from workbench.domain.parameters import Sla
from workbench.labs.attached.load_guard import EVERY_S, WINDOW, GuardRequest, broken, stopped
from workbench.labs.cluster.job_manifest import GUARD
from workbench.labs.cluster.job_run import JobRun

SILENT_S = 5.0
"""Beyond the longest answer: how long it may say nothing."""
LOOK_S = 0.1


def guard_argv(url: str, timeout_s: float, seconds: float) -> tuple[str, ...]:
    """One request after another on a connection of its own, for at least so many seconds.

    The fragment makes them different to curl, and is not sent. What is written to standard error
    is not held back until there is a buffer full of it.
    """
    count = ceil(seconds / EVERY_S)
    return (
        *("curl", "--silent", "--rate", f"{round(1 / EVERY_S)}/s", "--max-time", f"{timeout_s:g}"),
        *("--header", "Connection: close", "--output", "/dev/null"),
        *("--write-out", "%{stderr}%{http_code} %{time_total}\\n", f"{url}#[1-{count}]"),
    )


@dataclass
class JobGuard:
    """Of one drive; it is watched from when the load began."""

    run: JobRun
    pod: str
    sla: Sla
    place: str
    """Of the function that load enters."""
    timeout_s: float
    _seen: deque[GuardRequest] = field(default_factory=lambda: deque(maxlen=WINDOW))
    _heard_s: float = 0.0
    _last: str = ""
    _lines: int = 0
    """Read of the log so far: who begins to follow it anew is told all of it."""

    async def watch(self) -> None:
        """Until it is broken, silent, or this is cancelled. Raises `LabStopped`."""
        self._heard_s = time.monotonic()
        following = asyncio.create_task(self._follow())
        try:
            while True:
                await asyncio.sleep(LOOK_S)
                if clause := broken(self.sla, list(self._seen)):
                    raise stopped(self.sla, clause, self.place)
                if time.monotonic() > self._heard_s + self.timeout_s + SILENT_S:
                    said = f" (its last line: {self._last[:120]})" if self._last else ""
                    raise LabStopped(
                        f"its guard told nothing for {self.timeout_s + SILENT_S:g} s{said}; the "
                        "load was stopped",
                        where=self.place,
                        remedy="The image has to hold curl 7.84 or later; see that the API server "
                        "lets you read `pods/log`",
                    )
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def _follow(self) -> None:
        while True:
            number = 0
            with suppress(LabError):  # it has not begun, or the connection broke
                lines = self.run.api.log_lines(self.run.job.namespace, self.pod, GUARD)
                async for line in lines:
                    number += 1
                    if number > self._lines:
                        self._lines = number
                        self._hear(line.decode(errors="replace").strip())
            await asyncio.sleep(LOOK_S)

    def _hear(self, line: str) -> None:
        self._last = line
        status, _, seconds = line.partition(" ")
        try:
            asked = GuardRequest(float(seconds) * 1e3, 100 <= int(status) < 400)
        except ValueError:
            return  # what is no answer is no sign of life either
        self._heard_s = time.monotonic()
        self._seen.append(asked)
