"""No host is there for a run: how long the run waits for one, and what is told meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from workbench.domain.durations import duration
from workbench.fleet import patience
from workbench.fleet.dispatched import Tell
from workbench.fleet.fleet_standing import FleetError

AGAIN = "See `workbench fleet status`; what was measured is kept, and the same command goes on"


@dataclass
class HostAbsence:
    """Since when no host is there, of a run from its first shard to its last, also where its fleet
    is started again meanwhile.

    A run that never had a host has a mistake somewhere, and ends; one that had waits, since a
    switch or all hosts may be starting again, and its person sleeps.

    Attributes
    ----------
    tell : is given what a person should know.
    clock : seconds, never set.
    had_one : whether a host has been there for this run, and said what it has finished.
    """

    tell: Tell
    clock: Callable[[], float] = time.monotonic
    had_one: bool = False
    _since: float | None = None
    _due_s: float = 0.0
    """After how long an absence is told, or told again."""

    def end(self) -> None:
        """A host is there."""
        if self._since is not None and self._due_s > patience.ABSENT_S:
            self.tell("a host is there again: the run goes on")
        self.forget()

    def forget(self) -> None:
        """Count from now on, and say nothing: a job is in the queue, which has its own word."""
        self._since = None

    def is_due(self) -> bool:
        """Whether nobody is there for so long that something is to be told; for a look that finds
        no host."""
        if self._since is None:
            self._since, self._due_s = self.clock(), patience.ABSENT_S
        return self.clock() - self._since > self._due_s

    def say(self, *, silent: bool, all_there: bool = False) -> None:
        """Tell that the run waits for a host. Raises `FleetError` where it waits no longer.

        Parameters
        ----------
        silent : whether hosts are there that do not say what they have finished.
        all_there : whether all of them are there, so that none can come back.
        """
        absent_s = 0.0 if self._since is None else self.clock() - self._since
        also = ", or said what it has finished," if silent else ""
        if not self.had_one:
            raise FleetError(f"no host was there{also} for {patience.ABSENT_S:g} s", remedy=AGAIN)
        if all_there or absent_s >= patience.LONGEST_ABSENT_S:
            raise FleetError(f"no host was there{also} for {duration(absent_s)}", remedy=AGAIN)
        self.tell(
            f"no host has been there{also} for {duration(absent_s)}: the run goes on when one is "
            "back; Ctrl-C, or `s` on its screens, ends it"
        )
        self._due_s = min(absent_s + patience.ABSENT_AGAIN_S, patience.LONGEST_ABSENT_S)
