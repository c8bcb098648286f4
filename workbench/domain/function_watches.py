"""Running functions that `workbench watch` tells of, for those who look at screens.

The command that watches is a process of its own, which reports to the engine of its workspace; the
engine remembers the last minutes of each and writes nothing down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from workbench.domain.requests import Done, Query

LookState = Literal[
    "predicted to break",
    "others' load",
    "drifted",
    "unknown",
    "may break",
    "predicted to hold",
    "predicted",
]
"""What a look comes to, the worst first: the words of screen, text and JSON alike."""
MARKS: Mapping[LookState, str] = {
    "predicted to break": "!",
    "others' load": "!",
    "drifted": "!",
    "unknown": "?",
    "may break": "≈",
    "predicted to hold": "✓",
    "predicted": "✓",
}
"""What stands before these words, so that they are told apart without colour."""


def badge(state: LookState) -> str:
    """`! predicted to break`."""
    return f"{MARKS[state]} {state}"


@dataclass(frozen=True)
class HeldOutRates:
    """How often single looks would have been wrong at experiments that were held out.

    Attributes
    ----------
    windows, silent : held out, and those of which nothing would have been said.
    strayed : windows at which a function that stayed there would be told to drift.
    broken, missed : windows with a figure that broke the SLA, and those not predicted to; None
        where no SLA is held against it, as the next.
    held, false : windows with a figure that held it, and those predicted to break it.
    alone, alone_contended : windows in which nobody competed, and those taken for contended; None
        where that is not known, as the next.
    beside, beside_missed : windows beside a competitor, and those taken for quiet.
    """

    windows: int
    silent: int
    strayed: int
    broken: int | None = None
    missed: int | None = None
    held: int | None = None
    false: int | None = None
    alone: int | None = None
    alone_contended: int | None = None
    beside: int | None = None
    beside_missed: int | None = None


@dataclass(frozen=True)
class WatchedFunction:
    """Who watches what; two reports of equal ones are of one watch.

    Attributes
    ----------
    session : whose samples the model was learned from.
    kpi : name of the KPI that is told.
    place : where the function was found, in words.
    sla : the SLA that is held against it, as it was written; empty where none is.
    limit : of that SLA, in the KPI's unit.
    pid : of the process that watches.
    accuracy : how sure the model is, as sentences; `rates` : the same in numbers, None before it
        has learned.
    """

    session: str
    function: str
    kpi: str
    place: str
    pid: int
    sla: str = ""
    limit: float | None = None
    accuracy: tuple[str, ...] = ()
    rates: HeldOutRates | None = None


@dataclass(frozen=True)
class FunctionLook:
    """What the counters of one moment say.

    Attributes
    ----------
    at : seconds since the epoch.
    value, low, high : of the KPI in its unit, with its 95 % interval; None where `why` says why.
    alarm : of the SLA; None where none is held against it.
    contention : of others' load; None where the session cannot tell that.
    sign : what tells of others' load, in words.
    times : by how many times that sign is more than the function's own traffic explains.
    drifted : the counters have been far from what was learned for a while, now or before.
    breach : probability that the KPI breaks the SLA; None where none is held, or nothing is said.
    """

    at: float
    value: float | None = None
    low: float | None = None
    high: float | None = None
    why: str = ""
    alarm: bool | None = None
    contention: bool | None = None
    sign: str = ""
    drifted: bool = False
    times: float | None = None
    breach: float | None = None

    @property
    def unsure(self) -> bool:
        """The figure breaks the SLA, and is not sure enough to be an alarm, or not for long."""
        return self.breach is not None and self.breach > 0.5 and not self.alarm

    @property
    def state(self) -> LookState:
        """The worst that it says; `predicted` alone where no SLA is held against it."""
        if self.alarm:
            return "predicted to break"
        if self.contention:
            return "others' load"
        if self.drifted:
            return "drifted"
        if self.value is None:
            return "unknown"
        if self.unsure:
            return "may break"
        return "predicted" if self.alarm is None else "predicted to hold"


@dataclass(frozen=True)
class WatchNote:
    """A change that was told: an alarm, its end, a restart, drift."""

    at: float
    text: str


@dataclass(frozen=True)
class FunctionWatch:
    """A watch as the engine remembers it.

    Attributes
    ----------
    looks : of the last minutes, the oldest first.
    notes : the last ones, the oldest first.
    heard_at : of the last report.
    ended : it said that it ends.
    """

    watched: WatchedFunction
    looks: tuple[FunctionLook, ...]
    notes: tuple[WatchNote, ...]
    heard_at: float
    ended: bool = False


@dataclass(frozen=True)
class FunctionWatches:
    """Those of a session, in the order in which they began; `now` is the engine's clock."""

    now: float
    watches: tuple[FunctionWatch, ...]


@dataclass(frozen=True)
class ReportLook(Query[Done]):
    """What a watch has seen. Reply: `Done`.

    Nothing that is kept changes by it, so that it is no command: the audit log would have a line a
    second.
    """

    watched: WatchedFunction
    look: FunctionLook | None = None
    notes: tuple[WatchNote, ...] = ()
    ended: bool = False


@dataclass(frozen=True)
class ListWatches(Query[FunctionWatches]):
    """Who watches functions by what this session has measured. Reply: `FunctionWatches`."""

    session: str
    since: float = 0.0
    """Looks after that moment alone: those before are known."""
