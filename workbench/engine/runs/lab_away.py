"""A lab that is gone, such as a Docker engine that restarts: a run waits until it answers again."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from workbench.domain.durations import duration
from workbench.domain.errors import LabGone
from workbench.engine.runs.control import Control

RETRY_S, LONGEST_RETRY_S = 1.0, 30.0
"""Between two tries at first, and in the end: an engine restarts in seconds or is mended in
minutes."""
MOST_AWAY_S = 600.0
"""How long it is waited for without a sample between; then the run ends, and can be resumed."""
MOST_RETURNS = 5
"""Returns in a row without a sample between, after which it is blamed as for any other error: what
it is asked for may be what ends it."""


class LabAway:
    """Waits for a lab whose absence is nobody's fault: no configuration is given up for it.

    Parameters
    ----------
    shown : told at every try what the run waits for.
    noted : a warning for the event log.
    """

    def __init__(
        self,
        control: Control,
        shown: Callable[[str], None],
        noted: Callable[[str], Awaitable[None]],
    ) -> None:
        self._control, self._shown, self._noted = control, shown, noted
        self._away_s, self._retry_s, self._returns = 0.0, RETRY_S, 0

    def answered(self) -> None:
        """A sample was taken."""
        self._away_s, self._retry_s, self._returns = 0.0, RETRY_S, 0

    @property
    def excused(self) -> bool:
        """Whether it is waited for once more."""
        return self._returns < MOST_RETURNS

    async def wait(
        self,
        error: LabGone,
        speak: Callable[[], Awaitable[None]],
        left_s: Callable[[], float | None],
    ) -> None:
        """Return when the lab answers, when somebody wants the run to end, or when its budget is
        spent.

        Parameters
        ----------
        speak : asks the lab for something. Where that needs no answer the run itself finds out, and
            comes back: it is waited longer each time.
        left_s : seconds that are left of the run's budget; None: it has none.

        Raises
        ------
        LabGone
            It was away for longer than `MOST_AWAY_S`.
        """
        begin, away_s = time.monotonic(), self._away_s
        if away_s == 0.0:
            await self._noted(
                f"{_said(error)}; the run waits until it answers, and nothing is lost"
            )
        while not self._control.ending and not _spent(left_s()):
            if self._away_s >= MOST_AWAY_S:
                raise error
            self._shown(f"has waited {duration(self._away_s)}: {_said(error)}")
            await self._control.rung(self._retry_s)
            self._retry_s = min(2 * self._retry_s, LONGEST_RETRY_S)
            self._away_s = away_s + time.monotonic() - begin
            try:
                await speak()
                break
            except LabGone as still:
                error = still
        else:
            return
        self._returns += 1
        await self._noted(f"the lab answers again after {duration(self._away_s)}: the run goes on")


def _said(error: LabGone) -> str:
    """Without what to do: the run does it."""
    return f"{error.where}: {error.what}" if error.where else error.what


def _spent(left_s: float | None) -> bool:
    return left_s is not None and left_s <= 0.0
