"""What goes away between a look at it and its use: a keeper, a scheduler, a session."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from test_dispatch_shares import FakeClient

from workbench.domain.fleets import Fleet, LabHost
from workbench.fleet.dispatch import Dispatch
from workbench.fleet.fleet_asking import asked, sessions_of_hosts, well
from workbench.fleet.fleet_lifecycle import go_down
from workbench.fleet.fleet_standing import FleetError, FleetFolder, FleetStanding, is_keeper
from workbench.fleet.ledger import Ledger
from workbench.fleet.scheduler_clients import SchedulerLost
from workbench.fleet.security import Secrets
from workbench.fleet.tasks import NoLabHost, list_sessions
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
    assert asyncio.run(go_down(workspace, Fleet("hosts", (HOST,)), lambda _: None))


def test_a_scheduler_that_a_client_has_given_up_is_lost(tmp_path: Path) -> None:
    client: Any = FakeClient("")
    client.scheduler = None
    dispatch = Dispatch(client, (), {}, Ledger(tmp_path, {}), lambda _: None)
    dispatch.hosts = {"alpha": HOST}
    with pytest.raises(SchedulerLost, match="the connection to it has ended"):
        asyncio.run(dispatch.run())


class Late(FakeClient):
    async def identity(self, n_workers: int) -> dict[str, Any]:
        raise TimeoutError


def test_a_scheduler_that_is_late_is_not_said_to_be_gone(tmp_path: Path) -> None:
    client: Any = Late("")
    dispatch = Dispatch(client, (), {}, Ledger(tmp_path, {}), lambda _: None)
    with pytest.raises(SchedulerLost) as told:
        asyncio.run(dispatch.run())
    assert told.value.what == "its scheduler did not answer within 15 s"


STANDING = FleetStanding(
    Fleet("hosts", (HOST, LabHost("beta", "simulated"))), 1, "", Secrets("", "")
)


def client_is(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def connected(_: FleetStanding) -> AsyncIterator[Any]:
        yield client

    monkeypatch.setattr("workbench.fleet.fleet_asking.connected", connected)


class Gone(FakeClient):
    async def identity(self, n_workers: int) -> dict[str, Any]:
        raise ConnectionResetError("in <TLS>: Stream is closed")


def test_a_scheduler_that_is_gone_while_hosts_are_asked_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client: Any = Gone("")
    client_is(client, monkeypatch)
    with pytest.raises(FleetError, match=r"hosts: its scheduler answers no more: in <TLS>"):
        asyncio.run(asked(STANDING, list_sessions))
    client.scheduler = None
    with pytest.raises(FleetError, match="the connection to it has ended"):
        asyncio.run(asked(STANDING, list_sessions))


class BetaIsSilent(FakeClient):
    async def run(self, work: Any, *, on_error: str, workers: list[str]) -> dict[str, Any]:
        (address,) = workers
        await asyncio.sleep(60.0 if address == "tls://beta" else 0.0)
        return {address: b"[]"}


def test_a_host_that_does_not_answer_keeps_no_other_s_answer_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client_is(BetaIsSilent(""), monkeypatch)
    monkeypatch.setattr("workbench.fleet.fleet_asking.ANSWER_S", 0.1)
    found = asyncio.run(asked(STANDING, list_sessions))
    assert found["alpha"] == b"[]"
    assert isinstance(found["beta"], TimeoutError)
    assert found.keys() == {"alpha", "beta"}  # and nobody who is not of this fleet


def test_what_one_host_answers_wrongly_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer of another version, an error, none in time, and one that is right."""
    names = ("old", "bare", "slow", "good", "gone")
    fleet = Fleet("hosts", tuple(LabHost(name, "dask") for name in names))
    folder = FleetFolder.of(Workspace(tmp_path), "hosts")
    folder.write(FleetStanding(fleet, 1, "", Secrets("", "")))
    monkeypatch.setattr("workbench.fleet.fleet_standing.is_keeper", lambda _: True)

    async def answers(*_: object) -> dict[str, Any]:
        bare = NoLabHost("this worker measures nothing")
        return {"old": b'[{"nome": 1}]', "bare": bare, "slow": TimeoutError(), "good": b"[]"}

    monkeypatch.setattr("workbench.fleet.fleet_asking.asked", answers)
    found = asyncio.run(sessions_of_hosts(fleet, Workspace(tmp_path)))
    assert found["good"] == ()
    assert "it answers what cannot be read" in found["old"]
    assert found["bare"] == "it does not answer: this worker measures nothing"
    assert found["slow"] == "it does not answer within 15 s"
    assert found["gone"] == "it does not answer"
    assert asyncio.run(well(fleet, Workspace(tmp_path), "bare")) == found["bare"]


def test_a_session_that_is_removed_while_all_are_listed_is_none(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.sessions.mkdir()
    (workspace.sessions / "gone.duckdb").symlink_to(tmp_path / "nowhere")  # listed, and not there
    folder, problems = remembered(workspace)
    assert problems == ()
    assert not list(folder.iterdir())
