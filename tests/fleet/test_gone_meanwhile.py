"""What goes away between a look at it and its use: a keeper, a scheduler, a session."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_dispatch_shares import FakeClient

from workbench.domain.fleets import Fleet, LabHost
from workbench.fleet.dispatch import Dispatch, SchedulerLost
from workbench.fleet.fleet_runs import go_down
from workbench.fleet.fleet_standing import FleetFolder, FleetStanding, is_keeper
from workbench.fleet.ledger import Ledger
from workbench.fleet.security import Secrets
from workbench.paths import Workspace
from workbench.store.many_sessions import remembered

HOST = LabHost("alpha", "simulated")


@pytest.fixture
def ended() -> int:
    """The number of a process that is not there any more."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


def test_a_keeper_that_ends_before_it_is_told_to_is_down(
    ended: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(tmp_path)
    folder = FleetFolder.of(workspace, "hosts")
    folder.write(
        FleetStanding(Fleet("hosts", (HOST,)), ended, "tls://127.0.0.1:1", Secrets("", ""))
    )
    assert not is_keeper(ended)
    assert folder.read() is None
    # As it was when it was looked at.
    monkeypatch.setattr("workbench.fleet.fleet_standing.is_keeper", lambda _: True)
    assert asyncio.run(go_down(workspace, "hosts"))


def test_a_scheduler_that_a_client_has_given_up_is_lost(tmp_path: Path) -> None:
    client: Any = FakeClient("")
    client.scheduler = None
    dispatch = Dispatch(client, (), {}, Ledger(tmp_path, {}), lambda _: None)
    dispatch.hosts = {"alpha": HOST}
    with pytest.raises(SchedulerLost, match="the connection to it has ended"):
        asyncio.run(dispatch.run())


def test_a_session_that_is_removed_while_all_are_listed_is_none(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.sessions.mkdir()
    (workspace.sessions / "gone.duckdb").symlink_to(tmp_path / "nowhere")  # listed, and not there
    folder, problems = remembered(workspace)
    assert problems == ()
    assert not list(folder.iterdir())
