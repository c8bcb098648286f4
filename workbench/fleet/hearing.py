"""When a host of a fleet counts as gone though nobody hung up: it was not heard of for too long."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

VANISHED_S = 20.0
"""After that silence a host counts as gone. A host that vanishes is to be noticed within 30 s: what
is left of them is for the look at the scheduler, which is taken five times a second and may take
long where this host is busy."""
LONGEST_GAP_S = 5.0
"""Of the time between two looks at most that much counts as silence: whoever did not look for
longer stood still itself, and heard nobody. It is as long as any pause between looks is."""


@dataclass
class Hearing:
    """Who was heard of, and when, by the clock of whoever listens.

    A scheduler notes by its own time of day when it heard last of a worker. That is compared with
    what it said before and never with a clock here: another host's may be off by an hour, and any
    may be set. Whoever looks for the first time takes a worker for heard of just now. Silence is
    counted over the time only in which whoever listens looked again and again.

    Attributes
    ----------
    clock : seconds, never set.
    """

    clock: Callable[[], float] = time.monotonic
    _known: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By address: what the scheduler said, and since when it says so, by `_listened`."""
    _listened_s: float = 0.0
    _looked: float | None = None

    def is_silent(self, address: str, last_seen: float) -> bool:
        """Whether a worker counts as gone, of which a scheduler says that it heard then."""
        said, since = self._known.get(address, (None, 0.0))
        if said != last_seen:
            self._known[address] = last_seen, self._listened()
            return False
        return self._listened() - since > VANISHED_S

    def _listened(self) -> float:
        """For how many seconds somebody has looked by now."""
        now = self.clock()
        if self._looked is not None:
            self._listened_s += min(now - self._looked, LONGEST_GAP_S)
        self._looked = now
        return self._listened_s

    def keep(self, addresses: Collection[str]) -> None:
        """Forget all others: an address may be given anew."""
        for address in self._known.keys() - set(addresses):
            del self._known[address]
