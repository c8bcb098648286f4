"""What is known of a long session's past, which never changes: found out once, for all who ask.

The session is cut into stretches of so many events. For the end of each it is noted what had been
counted until there, so that whoever asks about an event in between goes through one stretch at
most, however many there are before it.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from workbench.domain.parameters import Configuration
from workbench.store import reading
from workbench.store.database import Cursor

STRETCH = 1 << 16
"""Events; a stretch is gone through in some milliseconds, and a million samples have forty."""

Place = tuple[str, int]
"""Target, and the number that the file has for the configuration."""


@dataclass
class Sums:
    """The campaign's samples from the first on, until somewhere."""

    taken: Counter[Place] = field(default_factory=Counter)
    invalid: Counter[tuple[Place, str]] = field(default_factory=Counter)
    """Those that are not valid as measured, by the reason."""
    lab_s: float = 0.0
    fitted: dict[Place, int] = field(default_factory=dict)
    """Event of the last fit."""

    def and_then(self, more: Sums) -> Sums:
        """These with those of the events behind them."""
        return Sums(
            self.taken + more.taken,
            self.invalid + more.invalid,
            self.lab_s + more.lab_s,
            self.fitted | more.fitted,
        )


class EarlierEvents:
    """The past of one session file; threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends = [Sums()]
        """At the end of each stretch that is known, the start of the session first."""
        self._rare: list[int] = []
        """Events of these stretches that do not happen with every sample of the campaign."""
        self._configurations: dict[int, Configuration] = {}

    def sums(self, cursor: Cursor, until: int) -> Sums:
        """As of event `until`, which is stored."""
        ends = self._known(cursor, until)
        stretch = max(0, until) // STRETCH
        more = _summed(cursor, stretch * STRETCH, until)
        return ends[stretch].and_then(more.get(stretch, Sums()))

    def lab_s(self, cursor: Cursor, until: int) -> float:
        """What the campaign's samples cost until an event."""
        ends = self._known(cursor, until)
        stretch = max(0, until) // STRETCH
        (rest,) = reading.one(
            cursor,
            "SELECT coalesce(sum(lab_s), 0) FROM samples"
            " WHERE seq > ? AND seq <= ? AND purpose = 'profile'",
            [stretch * STRETCH, until],
        )
        return ends[stretch].lab_s + float(rest)

    def rare(self, cursor: Cursor, until: int) -> list[int]:
        """Events until one that do not happen with every sample of the campaign, in order."""
        self._known(cursor, until)
        begin = max(0, until) // STRETCH * STRETCH
        known = self._rare[: bisect_right(self._rare, begin)]
        return known + _rare(cursor, begin, until)

    def begin_of_last(self, cursor: Cursor, place: Place, until: int, count: int) -> int:
        """An event not before `until` behind which the place has `count` samples, if so many."""
        ends = self._known(cursor, until)
        stretch = max(0, until) // STRETCH
        enough = (i for i in range(stretch, 0, -1)
                  if ends[stretch].taken[place] - ends[i].taken[place] >= count)  # fmt: skip
        return next(enough, 0) * STRETCH

    def configurations(
        self, cursor: Cursor, places: Iterable[Place]
    ) -> Callable[[int], Configuration]:
        """From the numbers of these places to their configurations."""
        known = self._configurations
        if any(number not in known for _, number in places):
            rows = cursor.execute("SELECT configuration, resources, workload FROM configurations")
            known = self._configurations = {
                int(number): Configuration(reading.values(resources), reading.values(workload))
                for number, resources, workload in rows.fetchall()
            }
        return known.__getitem__

    def learn(self, cursor: Cursor, until: int) -> None:
        """Find out what is not known yet of the time until event `until`."""
        self._known(cursor, until)

    def _known(self, cursor: Cursor, until: int) -> list[Sums]:
        """Sums at the ends of stretches, at least of all that are over by event `until`."""
        over = max(0, until) // STRETCH
        with self._lock:
            known = len(self._ends) - 1
            if known < over:
                begin, end = known * STRETCH, over * STRETCH
                summed = _summed(cursor, begin, end)
                self._rare += _rare(cursor, begin, end)
                for stretch in range(known, over):
                    more = summed.get(stretch, Sums())
                    self._ends.append(self._ends[-1].and_then(more))
        return self._ends


def _summed(cursor: Cursor, after: int, until: int) -> dict[int, Sums]:
    """Those of the events after one, until another, by the number of their stretch."""
    here = {"after": after, "until": until, "stretch": STRETCH}
    found: dict[int, Sums] = defaultdict(Sums)
    for number, target, configuration, count, lab_s in cursor.execute(
        "SELECT (seq - 1) // $stretch AS number, target, configuration, count(*), sum(lab_s)"
        " FROM samples WHERE seq > $after AND seq <= $until AND purpose = 'profile' GROUP BY ALL",
        here,
    ).fetchall():
        found[number].taken[target, configuration] += count
        found[number].lab_s += lab_s
    for number, target, configuration, reason, count in cursor.execute(
        "SELECT (seq - 1) // $stretch AS number, target, configuration, coalesce(reason, ''),"
        " count(*) FROM (SELECT seq, target, configuration FROM samples"
        "  WHERE NOT valid AND seq > $after AND seq <= $until AND purpose = 'profile')"
        " LEFT JOIN (SELECT seq, reason FROM findings"
        "  WHERE position = 0 AND seq > $after AND seq <= $until) USING (seq) GROUP BY ALL",
        here,
    ).fetchall():
        found[number].invalid[(target, configuration), reason] += count
    for number, target, configuration, seq in cursor.execute(
        "SELECT (seq - 1) // $stretch AS number, target, configuration, max(seq) FROM"
        " (SELECT seq, target, configuration FROM models WHERE seq > $after AND seq <= $until"
        "  UNION ALL"
        "  SELECT seq, target, configuration FROM breakpoints WHERE seq > $after AND seq <= $until)"
        " GROUP BY ALL",
        here,
    ).fetchall():
        found[number].fitted[target, configuration] = int(seq)
    return found


def _rare(cursor: Cursor, after: int, until: int) -> list[int]:
    """Events that do not happen with every sample of the campaign."""
    # Looked for without their payloads: DuckDB would read those of all events.
    rows = cursor.execute(
        "SELECT seq FROM events WHERE seq > $after AND seq <= $until"
        " AND type NOT IN ('PointAsked', 'SampleTaken', 'ModelFitted', 'LogWritten') UNION ALL"
        " SELECT seq FROM samples WHERE purpose <> 'profile' AND seq > $after AND seq <= $until"
        " ORDER BY seq",
        {"after": after, "until": until},
    ).fetchall()
    return [int(seq) for (seq,) in rows]
