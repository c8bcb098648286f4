"""A question to the engine that takes its time: what is done for it is told meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from workbench.domain.messages import EngineStatus, GetStatus, Reply, Request
from workbench.link.client import Client
from workbench.tui.widgets.waiting import Busy

POLL_S = 0.5
"""How often the engine is asked what it does for it."""


async def answered(
    client: Callable[[], Awaitable[Client]],
    request: Request,
    busy: Busy,
    draw: Callable[[], object],
) -> Reply:
    """The answer; `busy` says what is done until then, and is drawn. Raises what `ask` raises."""
    engine = await client()
    asking = asyncio.ensure_future(engine.ask(request))
    try:
        while not (await asyncio.wait({asking}, timeout=POLL_S))[0]:
            status = await engine.ask(GetStatus())
            if isinstance(status, EngineStatus):
                busy.doing = status.preparing or status.scoring
            draw()
        return await asking
    finally:
        asking.cancel()
