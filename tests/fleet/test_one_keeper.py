"""A fleet has one keeper, whoever starts it at the same time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from workbench.domain.errors import LabGone, UsageError
from workbench.domain.fleets import Fleet, LabHost
from workbench.fleet import fleet_lifecycle, keeper, lab_worker, slurm_jobs
from workbench.fleet.fleet_standing import FleetError, FleetFolder, FleetStanding, HostStanding
from workbench.fleet.security import Secrets
from workbench.paths import Workspace

FLEET = Fleet("hosts", (LabHost("alpha", "simulated"),))


def test_of_two_commands_that_start_a_fleet_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the other takes it, or is told that it is up with other hosts."""
    workspace = Workspace(tmp_path)
    started: list[Fleet] = []

    async def start(fleet: Fleet, _: Workspace, folder: FleetFolder) -> None:
        started.append(fleet)
        await asyncio.sleep(0.2)
        hosts = (HostStanding("alpha", "up"),)
        folder.write(FleetStanding(fleet, os.getpid(), "tls://[::1]:1", Secrets("", ""), hosts))

    monkeypatch.setattr(fleet_lifecycle, "_start_keeper", start)
    monkeypatch.setattr(fleet_lifecycle, "expired", lambda _: "")
    monkeypatch.setattr("workbench.fleet.fleet_standing.is_keeper", lambda pid: pid == os.getpid())
    other = Fleet("hosts", (*FLEET.hosts, LabHost("beta", "simulated")))

    async def both() -> list[Any]:
        up = [fleet_lifecycle.come_up(fleet, workspace, lambda _: None) for fleet in (FLEET, FLEET)]
        last = fleet_lifecycle.come_up(other, workspace, lambda _: None)
        return await asyncio.gather(*up, last, return_exceptions=True)

    one, two, refused = asyncio.run(both())
    assert started == [FLEET]
    assert one == two
    assert isinstance(refused, UsageError)
    assert "is up with another hosts file" in str(refused)


def test_a_second_keeper_ends_with_a_sentence_and_the_first_stays_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def scheduling(*_: object) -> AsyncIterator[tuple[str, Collection[str]]]:
        yield "tls://[::1]:1", ()

    monkeypatch.setattr(keeper, "_scheduling", scheduling)
    monkeypatch.setattr(keeper, "LEAVING_S", 0.3)
    folder = FleetFolder.of(Workspace(tmp_path), "hosts")
    folder.root.mkdir(parents=True)
    folder.let_stay(True)
    standing = folder.root / "standing.json"
    empty = Fleet("hosts", ())

    async def two() -> None:
        first = asyncio.create_task(keeper.keep_fleet(empty, folder, Secrets("", "")))
        async with asyncio.timeout(10.0):
            while not standing.exists():  # noqa: ASYNC110 - a file rings no bell
                await asyncio.sleep(0.01)
            with pytest.raises(FleetError, match=f"another process \\({os.getpid()}\\) already"):
                await keeper.keep_fleet(empty, folder, Secrets("", ""))
        assert standing.exists()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert not standing.exists()
        assert folder.keeping.holder() is None

    asyncio.run(two())


