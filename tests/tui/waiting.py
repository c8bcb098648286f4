"""Wait for a screen as Textual's pilot does: ask only the widgets that are at work, sleep only for
what is due."""

from __future__ import annotations

import asyncio
import math
import time
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


SOON_S = 0.02
"""What is due by then belongs to what was just done: Textual's own wait is never shorter."""
IDLE = 0.05
"""Share of a core below which Textual calls a process idle."""


async def wait_for_idle(min_sleep: float = SOON_S, max_sleep: float = 1.0) -> None:
    """In place of `textual._wait.wait_for_idle`, which sleeps twice per key for 20 ms, and again as
    long as one of them sees work: most of what the tests of screens took. Here it is over as soon
    as nothing is left to do, due soon or under way in a thread; or by Textual's rule, where
    something recurs.
    """
    loop: Any = asyncio.get_running_loop()
    began = since = time.monotonic()
    cpu_s = time.process_time()
    while (now := time.monotonic()) - began < max_sleep:
        if await still_busy(loop):
            continue
        soonest = min((h._when for h in loop._scheduled if not h._cancelled), default=math.inf)
        wait_s = soonest - loop.time()
        if wait_s > SOON_S and not works_in_threads(loop) and now - began >= min_sleep:
            return
        await asyncio.sleep(max(wait_s, 0.0) if wait_s <= SOON_S else SOON_S / 10)
        if now - since >= SOON_S:
            if time.process_time() - cpu_s < IDLE * (now - since):
                return
            cpu_s, since = time.process_time(), now


async def still_busy(loop: Any) -> bool:
    """What was written to a socket of this loop is seen by its next look at them only."""
    for _ in range(3):
        await asyncio.sleep(0)
        if loop._ready:
            return True
    return False


def works_in_threads(loop: Any) -> bool:
    """Whether something that was given to the loop's threads has not ended."""
    executor = loop._default_executor
    return executor is not None and (
        executor._work_queue.qsize() > 0 or executor._idle_semaphore._value < len(executor._threads)
    )
