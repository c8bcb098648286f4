"""How much a long run tried, and what came of it; kept as JSON that docs/reliability.md quotes."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

TRIES = 3
"""For each that is wanted: some come to nothing."""


@dataclass
class Tally:
    """Counts by part: `kills` of `engine`, `inputs` of `link`.

    Attributes
    ----------
    targets : how many of each part are wanted in the end.
    before : how many earlier runs have reached that were kept in the same file. A run goes on from
        there, with other seeds.
    minutes : after which no further one is begun, each part having its share; None: no end.
    """

    kind: str
    targets: Mapping[str, int]
    minutes: float | None = None
    results: Path | None = None
    before: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    figures: dict[str, Any] = field(default_factory=dict)
    """What else is worth telling: of this run alone."""
    seconds: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        if self.results is not None and self.results.exists():
            kept = json.loads(self.results.read_text(encoding="utf-8")).get(self.kind, {})
            for part, counts in kept.get("parts", {}).items():
                self.before[part] = counts["reached"]
                self.seconds[part] = counts["seconds"]
            self.figures.update(kept.get("figures", {}))

    def numbers(self, part: str) -> Iterator[int]:
        """Numbers of what is to be tried, each a seed; one counts as reached once it is done."""
        begin = time.monotonic()
        most_s = float("inf") if self.minutes is None else 60 * self.minutes / len(self.targets)
        first, target = self.before[part], self.targets[part]
        for number in range(first, first + TRIES * (target - first)):
            if time.monotonic() - begin > most_s or first + self.reached[part] >= target:
                break
            yield number
            self.reached[part] += 1
        self.seconds[part] += round(time.monotonic() - begin)

    def in_vain(self, part: str) -> None:
        """The one at hand does not count: there was nothing to kill any more."""
        self.reached[part] -= 1

    def keep(self) -> None:
        """Tell what was reached, and add it to the file. Called when nothing was found."""
        parts = {
            part: {
                "target": self.targets[part],
                "reached": self.before[part] + self.reached[part],
                "seconds": self.seconds[part],
            }
            for part in self.targets
        }
        told = ", ".join(f"{self.reached[part]} {part}" for part in self.targets)
        sys.stdout.write(f"{self.kind}: {told}; {self.figures or ''}\n")
        if self.results is None:
            return
        known: dict[str, Any] = {}
        if self.results.exists():
            known = json.loads(self.results.read_text(encoding="utf-8"))
        known.setdefault(self.kind, {"parts": {}})
        known[self.kind]["parts"].update(parts)
        if self.figures:
            known[self.kind]["figures"] = self.figures
        text = json.dumps(known, indent=2, sort_keys=True)
        self.results.write_text(text + "\n", encoding="utf-8")


class MakeTally(Protocol):
    def __call__(self, kind: str, targets: Mapping[str, int], few: int = 2) -> Tally:
        """Of a kind, with the full targets of its parts; `few` of each are tried in the gate."""
        ...
