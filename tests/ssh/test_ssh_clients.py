"""Clients that are slow, frozen, idle, too many or hostile: dropped, and nobody else notices."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncssh
import pytest
import pytest_asyncio
from ssh_door import PATIENCE_S, audited, make_keys, ssh_options

from workbench.domain.messages import PROTOCOL_VERSION
from workbench.engine.process import serving
from workbench.paths import Workspace
from workbench.serve.limits import ServerLimits
from workbench.serve.server import SshServer, authorized_keys

SPEW = """
import os, time
while True:
    print("x" * 4096 if os.environ["TERM"] == "fast" else "x", flush=True)
    if os.environ["TERM"] != "fast":
        time.sleep(0.05)
"""
"""On a terminal called `fast` it draws without end."""
STUBBORN = (
    "import signal, sys, time\n"
    "for n in (signal.SIGHUP, signal.SIGTERM): signal.signal(n, signal.SIG_IGN)\n"
    "print('here', flush=True)\n"
    "while True: time.sleep(60)"
)
ECHO = "import sys\nprint('here', flush=True)\nprint(sys.stdin.readline(), flush=True)"
HOSTILE = """
import json, os, socket
asking = socket.socket(fileno=int(os.environ["WORKBENCH_LINK_FD"]))
asking.send(b"link")
word, descriptors, _, _ = socket.recv_fds(asking, 4096, 1)
link = socket.socket(fileno=descriptors[0])
link.setblocking(True)
link = link.makefile("rw")
print(link.readline())
for role in ("operator", None):
    line = {"id": 1, "request": {"type": "StopEngine"}}
    if role is None:
        line = {"hello": {"protocol": MINE, "version": "0", "identity": "root", "role": "operator"}}
    print(json.dumps(line), file=link, flush=True)
    print(link.readline())
