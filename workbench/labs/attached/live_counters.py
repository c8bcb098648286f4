"""What a running function counts, second by second: read only, nothing passes through its data."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean

from workbench.domain.observations import is_level
from workbench.labs.attached.finding import FoundFunction
from workbench.measuring.window_counters import CPU, HOST, THROTTLED, counter_name
from workbench.probes.evidence import ComponentEvidence, HostEvidence, Seen

RENEWED_S = 300.0
"""How long the sums of threads are kept: they know each thread that ever ran."""
RETRIED_S = 10.0
"""How long they are kept where something cannot be read that was read at first."""
SLACK_S, LONGEST_S = 0.25, 1.5
"""What a look may be short of its window, and longer: who was stopped for long begins anew."""


@dataclass
class LiveCounters:
    """Counters of one found function over the last `over_s` seconds."""

    found: FoundFunction
    over_s: float
    missing: dict[str, str] = field(default_factory=dict)
    """What cannot be read, by counter, and why."""

    def __post_init__(self) -> None:
        self._read = _Readings(self.found)
        self._following: _Readings | None = None
        self._never: frozenset[str] | None = None
        self.spanned_s: float | None = None
        """Seconds between the first and the last reading of the last look; None: it was empty."""

    def read(self) -> Mapping[str, float]:
        """Counters per second, levels as means of the readings in the window, as windows of samples
        have them; empty until two readings span one.

        Raises `OSError` where the function has ended.
        """
        rates = self._read.look(self.over_s, self.missing)
        if self._never is None:
            self._never = self._read.absent
        lost = not self._never.issuperset(self._read.absent)
        if self._following is None and self._read.age_s > (RETRIED_S if lost else RENEWED_S):
            self._following = _Readings(self.found)
        # Until the new sums span a window, the old ones answer.
        if self._following is not None:
            renewed = self._following.look(self.over_s, self.missing)
            if renewed:
                self._read, self._following, rates = self._following, None, renewed
        self.spanned_s = self._read.spanned_s if rates else None
        return rates


async def busiest_beside(found: FoundFunction, over_s: float = 1.0) -> tuple[str, ...]:
    """Who else burns most of this host's CPU over that time, by group or process, with cores."""
    host, inside = HostEvidence(), (found.probe,)
    await asyncio.to_thread(host.look_round, inside)
    await asyncio.sleep(over_s)
    seen = await asyncio.to_thread(host.look_round, inside)
    return tuple(
        f"{burner} {cores:.2f} cores"
        for (name, burner), cores in seen.items()
        if name == "burner_cores"
    )


class _Readings:
    """Cumulative figures of one function and its host, over the last window."""

    def __init__(self, found: FoundFunction) -> None:
        self._found = found
        self._began_s = time.monotonic()
        self._evidence = ComponentEvidence(found.probe)
        self._host = HostEvidence()
        self._read: deque[tuple[float, Seen]] = deque()

    @property
    def absent(self) -> frozenset[str]:
        """What could not be read at some time, which these sums do not have any more."""
        return frozenset((*self._evidence.absent, *self._host.absent))

    @property
    def spanned_s(self) -> float:
        """Between the readings that are kept."""
        return self._read[-1][0] - self._read[0][0]

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._began_s

    def look(self, over_s: float, missing: dict[str, str]) -> dict[str, float]:
        """Read all now; rates over the window, empty until there is one. Tells what is missing."""
        now_s = time.monotonic()
        seen = self._now(missing)
        self._read.append((now_s, seen))
        # The youngest reading that is a window old: a longer look would mix in what was before.
        while len(self._read) > 2 and now_s - self._read[1][0] >= over_s - SLACK_S:
            self._read.popleft()
        before_s, before = self._read[0]
        if not over_s - SLACK_S <= now_s - before_s <= over_s + LONGEST_S:
            if now_s - before_s > over_s:
                self._read.popleft()
            return {}
        rates = _rates(before, seen, now_s - before_s, missing)
        return rates | _levels([one for _, one in self._read])

    def _now(self, missing: dict[str, str]) -> Seen:
        """All cumulative figures by counter and, to know levels, the observable's own name."""
        seen: Seen = {}
        for of_host, read in ((False, self._evidence.read()), (True, self._host.read())):
            for (name, detail), value in read.items():
                called = counter_name(of_host, name, detail if name == "softirqs" else "")
                if called:
                    seen[called, name] = value
        counted = self._found.probe.read()
        seen[CPU, ""] = counted.cpu_s
        seen[THROTTLED, "periods"] = float(counted.periods)
        seen[THROTTLED, "throttled"] = float(counted.throttled_periods)
        missing.clear()
        missing |= self._evidence.absent
        missing |= {f"{HOST} {name}": why for name, why in self._host.absent.items()}
        return seen


def _rates(before: Seen, seen: Seen, seconds: float, missing: dict[str, str]) -> dict[str, float]:
    rates: dict[str, float] = {}
    for (called, name), value in seen.items():
        if called == THROTTLED:
            continue
        if name and is_level(name):
            continue
        grown = value - before.get((called, name), float("nan"))
        if math.isnan(grown):
            missing[called] = "it was read once so far"
        elif grown < 0.0:
            missing[called] = "it went back"
        else:
            rates[called] = grown / seconds
    periods = seen[THROTTLED, "periods"] - before.get((THROTTLED, "periods"), 0.0)
    throttled = seen[THROTTLED, "throttled"] - before.get((THROTTLED, "throttled"), 0.0)
    rates[THROTTLED] = throttled / periods if periods > 0.0 else 0.0
    return rates


def _levels(readings: list[Seen]) -> dict[str, float]:
    """Means of what the last reading has, over those that have it."""
    return {
        called: fmean(one[called, name] for one in readings if (called, name) in one)
        for called, name in readings[-1]
        if called != THROTTLED and name and is_level(name)
    }
