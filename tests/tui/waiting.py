"""Wait for a screen as Textual's pilot does, and ask only the widgets that are at work."""

from __future__ import annotations

import asyncio
from typing import Any

from textual.message_pump import MessagePump
from textual.pilot import Pilot

ROUNDS = 3
"""What was at work gives others work, and those others again."""


async def wait_for_screen(pilot: Pilot[Any], timeout: float = 30.0) -> bool:
    """In place of `Pilot._wait_for_screen`, which has each of a hundred widgets call back at each
    key: a quarter of what the tests of screens cost. Those that wait for a message have none."""
    for _ in range(ROUNDS):
        if not pilot.app.is_running or not pilot.app._screen_stack:
            return False
        pumps = [pilot.app, *pilot.app.screen.walk_children(with_self=True)]
        answers = [done for pump in pumps if at_work(pump) and (done := asked(pump)) is not None]
        await asyncio.sleep(0)
        if not answers:
            break
        failed = asyncio.create_task(pilot.app._exception_event.wait())
        all_done = asyncio.gather(*(done.wait() for done in answers))
        try:
            ended, _ = await asyncio.wait(
                (failed, all_done), timeout=timeout, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            failed.cancel()
            all_done.cancel()
        assert ended, "widgets do not deal with their messages"
        if failed in ended:
            return False
    return True


def at_work(pump: MessagePump) -> bool:
    """It waits for no message, or has one, or something to call."""
    ready = pump._message_queue.ready_event
    return ready.is_set() or not ready._waiters or bool(pump._next_callbacks)


def asked(pump: MessagePump) -> asyncio.Event | None:
    """Set once it has dealt with what it has; None where it takes nothing any more."""
    done = asyncio.Event()
    return done if pump.call_later(done.set) else None
