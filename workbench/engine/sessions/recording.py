"""Facts that an answer leaves behind in a session, where the session lets it be changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from workbench.domain.errors import WorkbenchError
from workbench.domain.events import Fact
from workbench.domain.projection import SessionView
from workbench.engine.sessions.library import Library
from workbench.log import logger

T = TypeVar("T")

log = logger("engine.recording")


async def recorded(
    library: Library, session: str, make: Callable[[SessionView], Fact | None]
) -> Fact | None:
    """Record what `make` makes of the session as it stands.

    Who is cancelled meanwhile waits for it: a file is never left half opened. Raises
    `SessionError` or `UsageError` where the session cannot be written.
    """

    async def recording() -> Fact | None:
        async with library.writing(session) as channel:
            fact = make(channel.view)
            if fact is not None:
                await channel.record(fact)
            return fact

    return await to_the_end(recording())


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """What `work` comes to. Who is cancelled meanwhile waits for it: a thread that reads or writes
    a file cannot be stopped, and nobody may close the file under it. An error that comes then is
    told to nobody but the log."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_look_at)
        await asyncio.wait([task])
        raise


def _look_at(task: asyncio.Future[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        expected = isinstance(error, WorkbenchError)
        log.info(
            "what nobody waits for failed", exc_info=None if expected else error, why=str(error)
        )


def not_stored(error: WorkbenchError) -> str:
    """What the error says, without a remedy that is about going on measuring."""
    return f"computed, not stored: {f'{error.where} ' if error.where else ''}{error.what}"
