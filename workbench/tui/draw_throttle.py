"""How often a screen draws by itself: as fast as a person reads, and less while the host measures.

Drawing takes CPU from what is measured. All screens together may take a share of a core then; the
engine tells each what is left for it, and it is the slower the more there are, the more it costs to
draw, and the slower the host is. What a key asks for is drawn at once, always.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

LEAST_S = 1 / 3
"""Drawing three times a second is as fast as a person reads figures."""
MOST_S = 20.0
"""However little its share is, a screen shows what there is after so long."""


class DrawThrottle:
    """When it is due to draw what nobody asked for.

    Parameters
    ----------
    share : what part of a core this process may use now; None: as much as it likes.
    clock, spent : seconds of time, and of the CPU time of this process.
    """

    def __init__(
        self,
        share: Callable[[], float | None],
        clock: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] = time.process_time,
    ) -> None:
        self._share = share
        self._clock = clock
        self._spent = spent
        self._drawn_at = -MOST_S
        self._spent_before = 0.0

    def drawing(self) -> None:
        """It is drawn now: what that costs counts until the next time."""
        self._drawn_at, self._spent_before = self._clock(), self._spent()

    @property
    def wait_s(self) -> float:
        """Until the next drawing is due; 0 if it is."""
        least_s, share = LEAST_S, self._share()
        if share is not None:
            spent_s = self._spent() - self._spent_before
            least_s = min(MOST_S, max(least_s, spent_s / share))
        return max(0.0, self._drawn_at + least_s - self._clock())

    async def until_due(self) -> None:
        """Wait for it; painting comes after drawing and is counted, and the share may change."""
        while (left := self.wait_s) > 0:  # noqa: ASYNC110 - it is time that passes
            await asyncio.sleep(min(left, 1.0))
