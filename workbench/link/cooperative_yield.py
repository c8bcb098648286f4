"""Long work in short pieces, between which a key gets its turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PIECE_S = 0.002
"""A key passes through a dozen turns of the loop before it is painted; each may take so long."""


class Pieces:
    """Says when one that never waits has worked for long enough without giving way.

    It is time that counts, not how much was done: of what comes in, some takes a hundred times as
    long as the rest. A piece ends as soon as anything else has a turn.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: float | None = None

    async def give_way(self) -> None:
        """Let everything else have a turn, if the piece is over."""
        if self._since is None:
            self._since = self._clock()
            asyncio.get_running_loop().call_soon(self._waited)
        elif self._clock() - self._since >= PIECE_S:
            await asyncio.sleep(0)

    def _waited(self) -> None:
        self._since = None
