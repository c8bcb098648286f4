"""A workspace that several machines share: whose processes are elsewhere is not taken for ended."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from workbench.domain import codec
from workbench.domain.errors import UsageError
from workbench.domain.fleets import Fleet, LabHost
from workbench.fleet import fleet_lifecycle
from workbench.fleet.fleet_asking import well
from workbench.fleet.fleet_standing import FleetError, FleetFolder, FleetStanding
from workbench.fleet.leases import Contender, Lease, Leases
from workbench.fleet.security import Secrets
from workbench.paths import Workspace
from workbench.probes.process import started
from workbench.probes.this_machine import NOT_SAID, MachineIdentity, this_machine

FLEET = Fleet("hosts", (LabHost("node", "slurm"),))
LOGIN2 = MachineIdentity("login2", this_machine().id, "another-boot")
"""Installed from the same image as this one."""
PID = 2**22 + 1
"""That no process here has."""


@pytest.fixture
def folder(tmp_path: Path) -> FleetFolder:
    """Of a fleet that was started on the other login node."""
    found = FleetFolder.of(Workspace(tmp_path), "hosts")
    found.write(FleetStanding(FLEET, PID, "tls://login2:1", Secrets("", ""), machine=LOGIN2))
    (found.root / "tls").mkdir()
    (found.root / "jobs").mkdir()
    (found.root / "jobs" / "node.job").write_text("7")
    return found


def run_of(folder: FleetFolder, session: str, priority: int = 0) -> None:
    folder.leases.mkdir(exist_ok=True)
    path = folder.leases / f"run-{session}.json"
    path.write_bytes(codec.dumps(codec.to_plain(Contender(session, priority, PID, 1.0, LOGIN2))))


def test_a_fleet_of_another_machine_is_neither_ended_nor_started_again(
    folder: FleetFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cancelled(*_: object) -> None:
        raise AssertionError("its jobs are the other machine's")

    monkeypatch.setattr(fleet_lifecycle, "cancel_left", cancelled)
    workspace = Workspace(tmp_path)
    for asked in (
        fleet_lifecycle.go_down(workspace, FLEET, print),
        fleet_lifecycle.come_up(FLEET, workspace, print),
        fleet_lifecycle.let_end(folder),
    ):
        with pytest.raises(FleetError, match=rf"started on login2 \(process {PID}\)") as refused:
            asyncio.run(asked)
        assert "Give this command on login2" in str(refused.value)
    said: list[str] = []
    asyncio.run(fleet_lifecycle.end_after(workspace, FLEET, said.append))
    assert "was started on login2" in said[0]
    assert folder.last() is not None
    assert (folder.root / "tls").exists()
    assert (folder.root / "jobs" / "node.job").exists()
    assert "only there is known how it is" in asyncio.run(well(FLEET, workspace, "node"))


def test_a_host_that_is_held_from_another_machine_stays_held(folder: FleetFolder) -> None:
    leases, now = Leases(folder.leases), time.time()
    leases.take(Lease("node", "ann", now, pid=os.getpid(), began=1.0, machine=LOGIN2))
    held, over = leases.held()
    assert (list(held), over) == (["node"], ())
    assert held["node"].told == (
        f"held by ann until it is given back on login2 (process {os.getpid()})"
    )
    with pytest.raises(UsageError, match=r"keeps it \(pid \d+ on login2\).*is gone for good"):
        leases.give_back("node", "ann", os.getpid())


def test_a_campaign_of_another_machine_is_there(folder: FleetFolder, tmp_path: Path) -> None:
    leases = Leases(folder.leases)
    run_of(folder, "theirs", priority=5)
    assert leases.refused("mine", ("node",)) == {"node": "theirs on login2 goes first (priority 5)"}
    with (
        pytest.raises(UsageError, match=rf"is measured by process {PID} on login2"),
        leases.contending("theirs"),
    ):
        pass
    folder.clear()
    with pytest.raises(UsageError, match=rf"theirs \(process {PID} on login2\) is measured with"):
        asyncio.run(fleet_lifecycle.go_down(Workspace(tmp_path), FLEET, print))


def test_what_an_earlier_version_wrote_is_of_this_machine(folder: FleetFolder) -> None:
    said = codec.to_plain(FleetStanding(FLEET, PID, "tls://[::1]:1", Secrets("", "")))
    assert isinstance(said, dict)
    del said["machine"]
    (folder.root / "standing.json").write_bytes(codec.dumps(said))
    assert folder.last() is not None
    assert folder.read() is None, "its keeper is gone"
    run = codec.to_plain(Contender("old", 0, os.getpid(), started(os.getpid())))
    assert isinstance(run, dict)
    del run["machine"]
    folder.leases.mkdir()
    (folder.leases / "run-old.json").write_bytes(codec.dumps(run))
    assert [each.is_ours for each in Leases(folder.leases).measuring()] == [True]


def test_a_machine_is_itself_by_another_name_and_after_it_was_started_again() -> None:
    own = this_machine()
    assert own.node
    assert NOT_SAID.is_here
    assert own.is_here
    assert replace(own, boot="before").is_here
    assert replace(own, node="renamed").is_here == bool(own.boot)
    assert not LOGIN2.is_here
