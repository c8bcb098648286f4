"""A host that others use: a run whose samples it spoils waits until it is quiet again."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from workbench.domain.durations import duration
from workbench.domain.samples import Sample
from workbench.engine.runs.control import Control
from workbench.probes import burners, host
from workbench.probes.burners import Burned, Burner

SPOILED = "host_saturated"
STREAK = 3
"""Samples in a row that the host spoiled, after which the run looks who else is busy there."""
LOOK_S = 2.0
"""How long each look at the host is."""
QUIET_SHARE = 0.25
"""Of the host's cores: up to here others leave room for a measurement, which has to stay under 85 %
with all that it needs itself."""
QUIET_LOOKS = 2
"""Looks in a row that find it quiet, before the run goes on."""
MOST_WAIT_S = 600.0
"""A run without a budget waits so long, all in all; then it ends."""


@dataclass(frozen=True)
class Instant:
    at: float
    busy_s: float
    """CPU seconds of all but the engine and its workers."""
    burned: Burned


@dataclass(frozen=True)
class HostActivity:
    """What the host did for a while in which nothing was measured."""

    share: float
    """Of its cores that were busy."""
    busiest: tuple[Burner, ...]

    @property
    def quiet(self) -> bool:
        return self.share <= QUIET_SHARE

    def __str__(self) -> str:
        who = ", ".join(map(str, self.busiest)) or "processes that come and go"
        return f"{self.share:.0%} of this host is busy with others: {who}"


async def read_host() -> Instant:
    burned, own_s = await asyncio.to_thread(burners.read)
    return Instant(time.monotonic(), host.read_busy_s() - own_s, burned)


class BusyHost:
    """Counts samples that the host spoiled, and waits out who spoils them.

    Parameters
    ----------
    shown : told about every look what the run waits for.
    noted : a warning for the event log.
    """

    def __init__(
        self,
        control: Control,
        shown: Callable[[str], None],
        noted: Callable[[str], Awaitable[None]],
        read: Callable[[], Awaitable[Instant]] = read_host,
        cores: int | None = None,
    ) -> None:
        self.waited_s = 0.0
        """All in all."""
        self.seen = ""
        """What the last look found, where the run waited or waits."""
        self._control = control
        self._shown, self._noted, self._read = shown, noted, read
        self._cores = cores or os.cpu_count() or 1
        self._streak, self._longest = 0, STREAK

    def taken(self, sample: Sample) -> None:
        spoiled = any(finding.reason == SPOILED for finding in sample.findings)
        self._streak = self._streak + 1 if spoiled else 0

    async def until_quiet(self, left_s: Callable[[], float | None]) -> bool:
        """Return at once, or when the host is quiet after it spoiled samples; False: it is not.

        Parameters
        ----------
        left_s : says how many seconds are left of the run's budget, which may be extended
            meanwhile; None: it has none.
        """
        if self._streak < self._longest:
            return True
        spoiled, self._streak = self._streak, 0
        look = await self._look()
        if look.quiet:
            # It is the load itself that the host cannot carry: others have nothing to do with it.
            self._longest *= 2
            return True
        begin = time.monotonic()
        before_s = self.waited_s
        await self._noted(
            f"{spoiled} samples in a row were spoiled by a busy host; the run waits until it is "
            f"quiet. {look}"
        )
        quiet = 0
        try:
            while quiet < QUIET_LOOKS and not self._held():
                self.seen = str(look) if not look.quiet else self.seen
                waited_s = time.monotonic() - begin
                left = left_s()
                if (MOST_WAIT_S - before_s - waited_s if left is None else left) <= 0.0:
                    return False
                self._shown(f"has waited {duration(waited_s)}; {look}")
                look = await self._look()
                quiet = quiet + 1 if look.quiet else 0
        finally:
            self.waited_s += time.monotonic() - begin
        if quiet == QUIET_LOOKS:
            waited = duration(time.monotonic() - begin)
            await self._noted(f"the host is quiet again: the run goes on after {waited}")
        return True

    def _held(self) -> bool:
        """Whether somebody wants the run to end or to pause."""
        return self._control.ending or self._control.on_hold()

    async def _look(self) -> HostActivity:
        before = await self._read()
        await self._control.rung(LOOK_S)
        after = await self._read()
        seconds = max(after.at - before.at, 1e-3)
        share = (after.busy_s - before.busy_s) / seconds / self._cores
        return HostActivity(share, burners.busiest(before.burned, after.burned, seconds))
