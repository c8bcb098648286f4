"""A fleet is up for as long as somebody uses it, whoever started it."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from workbench.domain import codec
from workbench.domain.errors import UsageError
from workbench.domain.fleets import Fleet, LabHost
from workbench.fleet import fleet_lifecycle, keeper
from workbench.fleet.fleet_standing import FleetError, FleetFolder, FleetStanding, HostStanding
from workbench.fleet.leases import Contender, Leases
from workbench.fleet.security import Secrets
from workbench.paths import Workspace
from workbench.probes.process import started

NOBODY = Fleet("hosts", ())
FLEET = Fleet("hosts", (LabHost("node", "slurm"),))
LONGEST_S = 10.0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FleetFolder:
    """Of a keeper that has no scheduler and looks often."""

    @asynccontextmanager
    async def scheduling(*_: object) -> AsyncIterator[tuple[str, Collection[str]]]:
        yield "tls://[::1]:1", ()

    monkeypatch.setattr(keeper, "_scheduling", scheduling)
    monkeypatch.setattr(keeper, "LOOKING_S", 0.02)
    return FleetFolder.of(Workspace(tmp_path), "hosts")


@contextmanager
def measured(folder: FleetFolder, session: str) -> Iterator[subprocess.Popen[bytes]]:
    """A campaign of another process, which ends with the block."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        own = Contender(session, 0, process.pid, started(process.pid))
        folder.leases.mkdir(parents=True, exist_ok=True)
        path = folder.leases / f"run-{session}.json"
        path.write_bytes(codec.dumps(codec.to_plain(own)))
        yield process


def test_a_command_that_is_killed_as_its_fleet_starts_leaves_none(folder: FleetFolder) -> None:
    with measured(folder, "a"):
        pass  # it is gone before the keeper looks for the first time
    keeping = keeper.keep_fleet(NOBODY, folder, Secrets("", ""))
    asyncio.run(asyncio.wait_for(keeping, LONGEST_S))
    assert folder.last() is None


def test_a_fleet_ends_with_the_last_campaign_unless_it_is_to_stay(folder: FleetFolder) -> None:
    async def whole() -> None:
        with measured(folder, "b"):
            keeping = asyncio.create_task(keeper.keep_fleet(NOBODY, folder, Secrets("", "")))
            with measured(folder, "a"):
                await asyncio.sleep(0.1)
            await asyncio.sleep(0.2)
            assert not keeping.done()
            folder.let_stay(True)
        await asyncio.sleep(0.2)
        assert not keeping.done()
        folder.let_stay(False)
        await asyncio.wait_for(keeping, LONGEST_S)

    asyncio.run(whole())


