"""A question to the engine that takes its time: what is done for it is told meanwhile, and it
can be dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from workbench.domain.messages import GetStatus, Request
from workbench.link.client import Client
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.widgets.waiting import Busy
from workbench.tui.work import begin

R = TypeVar("R")

POLL_S = 0.5
"""How often the engine is asked what it does for it."""


ASKING = "asking"
"""Work of a screen that asks and waits."""


def ask(screen: WorkbenchScreen, work: Callable[[], Awaitable[None]]) -> None:
    """Begin ``work`` that asks the engine; what the screen asked before is dropped."""
    begin(screen, work, group=ASKING, exclusive=True)


def drop(screen: WorkbenchScreen) -> None:
    """Wait no longer for what a screen asked; the engine computes no further for it."""
    screen.workers.cancel_group(screen, ASKING)
    screen.workbench.say("Not waited for any more.")


async def answered(
    client: Callable[[], Awaitable[Client]],
    request: Request[R],
    busy: Busy,
    draw: Callable[[], object],
) -> R:
    """The answer; `busy` says what is done until then, and is drawn. Raises what `ask` raises."""
    engine = await client()
    asking = asyncio.ensure_future(engine.ask(request))
    try:
        while not (await asyncio.wait({asking}, timeout=POLL_S))[0]:
            busy.hear(await engine.ask(GetStatus()))
            draw()
        return await asking
    finally:
        asking.cancel()
