"""How late the engine's event loop runs its timers: the price of work that blocks it."""

from __future__ import annotations

import asyncio
from collections import deque

PERIOD_S = 0.05
KEPT = 1200
"""One minute of ticks."""


class LagMonitor:
    """Sleeps, and notes by how much it overslept."""

    def __init__(self) -> None:
        self._lags: deque[float] = deque(maxlen=KEPT)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._watch(), name="loop-lag")

    async def stop(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    @property
    def p99_ms(self) -> float:
        """Of the last minute; 0 before the first tick."""
        if not self._lags:
            return 0.0
        ordered = sorted(self._lags)
        return 1000 * ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + PERIOD_S
            await asyncio.sleep(PERIOD_S)
            self._lags.append(max(0.0, loop.time() - due))
