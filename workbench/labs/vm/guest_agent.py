"""Orders to a guest, over a port of its own: no network of it is touched (`guest_init`)."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Sequence
from contextlib import suppress

from workbench.domain.errors import LabError
from workbench.labs.components.component import Outcome
from workbench.labs.vm.guest_init import MOST_TEXT, READY

PIECE = 48_000
"""Bytes of a file in one order."""
LONGEST_ANSWER = 4 * MOST_TEXT
ORDER_S = 60.0
"""How long an answer may take besides what the order itself may; guests with little CPU are slow.
"""
RUN_S = 60
"""Seconds after which a program is ended that the lab runs in a guest."""


class GuestSilent(LabError):
    """The agent does not answer any more; whoever holds the guest may know why."""


class GuestAgent:
    """The agent of one guest: one order at a time, each with a bound."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._turn = asyncio.Lock()
        self._number = 0

    @classmethod
    async def over(cls, end: socket.socket) -> GuestAgent:
        """Speak over a connected socket, whose other end is the guest's port."""
        return cls(*await asyncio.open_connection(sock=end, limit=LONGEST_ANSWER))

    async def ready(self, patience_s: float) -> None:
        """Ends once the guest has booted. Raises `GuestSilent`."""
        line = await self._line(patience_s)
        if line.strip() != READY.encode():
            raise GuestSilent(f"its agent began with {line[:40]!r}")

    async def run(self, argv: Sequence[str]) -> Outcome:
        """Run a program to its end, at most `RUN_S`; of its texts, 64 KiB each. Raises
        `GuestSilent`."""
        return await self._order(f"run {RUN_S} {_words(argv)}", RUN_S)

    async def serve(self, argv: Sequence[str]) -> None:
        """Start the function, in place of one that runs."""
        await self._order(f"serve {_words(argv)}")

    async def served(self) -> int | None:
        """The exit code of a function that has ended; None while it runs."""
        said = (await self._order("served")).stdout.strip()
        return int(said) if said.isdecimal() else None

    async def halt(self) -> None:
        """End the function, if it runs."""
        await self._order("halt")

    async def put(self, path: str, content: bytes, mode: str) -> None:
        """Write a file by absolute path, with an octal mode. Raises `LabError`."""
        order = "put"
        for begin in range(0, max(1, len(content)), PIECE):
            piece = _coded(content[begin : begin + PIECE])
            outcome = await self._order(f"{order} {mode} {_coded(path.encode())} {piece}")
            if outcome.exit_code != 0:
                raise LabError(f"{path} cannot be written: {outcome.said}")
            order = "add"

    def close(self) -> None:
        with suppress(OSError):
            self._writer.close()

    async def _order(self, order: str, takes_s: float = 0.0) -> Outcome:
        async with self._turn:
            self._number += 1
            number = str(self._number).encode()
            try:
                self._writer.write(number + b" " + order.encode() + b"\n")
                async with asyncio.timeout(ORDER_S):
                    await self._writer.drain()
            except (OSError, TimeoutError) as error:
                raise GuestSilent("its agent takes no orders any more") from error
            while True:
                told, *rest = (await self._line(ORDER_S + takes_s)).split()
                if told == number:  # else the answer of an order that nobody waits for any more
                    return _outcome(rest)

    async def _line(self, patience_s: float) -> bytes:
        try:
            async with asyncio.timeout(patience_s):
                line = await self._reader.readline()
        except TimeoutError:
            raise GuestSilent(f"its agent has not answered for {patience_s:g} s") from None
        except (OSError, ValueError) as error:  # ValueError: a line without end
            raise GuestSilent("its agent cannot be understood any more") from error
        if not line.endswith(b"\n") or not line.strip():
            raise GuestSilent("its agent has hung up")
        return line


def _outcome(words: Sequence[bytes]) -> Outcome:
    try:
        code, out, err = words
        texts = [base64.b64decode(word[1:], validate=True) for word in (out, err)]
        return Outcome(int(code), *(text.decode(errors="replace") for text in texts))
    except ValueError as error:
        raise GuestSilent("its agent answers what cannot be read") from error


def _words(argv: Sequence[str]) -> str:
    return " ".join(_coded(word.encode()) for word in argv)


def _coded(data: bytes) -> str:
    return ":" + base64.b64encode(data).decode()
