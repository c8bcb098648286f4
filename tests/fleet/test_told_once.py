"""What is told of a host: its clock where that has changed, its lab before it is needed."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest
from test_dispatch_shares import FakeClient
from test_fetched_bundles import GOOD, Sends
from test_late_hosts import HOSTS, dispatch_of, orders_of

from workbench.domain.fleets import LabHost
from workbench.engine.sessions.clock import now
from workbench.store.bundle import MANIFEST

DIGEST = hashlib.sha256(GOOD[MANIFEST]).hexdigest()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.005)


class WrongClocks(Sends):
    """All its hosts have the same clock."""

    ahead_s = 3600.0

    async def _answer(self, work: str, argument: Any, address: str) -> Any:
        if work == "tell_time":
            return now() + self.ahead_s
        return await super()._answer(work, argument, address)


def test_a_clock_is_told_once_for_each_host_and_change_in_however_many_rounds(
    tmp_path: Path,
) -> None:
    client, said, before = WrongClocks(GOOD, DIGEST), list[str](), None
    for number, client.ahead_s in enumerate((3600.0, 3600.0, 3601.0, -60.0, 0.0, 0.0)):
        dispatch = dispatch_of(tmp_path, client, orders_of(tmp_path, f"{number}"), {})
        dispatch._tell = said.append
        dispatch.hosts = {"alpha": LabHost("alpha", "simulated")}
        if before is not None:
            dispatch.carry_on(before)
        asyncio.run(asyncio.wait_for(dispatch.run(), 30.0))
        moved = [each.ahead_s for each in dispatch.gathered.values()]
        assert moved[-1] == pytest.approx(client.ahead_s, abs=1.0)
        before = dispatch
    told = [text.partition(";")[0] for text in said if "its clock is" in text]
    assert told == [
        "alpha: its clock is 60.0 min ahead",
        "alpha: its clock is 60 s behind",
        "alpha: its clock is right again",
    ]


class BetaHasAll(FakeClient):
    """Beta measures all there is until something is said of alpha, which comes later."""

    def __init__(self) -> None:
        super().__init__("")
        self.told = asyncio.Event()

    async def identity(self, n_workers: int) -> dict[str, Any]:
        found = await super().identity(n_workers)
        if not self.measured:
            del found["workers"]["tls://alpha"]
        return found

    async def _answer(self, work: str, argument: bytes, address: str) -> Any:
        if work == "see_lab" and address == "tls://alpha":
            return "the lab docker cannot measure there: engine: not found"
        if work == "measure_shard":
            self.measured.append(address)
            await asyncio.wait_for(self.told.wait(), 2.0)
        return await super()._answer(work, argument, address)

    async def run(self, work: Any, argument: Any, *, workers: list[str], **_: Any) -> Any:
        del work, argument
        return dict.fromkeys(workers, "")


def test_a_lab_that_cannot_measure_is_told_while_others_have_all_shards(tmp_path: Path) -> None:
    """Else its host would be named once one of them comes back, and that fails there."""
    client, said = BetaHasAll(), list[str]()
    dispatch = dispatch_of(tmp_path, client, orders_of(tmp_path)[:1], {})
    dispatch.hosts = {host: LabHost(host, "ssh") for host in HOSTS}

    def tell(text: str) -> None:
        said.append(text)
        if text.startswith("alpha gets no work: the lab docker cannot measure there"):
            client.told.set()

    dispatch._tell = tell
    asyncio.run(asyncio.wait_for(dispatch.run(), 30.0))
    assert client.told.is_set()
    assert set(client.measured) == {"tls://beta"}
