"""The screen behind a browser's connection: a process that draws for Textual's web driver.

Its two ends speak in packets (`textual.drivers.web_driver`): a letter, the length, the payload.
The browser's end of the websocket is textual-serve's page.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import Any

from aiohttp import WSMsgType, web

from workbench.domain import codec
from workbench.domain.errors import WorkbenchError
from workbench.link.fd_passing import LINK_VARIABLE, give_links
from workbench.log import logger
from workbench.serve.children import LARGEST, end, environment
from workbench.serve.launch import NICENESS

HEADER = Struct(">cI")
DATA, META = b"D", b"M"
PRELUDE = b"__GANGLION__\n"
"""What the driver says before its first packet."""
SLOW_S = 20.0
"""A browser that takes nothing for so long, while there is something to draw, is dropped."""
TOLD_BYTES = 4000
"""Of what a screen says on its way out, in the log."""

log = logger("web")


class BrowserScreen:
    """One screen process and the websocket that it is seen through.

    Parameters
    ----------
    columns, rows : as the browser says, which may be anything.
    """

    def __init__(
        self, websocket: web.WebSocketResponse, columns: str | None, rows: str | None
    ) -> None:
        self._websocket = websocket
        self._size = _size(columns, rows)

    async def run(
        self,
        argv: Sequence[str],
        workspace: Path,
        opened: Callable[[], Awaitable[socket.socket]],
    ) -> int:
        """Run it until it ends or the browser is gone; its exit code, by a signal negative."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        giving = asyncio.create_task(give_links(ours, opened))
        with theirs:
            child = await self._start(argv, workspace, theirs.fileno())
        drawing = asyncio.create_task(self._draw(child))
        typing = asyncio.create_task(self._type(child))
        complaining = asyncio.create_task(_tell_complaints(child))
        left = False
        try:
            await asyncio.wait((drawing, typing), return_when=asyncio.FIRST_COMPLETED)
            left = drawing.done()
        finally:
            tasks = (giving, drawing, typing)
            for task in tasks:
                task.cancel()
            ours.close()
            assert child.stdin is not None
            child.stdin.close()
            code = await asyncio.shield(asyncio.create_task(end(child, left)))
            ended = await asyncio.gather(*tasks, complaining, return_exceptions=True)
            for problem in ended:
                if isinstance(problem, Exception):
                    log.error("a screen in a browser broke off", exc_info=problem)
        return code

    async def _start(
        self, argv: Sequence[str], workspace: Path, link: int
    ) -> asyncio.subprocess.Process:
        columns, rows = self._size
        pipe = asyncio.subprocess.PIPE
        child = await asyncio.create_subprocess_exec(
            *argv,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=environment(workspace, "xterm-256color", {"COLORTERM": "truecolor"})
            | {
                "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver",
                "TEXTUAL_COLOR_SYSTEM": "truecolor",
                "COLUMNS": str(columns),
                "ROWS": str(rows),
                LINK_VARIABLE: str(link),
            },
            pass_fds=(link,),
            start_new_session=True,
            cwd="/",
        )
        with suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, child.pid, min(os.nice(0) + NICENESS, 19))
        return child

    async def _draw(self, child: asyncio.subprocess.Process) -> None:
        """What the screen paints, to the browser. Raises `TimeoutError` if that is too slow."""
        assert child.stdout is not None
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await child.stdout.readuntil(PRELUDE)
            while True:
                kind, size = HEADER.unpack(await child.stdout.readexactly(HEADER.size))
                payload = await child.stdout.readexactly(size)
                if kind == DATA:  # of the rest, the end of the stream says what matters
                    async with asyncio.timeout(SLOW_S):
                        await self._websocket.send_bytes(payload)

    async def _type(self, child: asyncio.subprocess.Process) -> None:
        """Keys, mouse and size, to the screen, until the browser goes or talks nonsense."""
        assert child.stdin is not None
        with suppress(ConnectionError, WorkbenchError):
            async for message in self._websocket:
                if message.type is not WSMsgType.TEXT:
                    return
                match codec.loads(message.data):
                    case ["stdin", str(text)]:
                        packet = _packet(DATA, text.encode())
                    case ["resize", {"width": columns, "height": rows}]:
                        width, height = _size(columns, rows)
                        packet = _meta("resize", width=width, height=height)
                    case ["focus" | "blur" as what, *_]:
                        packet = _meta(what)
                    case ["ping", str(text)]:
                        await self._websocket.send_json(["pong", text])
                        continue
                    case _:
                        return
                child.stdin.write(packet)
                await child.stdin.drain()


async def _tell_complaints(child: asyncio.subprocess.Process) -> None:
    """What the screen says beside the drawing is for the log: there is no terminal to say it on."""
    assert child.stderr is not None
    told = b""
    while more := await child.stderr.read(TOLD_BYTES):
        told = (told + more)[-TOLD_BYTES:]
    if told:
        log.warning("a screen in a browser said", text=told.decode(errors="replace"))


def _packet(kind: bytes, payload: bytes) -> bytes:
    return HEADER.pack(kind, len(payload)) + payload


def _meta(what: str, **facts: int) -> bytes:
    return _packet(META, codec.dumps({"type": what, **facts}))


def _size(columns: Any, rows: Any) -> tuple[int, int]:
    """Columns and rows of what a browser says; the usual terminal where that is no size."""
    try:
        width, height = int(columns), int(rows)
    except (TypeError, ValueError, OverflowError):
        return 80, 24
    return min(max(width, 1), LARGEST[0]), min(max(height, 1), LARGEST[1])
