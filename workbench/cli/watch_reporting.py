"""What a watch sees is told to the engine of this workspace, where one runs: screens show it."""

from __future__ import annotations

import asyncio
import time

from workbench.cli.context import live_client, say
from workbench.domain.errors import UsageError, WorkbenchError
from workbench.domain.function_watches import (
    FunctionLook,
    ReportLook,
    WatchedFunction,
    WatchNote,
)
from workbench.link.client import Client

AGAIN_S = 10.0
"""Between two tries to find an engine."""
LONGEST_S = 0.5
"""For which a report may take: the next look is due in a second."""
MOST_NOTES = 20
"""That are kept for an engine that does not answer now."""


class LookReporter:
    """Tells an engine of every look; where none answers the watch goes on without one."""

    def __init__(self, watched: WatchedFunction) -> None:
        self._watched = watched
        self._client: Client | None = None
        self._due_s = 0.0
        self._untold: list[WatchNote] = []
        self._refused = False

    def note(self, text: str) -> None:
        """Something to be told with the next look."""
        self._untold = [*self._untold, WatchNote(time.time(), text)][-MOST_NOTES:]

    async def tell(self, look: FunctionLook | None, *, ended: bool = False) -> None:
        """Never raises for an engine that is slow, gone or of another version; says once what one
        refuses."""
        try:
            async with asyncio.timeout(LONGEST_S):
                if (client := await self._found()) is None:
                    return
                report = ReportLook(self._watched, look, tuple(self._untold), ended)
                await client.ask(report)
                self._untold = []
        except UsageError as error:
            if not self._refused:
                say(f"no screen shows what is seen here: {error}")
            self._refused = True
            await self._let_go()
        except (WorkbenchError, OSError, TimeoutError):
            await self._let_go()

    async def close(self) -> None:
        """Tell that it ends."""
        if self._client is not None:
            await self.tell(None, ended=True)
        await self._let_go()

    async def _found(self) -> Client | None:
        if self._client is None and time.monotonic() >= self._due_s:
            self._due_s = time.monotonic() + AGAIN_S
            self._client = await live_client()
        return self._client

    async def _let_go(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
