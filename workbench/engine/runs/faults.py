"""Lab errors, counted: one more try, then the configuration is given up, then the lab."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.domain.errors import LabError
from workbench.engine.runs.control import Place

STRIKES = 2
"""Lab errors, without a sample of it between them, after which a configuration is given up."""
GIVE_UP_AFTER = 3
"""Lab errors in a row, without one sample between them, after which the lab itself is blamed."""

Verdict = Literal["once more", "configuration", "lab"]


@dataclass(frozen=True)
class GivenUp:
    """A configuration whose last word was a lab error, as a sentence."""

    place: Place
    note: str


class Faults:
    """Whether a lab error is an accident, a configuration's fault or the lab's.

    A configuration is given up for good only when a later sample proves that the lab works.
    """

    def __init__(self) -> None:
        self.given_up: dict[Place, GivenUp] = {}
        self._strikes: dict[Place, int] = {}
        self._in_a_row = 0

    def blame(self, place: Place, error: LabError) -> Verdict:
        """Count an error, and say whose fault it is."""
        self._in_a_row += 1
        self._strikes[place] = self._strikes.get(place, 0) + 1
        if self._in_a_row >= GIVE_UP_AFTER:
            self.given_up.clear()
            return "lab"
        if self._strikes[place] < STRIKES:
            return "once more"
        self.given_up[place] = GivenUp(place, str(error))
        return "configuration"

    def sample_taken(self, place: Place) -> tuple[GivenUp, ...]:
        """The lab works, and so does `place`: the configurations whose fault it was after all."""
        self._in_a_row = 0
        self._strikes.pop(place, None)  # accidents that lie apart do not add up
        proven = tuple(self.given_up.values())
        self.given_up.clear()
        return proven
