"""Watches a running system while it is loaded: requests of its own, beside the load.

The generator tells what it saw when it ends, which is too late. So a request is made every
`EVERY_S`, as one more user would; the load stops as soon as the last `WINDOW` of them break what
the system has to hold.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field

import aiohttp

from workbench.domain import kpis
from workbench.domain.errors import LabStopped
from workbench.domain.parameters import Sla

EVERY_S = 0.1
WINDOW = 40
"""Answers that are looked at: the last four seconds."""
FEWEST = 2
"""Requests that break it, at least: one is an accident."""
MOST_WAITING = 100
ANSWER_BYTES = 1 << 16
"""Of an answer that are read at a time."""


@dataclass(frozen=True)
class GuardRequest:
    """One request of the guard: how long it took, and whether it was answered well."""

    ms: float
    well: bool


def broken(guard: Sla, seen: list[GuardRequest]) -> str:
    """A clause on how the last requests break the guard; empty where they do not.

    A quantile q is broken where more than 1 - q of them took longer, a mean where it is over the
    limit, a share where more of them failed; by two requests at least.
    """
    kpi = kpis.of(guard.kpi)
    slow = [one for one in seen if one.ms > guard.limit or not one.well]
    if kpi.kind == "share":
        failed = [one for one in seen if not one.well]
        share = 100 * len(failed) / max(1, len(seen))
        if len(failed) >= FEWEST and share > guard.limit:
            return f"{len(failed)} of the last {len(seen)} requests beside the load failed"
        return ""
    if len(slow) < FEWEST:
        return ""
    longest = max(one.ms for one in slow)
    said = f"of the last {len(seen)} requests beside the load, {len(slow)} failed or took longer "
    said += f"than {guard.limit:g} ms (the longest {longest:.0f} ms)"
    if kpi.quantile is None:
        mean = sum(one.ms for one in seen) / len(seen)
        return said if mean > guard.limit or not all(one.well for one in slow) else ""
    return said if len(slow) > (1 - kpi.quantile) * len(seen) else ""


def stopped(guard: Sla, clause: str, place: str) -> LabStopped:
    """The error that stops the load, of what `broken` says."""
    return LabStopped(
        f"its guard {guard.text} broke: {clause}; the load was stopped at once",
        where=place,
        remedy="Lower max_load and the range, or the guard, before `workbench resume`",
    )


@dataclass
class Guard:
    """Of one function that load enters."""

    sla: Sla
    url: str
    place: str
    timeout_s: float
    _seen: deque[GuardRequest] = field(default_factory=lambda: deque(maxlen=WINDOW))
    _waiting: dict[asyncio.Task[None], float] = field(default_factory=dict)

    async def watch(self) -> None:
        """Ask until it is broken or this is cancelled. Raises `LabStopped` where it is broken."""
        timeout = aiohttp.ClientTimeout(total=self.timeout_s)
        connector = aiohttp.TCPConnector(limit=MOST_WAITING, force_close=True)
        self._seen.clear()
        try:
            async with aiohttp.ClientSession(timeout=timeout, connector=connector) as http:
                while True:
                    if len(self._waiting) < MOST_WAITING:
                        task = asyncio.create_task(self._ask(http))
                        self._waiting[task] = time.monotonic()
                        task.add_done_callback(lambda done: self._waiting.pop(done, None))
                    await asyncio.sleep(EVERY_S)
                    self._look()
        finally:
            for task in (waiting := list(self._waiting)):
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    def _look(self) -> None:
        now = time.monotonic()
        pending = [GuardRequest((now - begin) * 1e3, True) for begin in self._waiting.values()]
        late = [one for one in pending if one.ms > self.sla.limit]
        late = late if kpis.of(self.sla.kpi).kind == "response_time" else []
        if clause := broken(self.sla, [*self._seen, *late][-WINDOW:]):
            raise stopped(self.sla, clause, self.place)

    async def _ask(self, http: aiohttp.ClientSession) -> None:
        begin, well = time.monotonic(), False
        with suppress(aiohttp.ClientError, OSError, TimeoutError):
            async with http.get(self.url, allow_redirects=False) as answer:
                while await answer.content.read(ANSWER_BYTES):
                    pass
                well = answer.status < 400
        self._seen.append(GuardRequest((time.monotonic() - begin) * 1e3, well))
