"""What a run may take, and what it has taken of that: one meaning of `--budget` everywhere."""

from __future__ import annotations

import time
from collections.abc import Callable

from workbench.domain.projection import SessionView


class Budget:
    """Seconds of the clock without pauses where a run measures on this host, else the lab's own.

    A simulated lab has a time of its own: an hour of it may pass in a second.

    Parameters
    ----------
    total_s : after which no new sample is begun; None: there is no end.
    spent_s : of it, before this run (`spent_before_s`).
    lab_s : says the lab time of this run so far.
    by_clock : it measures on this host.
    extended : says to how much somebody extended it meanwhile; None: nobody may.
    """

    def __init__(
        self,
        total_s: float | None,
        spent_s: float,
        lab_s: Callable[[], float],
        *,
        by_clock: bool,
        extended: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._total_s, self._before_s, self._lab_s = total_s, spent_s, lab_s
        self._by_clock, self._extended = by_clock, extended
        self._began, self._paused_s = time.monotonic(), 0.0

    def begin(self) -> None:
        """The turn has come: its time counts from now."""
        self._began = time.monotonic()

    def paused(self, seconds: float) -> None:
        """It stood still for so long, which does not count."""
        self._paused_s += seconds

    @property
    def total_s(self) -> float | None:
        """What it began with, or more if somebody extended it."""
        extended = self._extended()
        if self._total_s is None or extended is None:
            return self._total_s
        return max(self._total_s, extended)

    @property
    def here_s(self) -> float:
        """Spent in this run."""
        lab_s = self._lab_s()
        if not self._by_clock:
            return lab_s
        return max(lab_s, time.monotonic() - self._began - self._paused_s)

    @property
    def spent_s(self) -> float:
        return self._before_s + self.here_s

    @property
    def left_s(self) -> float | None:
        """None: there is no end."""
        return None if self.total_s is None else self.total_s - self.spent_s


def spent_before_s(view: SessionView, *, by_clock: bool) -> float:
    """What the runs of a session's campaign took, without its trials."""
    lab_s = view.lab_s - view.trials_s
    return max(lab_s, view.ran_s) if by_clock else lab_s


def budget_after_s(view: SessionView, spent_s: float, more_s: float | None) -> float | None:
    """Where a resumed run ends: `more_s` from now; else with what was left of its own.

    Who resumes a session whose budget is spent, and names no other, wants it finished; where it was
    waited away (`RunFinished.waited_s`), that is still to be spent.
    """
    if more_s is not None:
        return spent_s + more_s
    ended = view.finished
    is_spent = ended is not None and ended.outcome == "budget" and not ended.waited_s
    return None if is_spent else view.budget_s
