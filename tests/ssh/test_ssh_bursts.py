"""Connections that come in bursts and never log in; an SSH server in this process, no OpenSSH."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import asyncssh
import pytest
import pytest_asyncio
from driving import COMMAND
from ssh_door import audited

from workbench.cli.serve import _how_to_log_in
from workbench.paths import Workspace
from workbench.serve import descriptors
from workbench.serve.keys import KeyRing
from workbench.serve.limits import ServerLimits
from workbench.serve.server import SshServer


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    runtime = tempfile.mkdtemp(prefix="wb-")
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    (tmp_path / "sessions").mkdir()
    yield Workspace(tmp_path)
    shutil.rmtree(runtime)


@pytest.fixture
def key() -> asyncssh.SSHKey:
    return asyncssh.generate_private_key("ssh-ed25519", comment="ann")


@pytest_asyncio.fixture
async def server(workspace: Workspace, key: asyncssh.SSHKey) -> AsyncIterator[SshServer]:
    keys = workspace.root / "keys"
    keys.write_text("operator " + key.export_public_key().decode(), encoding="utf-8")
    keys.chmod(0o600)

    async def nobody() -> None:
        """No engine is needed."""

    server = SshServer(workspace, KeyRing(keys), [sys.executable, str(COMMAND)], nobody)
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    server.port = await server.open("127.0.0.1", 0)  # type: ignore[attr-defined]
    yield server
    await server.close()
    loop.set_exception_handler(before)


def port_of(server: SshServer) -> int:
    port: int = server.port  # type: ignore[attr-defined]
    return port


def come(port: int, count: int) -> list[socket.socket]:
    return [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]


def descriptors_open() -> int:
    return sum(1 for _ in os.scandir("/proc/self/fd"))


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - sockets of others set no event of ours
            await asyncio.sleep(0.005)


def is_open(stranger: socket.socket) -> bool:
    """Whether the server has not hung up: what it said is read away."""
    stranger.setblocking(False)
    try:
        while stranger.recv(4096):
            pass
    except BlockingIOError:
        return True
    except ConnectionError:
        pass
    return False


@pytest.mark.slow
@pytest.mark.parametrize("burst", [pytest.param(300, marks=pytest.mark.long), 1300])
async def test_the_limit_of_half_open_connections_holds_in_a_burst(
    server: SshServer,
    workspace: Workspace,
    burst: int,
    capsys: pytest.CaptureFixture[str],
    key: asyncssh.SSHKey,
) -> None:
    limit, most_open, most_kept = ServerLimits().half_open, 0, 0
    coming = asyncio.ensure_future(asyncio.to_thread(come, port_of(server), burst))
    before = descriptors_open()
    while not coming.done():
        await asyncio.sleep(0)
        most_open = max(most_open, len(server._connections))
        most_kept = max(most_kept, sum(not c.dropped for c in server._connections))
    strangers = await coming
    await until(lambda: sum(map(is_open, strangers)) <= limit)  # others are on their way out
    assert sum(map(is_open, strangers)) == limit
    assert most_kept <= limit, "while they come as well"
    assert most_open <= 5 * limit, "while they come, some are not gone yet"
    assert descriptors_open() <= before + burst + limit + 8
    async with asyncssh.connect(
        "127.0.0.1", port_of(server), client_keys=[key], known_hosts=None, config=None
    ):
        assert audited(workspace.audit)[-1]["what"] == "logged_in", "and nobody is kept out"
    for stranger in strangers:
        stranger.close()
    await until(lambda: not server._connections)
    told = [entry for entry in audited(workspace.audit) if entry["what"] == "not_logged_in"]
    whys = [entry["why"] for entry in told]
    assert whys == ["too many connections without a log-in", whys[-1]], "one line a minute each"
    counted = server._hung_up_on.rest() + server._left.rest()
    assert counted == burst - 2, "and the rest is counted"
    assert capsys.readouterr() == ("", ""), "no complaints, no traces"


async def test_the_last_descriptors_are_not_for_screens(
    server: SshServer, key: asyncssh.SSHKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descriptors, "are_short", lambda: True)
    async with asyncssh.connect(
        "127.0.0.1", port_of(server), client_keys=[key], known_hosts=None, config=None
    ) as connection:
        done = await connection.run("ls")
    assert done.exit_status == 2
    assert "no file descriptors left" in str(done.stderr)


async def test_strangers_go_first_where_descriptors_are_short(
    server: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descriptors, "are_short", lambda: True)
    strangers = await asyncio.to_thread(come, port_of(server), 20)
    await until(lambda: sum(map(is_open, strangers)) <= 1)
    for stranger in strangers:
        stranger.close()


def test_reserve_is_what_the_limit_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(400):
        (tmp_path / str(number)).touch()
    monkeypatch.setattr(descriptors, "OPEN", tmp_path)
    for soft, short in ((700, True), (1024, False), (500, True)):
        monkeypatch.setattr(descriptors.resource, "getrlimit", lambda _, soft=soft: (soft, soft))
        assert descriptors.are_short() is short


class Lines:
    """A log that remembers how often it was told of."""

    def __init__(self) -> None:
        self.times: list[int] = []

    def warning(self, what: str, times: int) -> None:
        self.times.append(times)


async def test_a_flood_of_errors_is_one_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Lines()
    monkeypatch.setattr(descriptors, "log", lines)
    loop = asyncio.get_running_loop()
    told = descriptors.SeldomTold()
    now = 1000.0
    flood = {"message": "accept", "exception": OSError(24, "Too many open files")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "time", lambda: now)
        for _ in range(5000):
            told(loop, flood)
        now += descriptors.QUIET_S
        told(loop, flood)
    assert lines.times == [1, 5000]


def test_it_says_what_to_type_and_how_to_become_operator(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    here = _how_to_log_in("127.0.0.1", 2222, keys)
    assert here[0] == "to see the screens: ssh -p 2222 127.0.0.1 (on this host)"
    assert here[1].endswith("-p 2222 127.0.0.1")
    assert here[-1].startswith("to become operator: write `operator ` before your public key in")
    assert str(keys) in here[-1]
    everywhere = _how_to_log_in("0.0.0.0", 2200, keys)
    assert everywhere[0] == f"to see the screens: ssh -p 2200 {socket.gethostname()}"
    assert len(everywhere) == 2
    assert _how_to_log_in("lab.example", 22, keys)[0].endswith("ssh -p 22 lab.example")
