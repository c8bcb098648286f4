"""A campaign of which shards are missing in the end: what is known of it stays for the rest."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from workbench.descriptors.loading import load_campaign
from workbench.domain.fleets import Fleet, FleetRun, LabHost
from workbench.fleet import fleet_runs
from workbench.fleet.central_planning import FleetRound
from workbench.fleet.fleet_looks import FleetLooks
from workbench.fleet.fleet_runs import FleetOutcome, FleetWork
from workbench.fleet.fleet_standing import FleetFolder
from workbench.fleet.ledger import Ledger, LedgerLine
from workbench.paths import Workspace


@pytest.mark.parametrize("is_whole", [True, False])
def test_who_measured_what_is_kept_until_nothing_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_whole: bool
) -> None:
    workspace, fleet = Workspace(tmp_path), Fleet("hosts", (LabHost("alpha", "simulated"),))
    folder = FleetFolder.of(workspace, "hosts")
    work = FleetWork(
        load_campaign("demo", workspace=workspace), FleetRun("demo"), fleet, workspace, "s", (), {},
        FleetLooks(fleet, folder, {}, 0),
    )  # fmt: skip

    async def measure(_: FleetRound) -> Any:
        Ledger(folder.run("s"), {}).write(LedgerLine("0123", "alpha"))

    async def folded(*_: object) -> tuple[FleetOutcome, Path]:
        (folder.run("s") / "s.duckdb").write_bytes(b"folded")
        outcome = FleetOutcome("s", None, "", 1.0, {}, 3, 0, is_whole)
        return outcome, folder.run("s") / "s.duckdb"

    monkeypatch.setattr(fleet_runs, "_measures", lambda *_: measure)
    monkeypatch.setattr(fleet_runs, "folded_session", folded)
    said: list[str] = []
    asyncio.run(fleet_runs._measured(work, said.append, None))
    assert (tmp_path / "sessions" / "s.duckdb").read_bytes() == b"folded"
    begun = Ledger(folder.run("s"), {}).begun
    assert begun == ({} if is_whole else {"0123": "alpha"})
    assert any("--session s` goes on with what is missing" in line for line in said) != is_whole
