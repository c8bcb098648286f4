"""Recording that outlasts a full disk or a removed file: a run waits until it can write again."""

from __future__ import annotations

import time
from collections.abc import Callable

from workbench.domain.errors import SessionDisplaced, SessionError, WorkbenchError
from workbench.domain.events import Event, Fact, Noted, Tick
from workbench.domain.projection import SessionView
from workbench.domain.samples import Measurement
from workbench.engine.runs.control import Control
from workbench.engine.sessions.channel import Publisher
from workbench.log import logger
from workbench.measuring.records import Drive

RETRY_S = 1.0

log = logger("engine.run")


class RetryingPublisher:
    """A run's publisher; what cannot be written is kept and tried again, not lost.

    A failed write breaks the session's database, so the file is opened anew before each try. Only
    a wish to end the run ends the waiting; the error is raised then.

    Parameters
    ----------
    on_wait : told the sentence about every second; nothing can be recorded meanwhile.
    """

    def __init__(
        self, publisher: Publisher, control: Control, on_wait: Callable[[str], None]
    ) -> None:
        self._publisher = publisher
        self._control = control
        self._on_wait = on_wait

    @property
    def view(self) -> SessionView:
        return self._publisher.view

    @property
    def broken(self) -> bool:
        return self._publisher.broken

    async def mend(self) -> tuple[Event, ...]:
        return await self._publisher.mend()

    def tick(self, tick: Tick) -> None:
        self._publisher.tick(tick)

    def count(self, target: str, drive: Drive) -> None:
        self._publisher.count(target, drive)

    def end(self, error: WorkbenchError | None = None) -> None:
        self._publisher.end(error)

    async def record(self, fact: Fact, measurement: Measurement | None = None) -> Event:
        """Record a fact, however long that takes. Raises `SessionError` once the run is to end."""
        try:
            return await self._publisher.record(fact, measurement)
        except SessionError as error:
            if not self.broken or self._control.ending:
                raise
            log.error("the session cannot be written", session=self.view.session, exc_info=error)
            return await self._record_later(fact, measurement, error)

    async def _record_later(
        self, fact: Fact, measurement: Measurement | None, error: SessionError
    ) -> Event:
        begin, trouble = time.monotonic(), error
        while not self._control.ending:
            self._on_wait(_waits(trouble))
            await self._control.rung(RETRY_S)
            try:
                stored = await self.mend()
                # The write may have failed after the fact was safe.
                event = next((event for event in stored if event.fact == fact), None)
                event = event or await self._publisher.record(fact, measurement)
            except SessionError as again:
                trouble = again
                continue
            waited = f"the session {error.what}: the run waited {time.monotonic() - begin:.0f} s"
            await self.record(Noted("warning", waited))
            return event
        raise trouble


def _waits(trouble: SessionError) -> str:
    said = f"the session {trouble.what}; the run waits, and nothing is lost"
    # Nobody puts a file back of his own accord, as a disk is made room on.
    return f"{said}. {trouble.remedy}" if isinstance(trouble, SessionDisplaced) else said
