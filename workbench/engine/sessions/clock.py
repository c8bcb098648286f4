"""The engine's time of day: set once, when the process starts, and steady from then on.

A clock that is set while a campaign runs (by hand, by NTP after a bad start, by a virtual machine
that was paused) must not turn a sample's second into an hour, nor put an event before the one that
it followed.
"""

from __future__ import annotations

import time

_ahead_s = 0.0
_STARTED_AT = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def now() -> float:
    """Seconds since the epoch; differences are true durations, also over a suspended host."""
    return _STARTED_AT + _ahead_s + time.clock_gettime(time.CLOCK_BOOTTIME)


def run_ahead(seconds: float) -> None:
    """Be wrong by so much from now on: a simulated host stands in for one whose clock is off."""
    global _ahead_s
    _ahead_s = seconds
