"""What later sessions can use and takes minutes to make: made while nothing is measured here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from workbench import plugins
from workbench.domain.errors import LabError, WorkbenchError
from workbench.engine.runs.opening import kind_of
from workbench.labs.base import LabDoctor
from workbench.log import logger

POLL_S = 0.5
"""How often it is looked whether anything is measured: a deployment takes longer than that."""
QUIET_S = 3.0
"""How long nothing must have been measured: who repeats a session at once is not disturbed."""

log = logger("engine.idle")


class IdleWork:
    """Has labs make what later sessions can use; gives way to whatever is measured on this host.

    Parameters
    ----------
    is_idle : whether nothing is measured, or made ready to be, on this host.

    Attributes
    ----------
    doing : what is made just now, as a sentence; empty where nothing is.
    """

    def __init__(self, is_idle: Callable[[], bool], poll_s: float = POLL_S) -> None:
        self.doing = ""
        self._is_idle = is_idle
        self._poll_s = poll_s
        self._wanted: list[str] = []
        """Labs that were used here and not asked yet."""
        self._asked: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def pending(self) -> bool:
        """Whether anything is made, or waits until nothing is measured."""
        return self._task is not None and not self._task.done()

    def after(self, lab: str) -> None:
        """A session used that lab: what it lacked may be made for the next ones. Asked once."""
        kind = kind_of(lab)
        if kind in self._asked:
            return
        self._asked.add(kind)
        self._wanted.append(kind)
        if not self.pending:
            self._task = asyncio.create_task(self._work(), name="idle work")

    async def stop(self) -> None:
        """Leave it; what was half made is not kept."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.doing = ""

    async def _work(self) -> None:
        while self._wanted:
            await self._until_idle()
            try:
                if await self._prepared(self._wanted[0]):
                    self._wanted.pop(0)
            except WorkbenchError as error:
                log.warning("nothing was made for later", lab=self._wanted.pop(0), error=str(error))
            except Exception as error:  # a plugin's lab must not take the engine down
                log.error("nothing was made for later", lab=self._wanted.pop(0), exc_info=error)
            finally:
                self.doing = ""

    async def _until_idle(self) -> None:
        quiet = 0.0
        while quiet < QUIET_S:
            await asyncio.sleep(self._poll_s)
            quiet = quiet + self._poll_s if self._is_idle() else 0.0

    async def _prepared(self, kind: str) -> bool:
        """Whether the lab has made all it can; False where it had to give way."""
        doctor: LabDoctor = await asyncio.to_thread(plugins.load, "labs", kind)
        if not hasattr(doctor, "prepare"):
            return True
        making = asyncio.ensure_future(doctor.prepare(self._hear))
        try:
            while not making.done():
                await asyncio.wait((making,), timeout=self._poll_s)
                if not making.done() and not self._is_idle():
                    log.info("gives way to what is measured", lab=kind, doing=self.doing)
                    return False
            making.result()
        finally:
            making.cancel()
            with suppress(asyncio.CancelledError, LabError):
                await making
        return True

    def _hear(self, line: str) -> None:
        self.doing = line
