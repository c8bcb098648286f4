"""The workspace is moved or removed while a campaign is measured: nothing is made in its place."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from workbench.domain.fleets import Fleet, LabHost
from workbench.fleet import fleet_lifecycle, fleet_runs, keeper
from workbench.fleet.fleet_standing import FleetError, FleetFolder, SameFolder
from workbench.fleet.leases import Leases
from workbench.fleet.security import Secrets
from workbench.paths import Workspace

FLEET = Fleet("hosts", (LabHost("alpha", "simulated"),))


def test_a_folder_that_is_made_anew_is_another_one(tmp_path: Path) -> None:
    there = tmp_path / "w"
    there.mkdir()
    began = SameFolder.of(there)
    began.must_be_there()
    there.rename(tmp_path / "moved")
    with pytest.raises(FleetError, match="moved, removed or replaced") as gone:
        began.must_be_there()
    assert gone.value.where == str(there)
    there.mkdir()
    with pytest.raises(FleetError, match="moved, removed or replaced"):
        began.must_be_there()
    there.rmdir()
    (tmp_path / "moved").rename(there)
    began.must_be_there()


async def test_no_engine_is_started_where_the_workspace_was(tmp_path: Path) -> None:
    there, asked = tmp_path / "w", list[str]()

    async def connect() -> Any:
        asked.append("")
        there.mkdir(exist_ok=True)

    connected = fleet_runs._in_place(Workspace(there), connect)
    await connected()
    there.rename(tmp_path / "moved")
    with pytest.raises(FleetError, match="moved, removed or replaced"):
        await connected()
    assert len(asked) == 1
    assert not there.exists()


async def test_a_keeper_starts_no_worker_where_the_workspace_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    def here(_: keeper.Keeper, host: LabHost) -> Any:
        started.append(host.name)
        raise OSError("ended at once")

    monkeypatch.setattr(keeper.Keeper, "_here", here)
    monkeypatch.setattr(keeper, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(keeper, "LONGEST_PAUSE_S", 0.002)
    there = tmp_path / "w"
    folder = FleetFolder.of(Workspace(there), "hosts")
    keeping = keeper.Keeper(FLEET, folder, Secrets("", ""), "tls://[::1]:1", tuple)
    there.rename(tmp_path / "moved")
    task = asyncio.create_task(keeping.keep(FLEET.hosts[0]))
    async with asyncio.timeout(10.0):
        while keeping.standing.hosts[0].starts < 3:  # noqa: ASYNC110 - it rings no bell
            await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert str(folder.root) in keeping.standing.hosts[0].note
    assert not started
    assert not there.exists()


async def test_a_campaign_that_ends_makes_nothing_where_the_workspace_was(tmp_path: Path) -> None:
    there, said = tmp_path / "w", list[str]()
    folder = FleetFolder.of(Workspace(there), "hosts")
    with Leases(folder.leases).contending("s"):
        there.rename(tmp_path / "moved")
    await fleet_lifecycle.end_after(Workspace(there), FLEET, said.append)
    assert not there.exists()
    assert not said


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ("2026-11-29 02:35:08,142 - distributed.scheduler - INFO - Registering\n", "not say why."),
        (
            "2026-11-29 02:35:08,142 - distributed.core - ERROR - No room\n"
            "2026-11-29 02:35:09,142 - distributed.scheduler - INFO - Retire\n",
            "has ended: No room.",
        ),
        ("Traceback:\nOSError: [Errno 99] Cannot\n\n", "has ended: OSError: [Errno 99] Cannot."),
    ],
)
def test_what_is_no_trouble_is_no_cause_of_a_keepers_end(
    tmp_path: Path, left: str, said: str
) -> None:
    folder = FleetFolder(tmp_path)
    (tmp_path / "keeper.err").write_text(left)
    folder.log.touch()
    told = str(fleet_lifecycle._keeper_gone(FLEET, folder, "has ended"))
    assert f"{said} See {folder.log}." in told
    folder.log.unlink()
    assert "keeper.log" not in str(fleet_lifecycle._keeper_gone(FLEET, folder, "has ended"))
