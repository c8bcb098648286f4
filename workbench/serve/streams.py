"""A descriptor of a child process, read and written without blocking the loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

BLOCK = 1 << 15
"""Bytes read at once."""


class FileDescriptor:
    """A pty's near end, or a pipe. It owns the descriptor."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._loop = asyncio.get_running_loop()
        self._open = True
        self._waiting: set[asyncio.Future[None]] = set()
        os.set_blocking(number, False)

    async def read(self) -> bytes:
        """What there is, as soon as there is something; empty at the end of it."""
        while self._open:
            try:
                return os.read(self._number, BLOCK)
            except BlockingIOError:
                await self._ready(self._loop.add_reader, self._loop.remove_reader)
            except OSError:  # a pty says EIO when nobody has its other end open
                break
        return b""

    async def write(self, data: bytes) -> None:
        """Write all of it; what nobody reads any more is dropped."""
        while data and self._open:
            try:
                data = data[os.write(self._number, data) :]
            except BlockingIOError:
                await self._ready(self._loop.add_writer, self._loop.remove_writer)
            except OSError:
                return

    def close(self) -> None:
        if self._open:
            self._open = False
            self._loop.remove_reader(self._number)
            self._loop.remove_writer(self._number)
            os.close(self._number)
            for ready in self._waiting:
                _set(ready)

    async def _ready(self, watch: Callable[..., Any], leave: Callable[[int], Any]) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()
        self._waiting.add(ready)
        watch(self._number, _set, ready)
        try:
            await ready
        finally:
            self._waiting.discard(ready)
            if self._open:
                leave(self._number)


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
