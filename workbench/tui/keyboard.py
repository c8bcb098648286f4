"""What is typed, handed on one key after the other."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from textual.app import App
from textual.events import Key, Paste
from textual.message_pump import MessagePump

from workbench.tui.workers import begin

LONGEST_S = 1.0
"""Whoever is busy for longer holds up no further key."""
PAINTED_S = 0.03
"""After it has been dealt with, a key is painted with the next frame, of which there are sixty a
second."""


class Keyboard:
    """Hands on a key once the one before it has been dealt with.

    Textual puts a key into the queue of whatever has the focus when it arrives. Of several that
    arrive together, as they do over a slow link, those after a `tab` would be typed into the line
    that is being left, and those after a key that opens a dialog into the screen below it.
    """

    def __init__(self, app: App[None], hand_on: Callable[[Key | Paste], Awaitable[None]]) -> None:
        self._app, self._hand_on = app, hand_on
        self._waiting: deque[Key | Paste] = deque()
        self._idle = asyncio.Event()
        self._idle.set()
        self._done_at = -PAINTED_S

    def typed(self, event: Key | Paste) -> None:
        """Hand this on when it is its turn."""
        self._waiting.append(event)
        if self._idle.is_set():
            self._idle.clear()
            begin(self._app, self._work, group="keyboard")

    async def _work(self) -> None:
        try:
            while self._waiting and self._app.is_running:
                focused = self._app.focused or self._app.screen
                await self._hand_on(self._waiting.popleft())
                for node in focused.ancestors_with_self:  # the way that a key bubbles
                    await _dealt_with(node)
                if self._app.is_running:
                    await _dealt_with(self._app.screen)  # one that the key opened takes the focus
        finally:
            self._done_at = time.monotonic()
            self._idle.set()

    async def painted(self) -> None:
        """Until what was typed has been dealt with and is on the screen: what nobody asked for is
        drawn behind it. Somebody who goes on typing is waited for so long, and no longer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_S):
                while (left := PAINTED_S - self.quiet_s) > 0:
                    await self.dealt_with()
                    await asyncio.sleep(left)

    async def dealt_with(self) -> None:
        """Until everything that was typed has been."""
        await self._idle.wait()

    @property
    def quiet_s(self) -> float:
        """Seconds since the last key was dealt with; 0 while one is."""
        return time.monotonic() - self._done_at if self._idle.is_set() else 0.0


async def _dealt_with(node: MessagePump) -> None:
    """Until it has done what was in its queue."""
    done = asyncio.Event()
    if node.call_later(done.set):
        try:
            await asyncio.wait_for(done.wait(), LONGEST_S)
        except TimeoutError:
            return
