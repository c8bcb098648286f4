"""A link that somebody else opened: how the SSH server gives one to a screen.

The server says the hello, with identity and role, and gives the connected socket away over a pair
of sockets that the screen's process inherits. So the engine learns from the server who is there,
the screen needs no way of its own to the engine, and may ask again after the engine was gone.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from workbench.domain import codec
from workbench.domain.errors import EngineError, WorkbenchError
from workbench.domain.lines import hello_line
from workbench.domain.messages import Hello
from workbench.link.socket import SocketClient

LINK_VARIABLE = "WORKBENCH_LINK_FD"
"""Number of the inherited socket that links come through."""
ASK = b"link\n"
GIVEN = b"given"
LONGEST_WORD = 1 << 16
PATIENCE_S = 25.0
"""How long a screen waits for a link; an engine may have to be started first."""


async def open_link(path: Path, hello: Hello) -> socket.socket:
    """A connection to the engine on which the hello is said and nothing is read.

    Raises `OSError` where nobody listens.
    """
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.setblocking(False)
    loop = asyncio.get_running_loop()
    try:
        await loop.sock_connect(link, str(path))
        await loop.sock_sendall(link, hello_line(hello))
    except BaseException:
        link.close()
        raise
    return link


async def give_links(giving: socket.socket, opened: Callable[[], Awaitable[socket.socket]]) -> None:
    """Answer everyone who asks at the other end of `giving`, until that end is closed."""
    loop = asyncio.get_running_loop()
    with suppress(OSError):
        while await loop.sock_recv(giving, LONGEST_WORD):
            try:
                link = await opened()
            except WorkbenchError as error:
                reply = codec.message_to_plain(codec.failed(error))
                await loop.sock_sendall(giving, codec.dumps(reply))
                continue
            with link:
                socket.send_fds(giving, [GIVEN], [link.fileno()])


async def handed_client(number: int) -> SocketClient:
    """The client of a link that is asked for at the inherited descriptor `number`."""
    link = await asyncio.to_thread(_ask_for_link, number)
    try:
        return await SocketClient.adopt(link)
    except OSError as error:
        raise EngineError(f"it is gone: {error.strerror}", remedy="Ask again") from None


def _ask_for_link(number: int) -> socket.socket:
    with socket.socket(fileno=os.dup(number)) as asking:
        os.set_inheritable(number, False)
        asking.settimeout(PATIENCE_S)
        try:
            asking.sendall(ASK)
            word, descriptors, _, _ = socket.recv_fds(asking, LONGEST_WORD, 1)
        except OSError as error:
            raise EngineError(f"the server gives no link: {error}", remedy="Log in again") from None
    if descriptors:
        link = socket.socket(fileno=descriptors[0])
        link.setblocking(False)
        return link
    if not word:
        raise EngineError("the server is gone", remedy="Log in again")
    raise codec.error_of(codec.message_of(word))
