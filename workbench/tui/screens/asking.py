"""A question to the engine that takes its time: what is done for it is told meanwhile, and who
waits no longer has it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from workbench.domain.errors import WorkbenchError
from workbench.domain.messages import Done, GetStatus, Reply
from workbench.domain.questions import CancelQuestions, Question, session_of
from workbench.link.client import Client
from workbench.tui.widgets.waiting import Busy

POLL_S = 0.5
"""How often the engine is asked what it does for it."""


async def cancel(client: Callable[[], Awaitable[Client]], session: str) -> str:
    """Have the engine compute no further for our questions about a session: they are answered that
    they were cancelled. Returns what is to be said of it; empty where the answers say it."""
    try:
        reply = await (await client()).ask(CancelQuestions(session))
    except (WorkbenchError, OSError) as error:
        return str(error)
    return reply.note if isinstance(reply, Done) else ""


async def answered(
    client: Callable[[], Awaitable[Client]],
    request: Question,
    busy: Busy,
    draw: Callable[[], object],
) -> Reply:
    """The answer; `busy` says what is done until then, and is drawn. Raises what `ask` raises.

    Whose task is cancelled ends what the engine computes for it (`CancelQuestions`).
    """
    engine = await client()
    asking = asyncio.ensure_future(engine.ask(request))
    try:
        while not (await asyncio.wait({asking}, timeout=POLL_S))[0]:
            busy.hear(await engine.ask(GetStatus()))
            draw()
        return await asking
    except asyncio.CancelledError:
        with suppress(WorkbenchError, OSError, asyncio.CancelledError):
            await asyncio.shield(engine.ask(CancelQuestions(session_of(request))))
        raise
    finally:
        asking.cancel()