@pytest.fixture
def ended(folder: FleetFolder, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Keepers that were ended; this process is one, of a fleet whose host is in a queue."""
    found: list[int] = []

    async def end(pid: int) -> None:
        found.append(pid)

    monkeypatch.setattr(fleet_lifecycle, "_end_keeper", end)
    monkeypatch.setattr(fleet_lifecycle, "expired", lambda _: "")
    monkeypatch.setattr("workbench.fleet.fleet_standing.is_keeper", lambda pid: pid == os.getpid())
    stand(folder, "queued")
    return found


def stand(folder: FleetFolder, state: str) -> None:
    host = HostStanding("node", state, "its job 7 waits in the queue of Slurm")  # type: ignore[arg-type]
    folder.write(FleetStanding(FLEET, os.getpid(), "tls://[::1]:1", Secrets("", ""), (host,)))


def test_a_campaign_that_ends_leaves_the_fleet_to_the_others(
    folder: FleetFolder, ended: list[int], tmp_path: Path
) -> None:
    said: list[str] = []
    with Leases(folder.leases).contending("mine"), measured(folder, "b") as process:
        asyncio.run(fleet_lifecycle.end_after(Workspace(tmp_path), FLEET, said.append))
        assert said == [f"the fleet hosts stays up: b (process {process.pid}) is measured with it"]
    folder.let_stay(True)
    asyncio.run(fleet_lifecycle.end_after(Workspace(tmp_path), FLEET, said.append))
    assert (ended, said[1:]) == ([], [])
    folder.let_stay(False)
    asyncio.run(fleet_lifecycle.end_after(Workspace(tmp_path), FLEET, said.append))
    assert ended == [os.getpid()]


def test_a_fleet_does_not_go_down_under_a_campaign(
    folder: FleetFolder, ended: list[int], tmp_path: Path
) -> None:
    folder.let_stay(True)
    with (
        measured(folder, "b") as process,
        pytest.raises(UsageError, match=rf"hosts: b \(process {process.pid}\) is measured with it"),
    ):
        asyncio.run(fleet_lifecycle.go_down(Workspace(tmp_path), FLEET, print))
    assert ended == []
    assert asyncio.run(fleet_lifecycle.go_down(Workspace(tmp_path), FLEET, print))
    assert ended == [os.getpid()]
    assert not folder.stays


def test_what_a_person_brings_up_stays_whoever_started_it(
    folder: FleetFolder, ended: list[int], tmp_path: Path
) -> None:
    del ended
    other = Fleet("hosts", (*FLEET.hosts, LabHost("beta", "simulated")))
    with pytest.raises(UsageError, match="is up with another hosts file"):
        asyncio.run(fleet_lifecycle.come_up(other, Workspace(tmp_path), print))
    assert not folder.stays
    asyncio.run(fleet_lifecycle.come_up(FLEET, Workspace(tmp_path), print))
    assert folder.stays
    asyncio.run(fleet_lifecycle.let_end(folder))
    assert folder.stays, "it is up"
    folder.clear()
    with measured(folder, "b"):
        asyncio.run(fleet_lifecycle.let_end(folder))
        assert folder.stays, "who measures with it starts it again"
    asyncio.run(fleet_lifecycle.let_end(folder))
    assert not folder.stays, "its keeper died: what comes up now is a campaign's"


def test_a_campaign_waits_for_the_queue_of_slurm_and_a_person_does_not(
    folder: FleetFolder, ended: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del ended
    monkeypatch.setattr(fleet_lifecycle, "STARTING_S", 0.15)
    said: list[str] = []

    async def whole() -> None:
        standing = await fleet_lifecycle.come_up(FLEET, Workspace(tmp_path), said.append)
        assert [host.state for host in standing.hosts] == ["queued"]
        assert said == []
        up = fleet_lifecycle.come_up(FLEET, Workspace(tmp_path), said.append, stays=False)
        waiting = asyncio.create_task(up)
        await asyncio.sleep(0.6)
        assert not waiting.done()
        stand(folder, "up")
        assert (await asyncio.wait_for(waiting, LONGEST_S)).any_up
        assert said == ["node: its job 7 waits in the queue of Slurm, and is waited for"]

    asyncio.run(whole())


def test_a_keeper_that_dies_as_it_starts_is_not_waited_for(
    folder: FleetFolder, ended: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del ended
    stand(folder, "starting")
    (folder.root / "keeper.err").write_text("Traceback\nMemoryError\n")
    looks = iter([True] * 3)
    monkeypatch.setattr("workbench.fleet.fleet_standing.is_keeper", lambda _: next(looks, False))
    up = fleet_lifecycle.come_up(FLEET, Workspace(tmp_path), print)
    with pytest.raises(FleetError, match="keeps its hosts up has ended: MemoryError"):
        asyncio.run(asyncio.wait_for(up, LONGEST_S))


def test_a_campaign_that_had_hosts_goes_on_with_a_keeper_that_has_none_yet(
    folder: FleetFolder, ended: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for them itself; one that never had any has a mistake somewhere."""
    del ended
    monkeypatch.setattr(fleet_lifecycle, "STARTING_S", 0.05)
    stand(folder, "lost")

    async def up(had_hosts: bool) -> FleetStanding:
        return await fleet_lifecycle.come_up(
            FLEET, Workspace(tmp_path), print, stays=False, had_hosts=had_hosts
        )

    assert not asyncio.run(up(had_hosts=True)).any_up
    with pytest.raises(FleetError, match="no host came up"):
        asyncio.run(up(had_hosts=False))
