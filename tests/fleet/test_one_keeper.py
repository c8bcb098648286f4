"""A fleet has one keeper, whoever starts it at the same time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from workbench.domain.errors import UsageError
from workbench.domain.fleets import Fleet, LabHost
from workbench.fleet import fleet_lifecycle, keeper
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