print("closed" if not link.readline() else "open")
""".replace("MINE", str(PROTOCOL_VERSION))


class Inside:
    """A server in this process, whose screens are a line of Python."""

    def __init__(self, server: SshServer, keys: Path, port: int) -> None:
        self.server = server
        self.keys = keys
        self.port = port

    def options(self, key: str = "ann") -> dict[str, Any]:
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "username": "x",
            "client_keys": [str(self.keys / key)],
            "known_hosts": None,
            "config": None,
            "agent_path": None,
        }

    async def start(self, *options: str, key: str = "ann") -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *("ssh", *ssh_options(self.keys, key, self.port, *options), "127.0.0.1"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    async def until_told(self, what: str, **facts: Any) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for line in audited(self.server.audit.path):
                    if line["what"] == what and all(line.get(k) == v for k, v in facts.items()):
                        return line
                await asyncio.sleep(0.05)


Opened = Callable[..., Awaitable[Inside]]


@pytest_asyncio.fixture
async def inside(workspace: Workspace) -> AsyncIterator[Opened]:
    servers: list[SshServer] = []

    async def opened(screen: str, limits: ServerLimits) -> Inside:
        keys = workspace.root / "keys"
        ring = authorized_keys(make_keys(keys))
        command = [sys.executable, "-c", screen]
        server = SshServer(workspace, ring, command, no_engine, limits)
        servers.append(server)
        port = await server.open("127.0.0.1", 0)
        return Inside(server, keys, port)

    yield opened
    for server in servers:
        await server.close()


async def no_engine() -> None:
    raise AssertionError("an engine runs already, or none is needed")


@asynccontextmanager
async def neighbour(door: Inside) -> AsyncIterator[None]:
    """Somebody whose screen goes on while the body does to another what it does."""
    async with asyncssh.connect(**door.options("bob")) as other:
        process = await other.create_process(term_type="xterm", encoding=None)
        assert await process.stdout.read(1)
        yield
        assert await process.stdout.read(1), "it goes on"


async def test_a_client_that_does_not_read_is_dropped_and_others_go_on(inside: Opened) -> None:
    door = await inside(SPEW, ServerLimits(slow_s=1.0))
    async with neighbour(door), asyncssh.connect(**door.options()) as slow:
        process = await slow.create_process(term_type="fast", window=4096, encoding=None)
        process.channel.pause_reading()
        await door.until_told("dropped", who="ann", why="too slow to read")
        await door.until_told("screen_ended", who="ann")
        with suppress(asyncssh.Error):
            await slow.wait_closed()


@pytest.mark.needs("ssh")
async def test_a_frozen_client_is_dropped_by_keep_alive_or_for_its_slowness(
    inside: Opened,
) -> None:
    """A laptop that is closed: its connection stays, and says nothing any more."""
    door = await inside(ECHO, ServerLimits(keep_alive_s=1.0, keep_alive_count=2))
    client = await door.start("-tt")
    await door.until_told("screen_begun", who="ann")
    client.send_signal(signal.SIGSTOP)
    await door.until_told("screen_ended", who="ann")
    await door.until_told("logged_out", who="ann")
    client.kill()
    await client.wait()


@pytest.mark.needs("ssh")
async def test_a_screen_that_does_not_want_to_end_is_killed(inside: Opened) -> None:
    door = await inside(STUBBORN, ServerLimits())
    client = await door.start("-tt")
    assert client.stdout is not None
    assert b"here" in await client.stdout.readline()
    client.kill()
    await client.wait()
    assert (await door.until_told("screen_ended", who="ann"))["code"] == -signal.SIGKILL


@pytest.mark.needs("ssh")
async def test_an_idle_connection_is_dropped(
    inside: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.serve.server.WATCH_S", 0.1)
    door = await inside(ECHO, ServerLimits(idle_s=0.5))
    idle = await door.start("-tt")
    await door.until_told("dropped", who="ann", why="idle for too long")
    assert await idle.wait() != 0


@pytest.mark.needs("ssh")
async def test_too_many_connections_of_a_key_and_too_many_keys_are_dropped(
    inside: Opened,
) -> None:
    door = await inside(ECHO, ServerLimits(connections_per_key=1, attempts=2))
    first = await door.start("-tt")
    assert first.stdin is not None
    assert first.stdout is not None
    assert b"here" in await first.stdout.readline()
    with pytest.raises((asyncssh.Error, OSError)):
        async with asyncssh.connect(**door.options()) as second:
            await second.run("ls", check=True)
    await door.until_told("dropped", who="ann", why="your key has 1 connections already")
    first.stdin.write(b"still there?\n")
    assert b"still there?" in await first.stdout.readline()
    first.kill()
    await first.wait()
    many = door.options() | {"client_keys": [str(door.keys / "eve")] * 2 + [str(door.keys / "ann")]}
    with pytest.raises((asyncssh.Error, OSError)):
        await asyncssh.connect(**many)
    await door.until_told("not_logged_in", why="too many keys were tried")


@pytest.mark.needs("ssh")
async def test_a_hostile_screen_of_an_observer_gets_nowhere(
    inside: Opened, workspace: Workspace
) -> None:
    """It has the link, says what it likes, and the engine knows who it is all the same."""
    async with serving(workspace) as engine:
        door = await inside(HOSTILE, ServerLimits())
        client = await door.start("-tt", key="olga")
        out, _ = await asyncio.wait_for(client.communicate(), PATIENCE_S)
        text = out.decode()
        assert '"role":"observer"' in text
        assert "observers may watch, not command" in text
        assert "a line is not a request" in text
        assert "closed" in text
        assert not engine.stopping.is_set()
        await door.until_told("command", who="olga", command="StopEngine", outcome="refused")


async def test_the_size_of_a_terminal_is_bounded_and_its_name_is_a_word(inside: Opened) -> None:
    show = "import os; print(*os.get_terminal_size(), os.environ['TERM'], os.environ.get('EDITOR'))"
    door = await inside(show, ServerLimits())
    terminal = {
        "term_type": "../../x\x1b",
        "term_size": (4_000_000, 0),
        "env": {"EDITOR": "/bin/sh"},
    }
    async with (
        asyncssh.connect(**door.options()) as client,
        client.create_process(**terminal) as screen,  # keys may come: `run` says none will
    ):
        told = await asyncio.wait_for(screen.stdout.readline(), PATIENCE_S)
    assert told.split() == ["500", "24", "xterm", "None"]
