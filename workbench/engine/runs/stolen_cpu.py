"""A hypervisor that gives this host's cores to others while samples are taken."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable

from workbench.domain.observations import MOST_STOLEN
from workbench.probes import host

LEAST_S = 10.0
"""Seconds of measuring, below which the kernel's ticks say too little."""


class StolenCpu:
    """Adds up what was stolen during samples, and says so once in a run.

    A sample does not become invalid by it: where the whole host is too busy with it, validity says
    that of each; less of it makes the host smaller and less steady than its cores promise.

    Parameters
    ----------
    noted : a warning for the event log.
    read : CPU seconds that were stolen from all cores since the host started.
    """

    def __init__(
        self,
        noted: Callable[[str], Awaitable[None]],
        read: Callable[[], float] = host.read_stolen_s,
        now: Callable[[], float] = time.monotonic,
        cores: int | None = None,
    ) -> None:
        self._noted, self._read, self._now = noted, read, now
        self._cores = cores or os.cpu_count() or 1
        self._began = (0.0, 0.0)
        self._measured_s = self._stolen_s = 0.0
        self._told = False

    def begin(self) -> None:
        """A sample begins."""
        self._began = self._now(), self._read()

    async def taken(self) -> None:
        """It has ended."""
        at, stolen_s = self._began
        self._measured_s += self._now() - at
        self._stolen_s += self._read() - stolen_s
        share = self._stolen_s / max(self._measured_s, 1e-3) / self._cores
        if self._told or self._measured_s < LEAST_S or share < MOST_STOLEN:
            return
        self._told = True
        await self._noted(
            f"While samples were taken the hypervisor gave {share:.0%} of this host's cores to "
            "others: figures are of a smaller and less steady host than its cores say. Measure on "
            "a host of your own, or reserve its cores."
        )
