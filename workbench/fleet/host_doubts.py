"""Which hosts fail whatever they are given: they rest, and count against no shard meanwhile.

A host whose lab is broken fails at once and is free for the next shard while good hosts measure:
without this, three such hosts set all shards of a campaign aside.
"""

from __future__ import annotations

from collections.abc import Collection

IN_A_ROW = 2
"""Shards that a host fails without one measured in between, and then rests."""
REST_S = 60.0
"""For how long, before it is tried with another shard."""


class HostDoubts:
    """Of one campaign."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._rested: dict[str, float] = {}
        self._proven: set[str] = set()

    def measured(self, host: str) -> None:
        """It can: what failed there counts."""
        self._proven.add(host)
        self._rows.pop(host, None)

    def failed(self, host: str, now: float) -> None:
        """Hear of a shard that failed on a host; `now` in seconds, never set."""
        self._rows[host] = self.row(host) + 1
        self._rested[host] = now + REST_S

    def row(self, host: str) -> int:
        """How many failed there since it measured one."""
        return self._rows.get(host, 0)

    def of(self, hosts: Collection[str]) -> set[str]:
        """Those whose failures may be their own fault; none where all of these fail, since then
        nothing tells a bad host from a bad shard."""
        found = {host for host in hosts if self._is_doubtful(host)}
        return found if len(found) < len(hosts) else set()

    def resting(self, hosts: Collection[str], now: float) -> set[str]:
        """Those of these hosts that are to be given nothing now."""
        return {
            host
            for host in self.of(hosts)
            if self.row(host) >= IN_A_ROW and now < self._rested[host]
        }

    def _is_doubtful(self, host: str) -> bool:
        return self.row(host) >= (IN_A_ROW if host in self._proven else 1)
