"""A fleet that ends with something that does not: all else ends, and it is told."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from workbench.domain.attaching import SshAddress
from workbench.domain.fleets import Fleet, LabHost
from workbench.fleet import fleet_lifecycle, host_reaping
from workbench.fleet.fleet_lifecycle import go_down
from workbench.fleet.fleet_standing import FleetError, FleetFolder, FleetStanding
from workbench.fleet.host_reaping import HostReaped
from workbench.fleet.security import Secrets
from workbench.paths import Workspace

FAR = LabHost("lab-a", "ssh", address="lab-a.old", port=22)


def test_a_worker_here_that_does_not_end_is_told_and_all_else_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A campaign that is measured is folded after it."""
    workspace, said, reaped = Workspace(tmp_path), list[str](), list[str]()
    folder = FleetFolder.of(workspace, "hosts")
    folder.host("alpha").mkdir(parents=True)
    (folder.root / "tls").mkdir()

    async def hangs(where: Path) -> int:
        raise FleetError("does not end though it was killed", where=str(where))

    async def reaping(host: LabHost, owner: str) -> HostReaped:
        await asyncio.sleep(0.05)
        reaped.append(host.name)
        return HostReaped()

    monkeypatch.setattr(fleet_lifecycle, "end_stray", hangs)
    monkeypatch.setattr(host_reaping, "reaped_over_ssh", reaping)
    assert asyncio.run(go_down(workspace, Fleet("hosts", (FAR,)), said.append)) is False
    assert reaped == ["lab-a"]
    assert not (folder.root / "tls").exists()
    (told,) = said
    assert "does not end though it was killed" in told
    assert str(folder.host("alpha")) in told


def test_a_fleet_that_cannot_go_down_keeps_no_campaign_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: FleetFolder) -> None:
        raise FleetError("is still being started or ended by another process")

    monkeypatch.setattr(fleet_lifecycle, "only_one", refused)
    FleetFolder.of(Workspace(tmp_path), "hosts").root.mkdir(parents=True)
    said: list[str] = []
    asyncio.run(fleet_lifecycle.end_after(Workspace(tmp_path), Fleet("hosts", ()), said.append))
    assert said == ["warning: is still being started or ended by another process."]


@pytest.mark.parametrize(
    ("now", "where"),
    [
        (FAR, []),
        (replace(FAR, address="lab-a.new"), ["lab-a.old:22", "lab-a.new:22"]),
        (replace(FAR, folder="elsewhere"), ["workbench-fleet", "elsewhere"]),
    ],
    ids=["as it was", "address", "folder"],
)
def test_a_worker_is_looked_for_where_it_was_started_and_where_the_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: LabHost, where: list[str]
) -> None:
    workspace, said, reaped = Workspace(tmp_path), list[str](), list[tuple[str, LabHost]]()
    folder = FleetFolder.of(workspace, "hosts")
    ended = FleetStanding(Fleet("hosts", (FAR,)), os.getpid(), "tls://[::1]:1", Secrets("", ""))
    folder.write(ended)

    async def reaping(host: LabHost, owner: str) -> HostReaped:
        reaped.append((owner, host))
        return HostReaped(7)

    monkeypatch.setattr(host_reaping, "reaped_over_ssh", reaping)
    asyncio.run(go_down(workspace, Fleet("hosts", (now,)), said.append))
    assert [host for _, host in reaped] == list(dict.fromkeys((FAR, now)))
    assert {owner for owner, _ in reaped} == {folder.owner("lab-a")}
    for words, told in zip(where, said, strict=bool(where)):
        assert words in told
    assert len(said) == len(reaped)
    if not where:
        assert said == ["lab-a: its worker (process 7) did not end and was killed"]


async def test_many_hosts_that_are_not_reached_end_within_the_time_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All are asked at once, and each is named."""
    hosts = [("owner", LabHost(f"far-{n}", "ssh", address=f"192.0.2.{n}")) for n in range(40)]
    asked, said, all_asked = list[str](), list[str](), asyncio.Event()

    async def silent(address: SshAddress) -> None:
        asked.append(address.name)
        if len(asked) == len(hosts):
            all_asked.set()
        await asyncio.sleep(60.0)

    monkeypatch.setattr(host_reaping, "connect_by_ssh", silent)
    monkeypatch.setattr(host_reaping, "LONGEST_S", 1.0)
    reaping = asyncio.create_task(host_reaping.reap_hosts(hosts, said.append))
    await asyncio.wait_for(all_asked.wait(), 10.0)
    assert said == [], "nobody waited for another to be given up"
    await reaping
    assert sorted(said) == sorted(
        f"{host.name}: what may be left there was not looked at: it did not answer within 1 s"
        for _, host in hosts
    )