async def test_a_keeper_ends_though_a_host_of_it_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one whose connection breaks as it ends is not started again."""
    monkeypatch.setattr(keeper, "ENDING_S", 0.2)
    fleet = Fleet("hosts", (LabHost("stuck", "ssh"), LabHost("breaks", "ssh")))
    began: list[str] = []

    @asynccontextmanager
    async def over_ssh(host: LabHost, _: str) -> AsyncIterator[Any]:
        began.append(host.name)
        try:
            await asyncio.Event().wait()
            yield
        finally:
            if host.name == "breaks":
                raise LabGone("its SSH connection broke")
            await asyncio.Event().wait()

    monkeypatch.setattr(keeper, "_over_ssh", over_ssh)
    keeping = keeper.Keeper(
        fleet, FleetFolder.of(Workspace(tmp_path), "hosts"), Secrets("", ""), "tls://[::1]:1", tuple
    )
    hosts = {host.name: asyncio.create_task(keeping.keep(host)) for host in fleet.hosts}
    await asyncio.sleep(0.05)
    await asyncio.wait_for(keeper._end_all(hosts), 10.0)
    assert hosts["breaks"].cancelled()
    assert not hosts["stuck"].done()
    assert began == ["stuck", "breaks"]
    hosts["stuck"].cancel()
    await asyncio.gather(*hosts.values(), return_exceptions=True)


def test_a_keeper_that_waits_for_the_one_before_it_waits_longer_than_that_takes_to_end() -> None:
    """Beside Slurm that is a command which runs, and `scancel` after it."""
    assert 2 * slurm_jobs.ASKING_S < keeper.ENDING_S < keeper.LEAVING_S < keeper.STARTING_S


async def test_a_host_of_another_version_is_refused_with_both_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of 0.6.0, which says its version once it is at the scheduler; none stays there."""
    closed: list[str] = []

    @asynccontextmanager
    async def over_ssh(host: LabHost, _: str) -> AsyncIterator[keeper.Started]:
        out = asyncio.StreamReader()
        out.feed_data(b"up 0.6.0\n")

        async def write(_: bytes) -> None:
            pass

        async def ended() -> keeper.WorkerEnd:
            return keeper.WorkerEnd(0)

        try:
            yield keeper.Started(out, write, lambda: None, ended, str)
        finally:
            closed.append(host.name)

    monkeypatch.setattr(keeper, "_over_ssh", over_ssh)
    monkeypatch.setattr(keeper, "__version__", "0.7.0.dev0")
    fleet = Fleet("hosts", (LabHost("lab-a", "ssh"),))
    folder = FleetFolder.of(Workspace(tmp_path), "hosts")
    keeping = keeper.Keeper(fleet, folder, Secrets("", ""), "tls://[::1]:1", tuple)
    task = asyncio.create_task(keeping.keep(fleet.hosts[0]))
    lost = await once_lost(keeping)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert lost.note == ("has workbench 0.6.0, this is 0.7.0.dev0; install the same there")
    assert closed == ["lab-a"]


def test_a_worker_of_another_version_never_comes_to_the_scheduler(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Exited(Exception):
        pass

    def left(code: int) -> None:
        raise Exited(code)

    monkeypatch.setattr(lab_worker, "__version__", "0.7.0")
    monkeypatch.setattr(lab_worker.os, "_exit", left)
    monkeypatch.setattr("sys.argv", ["lab_worker", "owner", "0.7.0.dev0"])
    with pytest.raises(Exited, match="1"):
        lab_worker.main()
    assert capsys.readouterr().out == (
        "down has workbench 0.7.0, this is 0.7.0.dev0; install the same there.\n"
    )


async def test_a_host_that_is_reached_and_begins_no_program_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would start for ever, and nobody would try it again."""

    class Connection:
        async def __aenter__(self) -> Connection:
            return self

        async def __aexit__(self, *_: object) -> None:
            pass

        async def create_process(self, *_: object, **__: object) -> None:
            await asyncio.Event().wait()

    async def connected(_: object) -> Connection:
        return Connection()

    monkeypatch.setattr(keeper, "connect_by_ssh", connected)
    monkeypatch.setattr(keeper, "BEGINNING_S", 0.05)
    fleet = Fleet("hosts", (LabHost("lab-a", "ssh"),))
    folder = FleetFolder.of(Workspace(tmp_path), "hosts")
    keeping = keeper.Keeper(fleet, folder, Secrets("", ""), "tls://[::1]:1", tuple)
    task = asyncio.create_task(keeping.keep(fleet.hosts[0]))
    assert "begins no program within 0.05 s" in (await once_lost(keeping)).note
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def once_lost(keeping: keeper.Keeper) -> HostStanding:
    """The fleet's first host, once its keeper has lost it."""
    async with asyncio.timeout(10.0):
        while keeping.standing.hosts[0].state != "lost":  # noqa: ASYNC110 - it rings no bell
            await asyncio.sleep(0.01)
    return keeping.standing.hosts[0]
