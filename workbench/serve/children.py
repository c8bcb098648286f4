"""The process behind a channel: a screen or a command, with a terminal or without one.

It gets its link to the engine from the server (`link.fd_passing`) and ends with its connection: at
once by the terminal's hang-up, within `END_S` in any case.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import signal
import socket
import struct
import sys
import termios
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import asyncssh

from workbench.link.fd_passing import LINK_VARIABLE, give_links
from workbench.serve.streams import FileDescriptor

END_S = 0.9
"""What a child gets to end by itself, after SIGHUP and after SIGTERM; then it is killed."""
LARGEST = (500, 200)
"""Columns and rows that a client may say it has: a screen draws every cell."""
FRAMES_PER_S = "15"
KEPT = re.compile(r"PATH|HOME|USER|LOGNAME|LANG|LC_\w+|TZ|XDG_\w+|PYTHON\w*|VIRTUAL_ENV|TMPDIR")
"""Of the server's own environment."""
TAKEN = ("COLORTERM", "LANG", "NO_COLOR")
"""Of what a client says about its side."""
WORD = re.compile(r"[A-Za-z0-9._+-]{0,64}")
LAUNCHER = Path(__file__).with_name("launch.py")


def environment(workspace: Path, terminal: str | None, said: Mapping[str, str]) -> dict[str, str]:
    """What a child knows of the world."""
    kept = {name: value for name, value in os.environ.items() if KEPT.fullmatch(name)}
    for name in TAKEN:
        if name in said and WORD.fullmatch(said[name]):
            kept[name] = said[name]
    if terminal is not None:
        kept["TERM"] = terminal if WORD.fullmatch(terminal) and terminal else "xterm"
        kept["TEXTUAL_FPS"] = FRAMES_PER_S
    return kept | {"WORKBENCH_WORKSPACE": str(workspace)}


class Child:
    """One process with a link of its own.

    Parameters
    ----------
    process : the channel at whose other end the client is.
    flowing : waits until the client has read what was sent to it.
    touch : called with each input.
    """

    def __init__(
        self,
        process: asyncssh.SSHServerProcess[bytes],
        flowing: Callable[[], Awaitable[None]],
        touch: Callable[[], None],
    ) -> None:
        self._process = process
        self._flowing = flowing
        self._touch = touch
        self._child: asyncio.subprocess.Process | None = None
        self._terminal: FileDescriptor | None = None
        self._master = -1

    async def run(
        self,
        argv: Sequence[str],
        variables: Mapping[str, str],
        opened: Callable[[], Awaitable[socket.socket]],
    ) -> int:
        """Run it to its end, or the connection's; its exit code, by a signal negative."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        giving = asyncio.create_task(give_links(ours, opened))
        gone = asyncio.create_task(self._process.wait_closed())
        pumps: list[asyncio.Task[None]] = []
        left = False
        try:
            with theirs:
                passed = {**variables, LINK_VARIABLE: str(theirs.fileno())}
                pumps = await self._start(argv, passed, theirs.fileno())
            output = asyncio.gather(*pumps)
            await asyncio.wait((output, gone), return_when=asyncio.FIRST_COMPLETED)
            left = output.done()
            if left:
                output.result()  # raises where the client was too slow
        finally:
            for task in (giving, gone, *pumps):
                task.cancel()
            ours.close()
            code = await asyncio.shield(asyncio.create_task(self._end(left)))
        return code

    async def _start(
        self, argv: Sequence[str], variables: Mapping[str, str], link: int
    ) -> list[asyncio.Task[None]]:
        if self._process.term_type is None:
            return await self._start_with_pipes(argv, variables, link)
        self._master, slave = pty.openpty()
        self._terminal = FileDescriptor(self._master)
        self._resize(*self._process.term_size[:2])
        try:
            self._child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(LAUNCHER), *argv),
                stdin=slave,
                stdout=slave,
                stderr=slave,
                env=dict(variables),
                pass_fds=(link,),
                start_new_session=True,
                cwd="/",
            )
        finally:
            os.close(slave)
        out = asyncio.create_task(self._pump_out(self._terminal, self._process.stdout))
        keys = asyncio.create_task(self._pump_keys(self._terminal))
        out.add_done_callback(lambda _: keys.cancel())
        return [out]

    async def _start_with_pipes(
        self, argv: Sequence[str], variables: Mapping[str, str], link: int
    ) -> list[asyncio.Task[None]]:
        pipes = [os.pipe(), os.pipe()]
        try:
            self._child = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=pipes[0][1],
                stderr=pipes[1][1],
                env=dict(variables),
                pass_fds=(link,),
                start_new_session=True,
                cwd="/",
            )
        finally:
            for _, writing in pipes:
                os.close(writing)
        writers = (self._process.stdout, self._process.stderr)
        return [
            asyncio.create_task(self._pump_out(FileDescriptor(reading), writer))
            for (reading, _), writer in zip(pipes, writers, strict=True)
        ]

    async def _pump_out(self, source: FileDescriptor, sink: asyncssh.SSHWriter[bytes]) -> None:
        try:
            while data := await source.read():
                sink.write(data)
                await self._flowing()
        finally:
            source.close()

    async def _pump_keys(self, sink: FileDescriptor) -> None:
        """What the client types, until it says that there is no more: then nobody can leave."""
        while True:
            try:
                data = await self._process.stdin.read(4096)
            except asyncssh.TerminalSizeChanged as change:
                self._resize(change.width, change.height)
                continue
            except (asyncssh.BreakReceived, asyncssh.SignalReceived):
                continue
            except (asyncssh.Error, OSError):
                data = b""
            if not data:
                sink.close()  # the kernel hangs up on those who have it as their terminal
                return
            self._touch()
            await sink.write(data)

    def _resize(self, columns: int, rows: int) -> None:
        size = struct.pack(
            "HHHH", min(rows or 24, LARGEST[1]), min(columns or 80, LARGEST[0]), 0, 0
        )
        with suppress(OSError):  # it is closing
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    # ------------------------------------------------------------------ the end

    async def _end(self, left: bool) -> int:
        """See to it that the process is gone; its exit code. `left`: it is leaving by itself."""
        if self._terminal is not None:
            self._terminal.close()  # the kernel hangs up on those who have it as their terminal
        return -1 if self._child is None else await end(self._child, left)


async def end(child: asyncio.subprocess.Process, left: bool) -> int:
    """See to it that a process and its session are gone; its exit code.

    `left`: it is leaving by itself, since its input or its output has ended.
    """
    for number in (None, signal.SIGHUP, signal.SIGTERM)[0 if left else 1 :]:
        if number is not None:
            _signal(child, number)
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                return await child.wait()
    _signal(child, signal.SIGKILL)
    return await child.wait()


def _signal(child: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """To all of its session: a command may have started something."""
    if child.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)
