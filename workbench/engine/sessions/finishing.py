"""Work that is not left half done, though who asked for it has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from workbench.domain.errors import WorkbenchError
from workbench.log import logger

T = TypeVar("T")

log = logger("engine.finishing")


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
