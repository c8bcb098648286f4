"""A worker that somebody else keeps, and the fleets that share it: none changes another's lab."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from test_central_planning import FEW, RUN
from test_dispatch_shares import FakeClient

from workbench.descriptors.loading import load_campaign
from workbench.domain.fleets import LabHost, ShardOrder
from workbench.engine.core import Engine
from workbench.fleet import tasks
from workbench.fleet.dispatch import Dispatch
from workbench.fleet.folding import read_piece
from workbench.fleet.host_engine import HostEngine
from workbench.fleet.ledger import Ledger
from workbench.paths import Workspace
from workbench.sampling.shards import beginning, split


class SharedWorker(FakeClient):
    """A scheduler at which one worker is, which runs what is submitted in this process."""

    async def identity(self, n_workers: int) -> dict[str, Any]:
        del n_workers
        worker = {"resources": {"lab": 1}, "last_seen": time.time(), "name": "theirs"}
        return {"workers": {"tls://theirs": worker}}

    async def _answer(self, work: str, argument: bytes, address: str) -> Any:
        return await getattr(tasks, work)(argument)


def test_two_fleets_share_a_worker_and_each_measures_with_its_own_lab(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(FEW.replace("lab: sim", ""))
    campaign = load_campaign(str(tmp_path / "c.yaml"), workspace=Workspace(tmp_path)).campaign

    def of_fleet(name: str, lab: str) -> Dispatch:
        run = {**RUN, "run": name, "lab": ""}
        orders = [ShardOrder(name, s, ()) for s in split(beginning(campaign), 2, size=1, **run)]
        local = {"theirs": tmp_path / "exports"}
        ledger = Ledger(tmp_path / f"kept-{name}", local)
        client: Any = SharedWorker("")
        dispatch = Dispatch(client, orders, {}, ledger, lambda _: None)
        dispatch.hosts = {"theirs": LabHost("theirs", "dask", lab=lab)}
        return dispatch

    async def both() -> dict[str, set[str]]:
        engine = Engine(Workspace(tmp_path))
        await engine.start()
        tasks.be(HostEngine(engine, LabHost("theirs", "dask")))
        fleets = {lab: of_fleet(name, lab) for name, lab in (("a", "sim"), ("b", "sim:noise=0"))}
        try:
            await asyncio.gather(*(dispatch.run() for dispatch in fleets.values()))
        finally:
            tasks.be(None)
            await engine.close()
        assert not any(dispatch.set_aside for dispatch in fleets.values())
        return {
            lab: {read_piece(gathered).created.lab for gathered in dispatch.gathered.values()}
            for lab, dispatch in fleets.items()
        }

    found = asyncio.run(both())
    assert found == {lab: {lab} for lab in found}
