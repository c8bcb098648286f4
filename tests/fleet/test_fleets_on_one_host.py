"""Two fleets that have the same host: it measures for one of them at a time, and the other is told.

Each has its own folder and worker there, as fleets of two workspaces or two users have.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest
from test_central_planning import FEW, RUN
from test_dispatch_shares import FakeClient

from workbench import plugins
from workbench.descriptors.loading import load_campaign
from workbench.domain.fleets import LabHost, ShardOrder
from workbench.domain.parameters import OperatingPoint
from workbench.engine.core import Engine
from workbench.fleet import tasks
from workbench.fleet.dispatch import Dispatch
from workbench.fleet.host_engine import HostEngine
from workbench.fleet.ledger import Ledger
from workbench.labs.base import OnUsage
from workbench.labs.simulated import SimulatedLab
from workbench.measuring.records import Drive
from workbench.paths import Workspace
from workbench.sampling.shards import beginning, split


class LoadingLab(SimulatedLab):
    """Simulated, but for what it says of itself: it loads the host; until `go` nobody ends."""

    name = "loading"
    driving: ClassVar[int] = 0
    most: ClassVar[int] = 0
    go: ClassVar[asyncio.Event]

    async def drive(self, point: OperatingPoint, seconds: float, on_usage: OnUsage) -> Drive:
        LoadingLab.driving += 1
        LoadingLab.most = max(LoadingLab.most, LoadingLab.driving)
        try:
            await LoadingLab.go.wait()
            return await super().drive(point, seconds, on_usage)
        finally:
            LoadingLab.driving -= 1


class OneWorker(FakeClient):
    """The scheduler of a fleet, at which one host in this process is."""

    def __init__(self, host: HostEngine) -> None:
        super().__init__("")
        self.host = host

    async def identity(self, n_workers: int) -> dict[str, Any]:
        del n_workers
        worker = {"resources": {"lab": 1}, "last_seen": time.time(), "name": "lab-a"}
        return {"workers": {"tls://lab-a": worker}}

    async def run(self, work: Any, argument: Any, **_: Any) -> dict[str, Any]:
        return {"tls://lab-a": await self._as_host(work, argument)}

    async def _answer(self, work: str, argument: bytes, address: str) -> Any:
        return await self._as_host(getattr(tasks, work), argument)

    async def _as_host(self, work: Any, argument: Any) -> Any:
        tasks.be(self.host)  # looked at before whatever the work waits for
        return await work(argument)


def test_two_fleets_on_one_host_measure_in_turns_and_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered = dict(plugins._found("labs"))
    registered["loading"] = EntryPoint(
        "loading", "test_fleets_on_one_host:LoadingLab", "workbench.labs"
    )
    found = plugins._found
    monkeypatch.setattr(
        plugins, "_found", lambda group: registered if group == "labs" else found(group)
    )
    monkeypatch.setattr(LoadingLab, "driving", 0)
    monkeypatch.setattr(LoadingLab, "most", 0)
    monkeypatch.setattr(LoadingLab, "go", None, raising=False)
    monkeypatch.setattr("workbench.fleet.host_waits.FIRST_S", 0.05)
    monkeypatch.setattr("workbench.fleet.host_waits.AGAIN_S", 0.05)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "c.yaml").write_text(FEW.replace("lab: sim", ""))
    campaign = load_campaign(str(tmp_path / "c.yaml"), workspace=Workspace(tmp_path)).campaign
    shard = split(beginning(campaign), 2, size=1, **{**RUN, "lab": "loading"})[0]

    async def both() -> list[str]:
        said: list[str] = []
        LoadingLab.go = asyncio.Event()
        told = asyncio.Event()

        def tell(text: str) -> None:
            said.append(text)
            if "waits for its turn" in text:
                told.set()

        async with AsyncExitStack() as stack:
            stack.callback(tasks.be, None)
            runs = []
            for name in ("one", "other"):
                engine = Engine(Workspace(tmp_path / name))
                await engine.start()
                stack.push_async_callback(engine.close)
                host = HostEngine(engine, LabHost("lab-a", "ssh", lab="loading"))
                client: Any = OneWorker(host)
                ledger = Ledger(tmp_path / f"kept-{name}", {"lab-a": host.exports})
                dispatch = Dispatch(client, [ShardOrder(name, shard, ())], {}, ledger, tell)
                dispatch.hosts = {"lab-a": host.host}
                runs.append(dispatch)
            began = time.monotonic()
            measuring = asyncio.gather(*(dispatch.run() for dispatch in runs))
            await asyncio.wait_for(told.wait(), 60.0)
            await asyncio.sleep(2.0)
            LoadingLab.go.set()
            await measuring
            took_s = time.monotonic() - began
            assert [len(dispatch.gathered) for dispatch in runs] == [1, 1]
            walls = [found.wall_s for run in runs for found in run.gathered.values()]
            assert max(walls) > 2.0
            assert sum(walls) < took_s + 1.5, "who waits for its turn measures nothing meanwhile"
        return said

    said = asyncio.run(both())
    assert LoadingLab.most == 1
    waits = [text for text in said if "waits for its turn" in text]
    (text,) = set(waits)
    first = next(name for name in ("one", "other") if f"{name}.{shard.key}" in text)
    assert text.startswith(f"lab-a waits for its turn there: {first}.{shard.key} (")
    assert str(tmp_path / first) in text
    assert text.endswith(" measures first")
