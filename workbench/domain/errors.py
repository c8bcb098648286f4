"""Errors are sentences: what was wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FINDING = 1
"""Exit code: SLA not met, or a configuration ended without a usable result."""
WRONG_USE = 2
"""Exit code: arguments or descriptors that cannot be used."""
LAB_FAILURE = 3
"""Exit code: the lab or its environment failed."""
INTERRUPTED = 130
"""Exit code: the user interrupted the command."""


class WorkbenchError(Exception):
    """Base of every error that a user may see.

    Parameters
    ----------
    what : str
        What is wrong, as a sentence without its full stop.
    where : str, optional
        File, line, field, container or session that it is about.
    remedy : str, optional
        What the user can do, as an imperative.
    """

    title = "Error"
    exit_code = FINDING

    def __init__(self, what: str, *, where: str | None = None, remedy: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}. {self.remedy}." if self.remedy else f"{text}."

    def __reduce__(self) -> tuple[object, ...]:
        # A worker process hands its errors over a pipe; keyword arguments must survive that.
        return (_rebuild, (type(self), self.what, self.where, self.remedy))


def _rebuild(
    kind: type[WorkbenchError], what: str, where: str | None, remedy: str | None
) -> WorkbenchError:
    error = kind.__new__(kind)
    WorkbenchError.__init__(error, what, where=where, remedy=remedy)
    return error


class UsageError(WorkbenchError):
    """A command was given something that it cannot use."""

    title = "Wrong use"
    exit_code = WRONG_USE


class NameTaken(UsageError):
    """Something of that name exists, and nobody said that it may go."""


@dataclass(frozen=True)
class Mistake:
    """One mistake in a descriptor; lines and columns count from 1."""

    file: str
    line: int
    column: int
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.field}: {self.message}"


class DescriptorError(WorkbenchError):
    """A descriptor with mistakes; all mistakes of the file at once."""

    title = "Descriptor"
    exit_code = WRONG_USE

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = tuple(mistakes)

    def __str__(self) -> str:
        return self.what

    def __reduce__(self) -> tuple[object, ...]:
        return (DescriptorError, (self.mistakes,))


class LabError(WorkbenchError):
    """The lab cannot do what was asked: no engine, a function that crashed."""

    title = "Lab"
    exit_code = LAB_FAILURE


class LabGone(LabError):
    """Nothing answers where the lab was; what was asked may work once it is back."""


class LabStopped(LabError):
    """What is measured must not be loaded any further: the run ends, and nothing is tried again."""


class TrafficError(LabError):
    """A generator failed, or cannot measure what was asked of it."""

    title = "Traffic"


class SessionError(WorkbenchError):
    """A session cannot be created, opened, read or written."""

    title = "Session"
    exit_code = LAB_FAILURE


class SessionTaken(SessionError):
    """A session of that name exists already."""

    exit_code = WRONG_USE


class SessionBusy(SessionError):
    """A session is open in another process."""


class SessionDisplaced(SessionError):
    """A session's file was replaced or removed while it was written; what it held is in memory."""


class SessionReplaced(SessionError):
    """Another file took the place of a session's; what lies there now goes by the same name."""


class SessionUnknown(SessionError):
    """No session, bundle or recording goes by that name."""

    exit_code = WRONG_USE


class EngineError(WorkbenchError):
    """The engine is gone, refuses a client or cannot do what it was told now."""

    title = "Engine"
    exit_code = LAB_FAILURE


class WorkspaceHeld(EngineError):
    """Another process owns the workspace."""


class NotAllowed(EngineError):
    """Who asks may not do that: by role, by the door that they came through, or not now."""

    exit_code = WRONG_USE


class Stopped(EngineError):
    """Somebody asked for the end of what was measured; what was stored is stored."""

    exit_code = INTERRUPTED


class BudgetSpent(WorkbenchError):
    """No more samples may be taken: the time that they may take is spent."""

    title = "Budget"


class PluginError(WorkbenchError):
    """A plugin is missing, cannot be loaded or broke its contract."""

    title = "Plugin"
    exit_code = LAB_FAILURE


class PluginUnknown(PluginError):
    """No part of that kind goes by that name."""

    exit_code = WRONG_USE


class DataError(WorkbenchError, ValueError):
    """Samples that no model can be fitted to; the sentence says what is missing.

    It is no finding: nothing was found out about a function or a chain. A `ValueError` too:
    scikit-learn wants that of an estimator.
    """

    title = "Data"
    exit_code = WRONG_USE


class SlaError(WorkbenchError):
    """An SLA that cannot be judged: by what it asks, or by what was profiled."""

    title = "SLA"
    exit_code = WRONG_USE


class SlaIncomplete(SlaError):
    """It does not say the load, or a workload value that was profiled at several."""


class SlaContradiction(SlaError):
    """No function could hold all limits, or they are asked at different loads."""


class KpiUnknown(SlaError):
    """It limits a KPI that was not profiled, or where that KPI cannot be told apart."""


class ConfidenceRefused(SlaError):
    """A confidence that nothing measured can give, or that a coin gives."""


PROFILE_FARTHER = (
    "Ask for a load within, or profile that far: over a wider range, and not with the sampler "
    "breakpoints, which measures around them alone (workbench run with the campaign so changed)"
)
"""What to do where a load lies outside of what was profiled."""


class OutsideProfile(SlaError):
    """It asks for a load or a workload that lies outside everything profiled."""


class NothingAllowed(SlaError):
    """No allocation is allowed at all."""


BY_NAME: dict[str, type[WorkbenchError]] = {
    kind.__name__: kind
    for kind in (
        WorkbenchError,
        UsageError,
        NameTaken,
        LabError,
        LabGone,
        LabStopped,
        TrafficError,
        SessionError,
        SessionTaken,
        SessionBusy,
        SessionDisplaced,
        SessionReplaced,
        SessionUnknown,
        EngineError,
        WorkspaceHeld,
        NotAllowed,
        Stopped,
        BudgetSpent,
        PluginError,
        PluginUnknown,
        DataError,
        SlaError,
        SlaIncomplete,
        SlaContradiction,
        KpiUnknown,
        ConfidenceRefused,
        OutsideProfile,
        NothingAllowed,
    )
}
"""How an error that crossed the link finds its class again (`messages.Failed`)."""
