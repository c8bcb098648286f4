"""What its keeper says of a host that is lost, whatever it was lost by."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from workbench.domain.fleets import Fleet, LabHost
from workbench.fleet import keeper
from workbench.fleet.fleet_standing import FleetFolder, HostStanding
from workbench.fleet.keeper import Keeper, Started, WorkerEnd, _worker_at
from workbench.fleet.security import Secrets, made
from workbench.log import open_log, take_over
from workbench.paths import Workspace

HOST = LabHost("alpha", "simulated")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keeper:
    monkeypatch.setattr(keeper, "FIRST_PAUSE_S", 0.01)
    folder = FleetFolder.of(Workspace(tmp_path), "hosts")
    return Keeper(Fleet("hosts", (HOST,)), folder, Secrets("", ""), "tls://[::1]:1", lambda: ())


def told(kept: Keeper) -> HostStanding:
    """Of the host once it was lost twice."""

    async def whole() -> None:
        keeping = asyncio.create_task(kept.keep(HOST))
        async with asyncio.timeout(10.0):
            while kept.standing.hosts[0].starts < 2:  # noqa: ASYNC110 - nothing rings a bell
                await asyncio.sleep(0.01)
        assert not keeping.done()
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)

    asyncio.run(whole())
    return kept.standing.hosts[0]


def test_a_failure_that_nobody_thought_of_is_a_lost_host(
    kept: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def once(*_: object) -> str:
        raise ImportError("No module named\n'dask_jobqueue'")

    monkeypatch.setattr(kept, "_once", once)
    host = told(kept)
    assert (host.state, host.note) == ("lost", "ImportError: No module named·'dask_jobqueue'")


class NeverSpeaks:
    async def readline(self) -> bytes:
        await asyncio.sleep(60.0)
        return b""

    async def read(self, most: int) -> bytes:
        del most
        return await self.readline()


def test_the_limit_that_has_passed_is_the_one_that_is_named(
    kept: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object) -> Any:
        return None

    @asynccontextmanager
    async def here(_: LabHost) -> AsyncIterator[Started]:
        yield Started(NeverSpeaks(), nothing, lambda: None, nothing, lambda: wrote)

    monkeypatch.setattr(kept, "_here", here)
    wrote = ""
    monkeypatch.setattr(keeper, "STARTING_S", 0.05)
    assert told(kept).note == "did not say within 0.05 s that it is up"
    wrote, again = "Connection refused", HostStanding("alpha", "starting")
    kept.standing = keeper.with_host(kept.standing, again)
    assert told(kept).note == (
        "did not say within 0.05 s that it is up; the last that it wrote: Connection refused"
    )
    monkeypatch.setattr(keeper, "expired", lambda _: "2026-11-01 10:00 UTC")
    kept.standing = keeper.with_host(kept.standing, again)
    assert told(kept).note == (
        "the fleet's certificate expired on 2026-11-01 10:00 UTC: "
        "end it with `workbench fleet down`"
    )


async def test_what_a_worker_wrote_so_far_is_known_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one that SSH has begun from its stream, of one here from its file."""
    pieces = [b"one\ntw", b"o \x1b[2J words\n"]
    all_read = asyncio.Event()

    async def read(_: int) -> bytes:
        if pieces:
            return pieces.pop(0)
        all_read.set()
        await asyncio.sleep(60.0)
        return b""

    async def create_process(*_: object, **__: object) -> Any:
        return SimpleNamespace(stderr=SimpleNamespace(read=read), stdout=None, stdin=None)

    connection: Any = SimpleNamespace(create_process=create_process, abort=lambda: None)
    async with asyncio.timeout(20.0), _worker_at(connection, HOST, "mine") as worker:
        await all_read.wait()
        assert worker.last() == "two ·[2J words"

    wrote = tmp_path / "alpha.err"
    assert keeper.last_line_in(wrote) == ""
    wrote.write_bytes(b"x" * 10_000 + b"\nthe last\n\n - INFO - -----------\n")
    assert keeper.last_line_in(wrote) == "the last"


def test_nothing_of_the_private_key_is_told(kept: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.secrets = made()

    async def once(*_: object) -> str:
        return f"ended with exit code 1: ValueError: {kept.secrets.key!r} {'/opt/workbench' * 3}"

    monkeypatch.setattr(kept, "_once", once)
    note = told(kept).note
    lines = kept.secrets.key.splitlines()[1:-1]
    assert not any(line[at : at + 16] in note for line in lines for at in range(len(line) - 15))
    assert note.startswith("ended with exit code 1: ValueError: '-----BEGIN PRIVATE KEY-----")
    assert note.endswith("/opt/workbench" * 3)


async def test_a_host_that_does_not_say_how_its_worker_ended_has_not_failed_to_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def create_process(*_: object, **__: object) -> Any:
        return SimpleNamespace(stderr=NeverSpeaks(), stdout=NeverSpeaks(), stdin=None)

    monkeypatch.setattr(keeper, "GRACE_S", 0.05)
    connection: Any = SimpleNamespace(create_process=create_process, abort=lambda: None)
    async with _worker_at(connection, HOST, "mine") as worker:
        assert await worker.ended() == WorkerEnd(None)


def test_what_a_worker_of_before_wrote_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "MOST_KEPT", 6)
    for text in (b"why the first ended", b"second", b""):
        with keeper.opened_errors(tmp_path / "alpha.err") as errors:
            errors.write(text)
    kept = tmp_path / "alpha.err.before"
    assert kept.read_bytes() == b"second"
    with keeper.opened_errors(tmp_path / "alpha.err"):
        assert kept.read_bytes() == b"second"  # one that wrote nothing has no more to say


def test_what_dask_logs_is_in_the_file_and_not_on_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its client's own handler writes to the terminal whatever its parent is set to."""
    name = "a_library_of_the_fleet"
    loud = logging.getLogger(f"{name}.client")
    loud.addHandler(logging.StreamHandler())
    loud.propagate = False
    close = open_log(tmp_path / "commands.log")
    take_over(name)
    loud.error("Failed to reconnect")
    close()
    assert capfd.readouterr().err == ""
    assert "Failed to reconnect" in (tmp_path / "commands.log").read_text()
