"""What a lab host answers that was stopped, has measured before, or cannot write a bundle."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from test_central_planning import FEW, RUN

from workbench.descriptors.loading import load_campaign
from workbench.domain.fleets import LabHost, PlannedPoint, ShardOrder
from workbench.domain.messages import RunCampaign
from workbench.engine.core import Engine
from workbench.fleet import tasks
from workbench.fleet.host_engine import HostEngine
from workbench.paths import Workspace
from workbench.sampling.shards import beginning, going_on, split
from workbench.store.bundle import is_whole


def test_a_stop_that_comes_before_the_engine_has_answered_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(FEW)
    campaign = load_campaign(str(tmp_path / "c.yaml"), workspace=Workspace(tmp_path)).campaign
    order = ShardOrder("s", split(beginning(campaign), 2, size=1, **RUN)[0], (), pace=0.1)

    async def there() -> None:
        engine = Engine(Workspace(tmp_path))
        await engine.start()
        try:
            host = HostEngine(engine, LabHost("one", "simulated"))
            ask = host._client.ask

            async def stopped_meanwhile(request: Any) -> Any:
                if isinstance(request, RunCampaign):
                    await host.stop([order.session])
                return await ask(request)

            host._client.ask = stopped_meanwhile  # type: ignore[method-assign]
            found = await asyncio.wait_for(host.measure(order), 30.0)
            assert (found.taken, found.is_measured) == (0, False)
            # Aborted, or stopped where its turn had not come.
            assert found.failure.startswith("its run is ")  # no key, and no session called by one
            assert found.failure.endswith(("aborted", "stopped"))
        finally:
            await engine.close()

    asyncio.run(there())


def test_a_stop_that_comes_while_a_session_is_read_ends_what_goes_on_with_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "c.yaml").write_text(FEW)
    campaign = load_campaign(str(tmp_path / "c.yaml"), workspace=Workspace(tmp_path)).campaign
    shard = split(beginning(campaign), 2, size=1, **RUN)[0]
    points = (PlannedPoint(campaign.configurations(shard.campaign.targets[0])[0], 300.0),)
    more = ShardOrder("s", going_on(shard, points), (), pace=0.1, points=points, goes_on=shard.key)

    async def there() -> None:
        engine = Engine(Workspace(tmp_path))
        await engine.start()
        try:
            host = HostEngine(engine, LabHost("one", "simulated"))
            assert not (await host.measure(ShardOrder("s", shard, ()))).failure
            view = host._view

            async def stopped_meanwhile(session: str) -> Any:
                await host.stop([session])
                return await view(session)

            host._view = stopped_meanwhile  # type: ignore[method-assign]
            found = await asyncio.wait_for(host.measure(more), 30.0)
            assert found.taken == 0
            assert found.failure.startswith("its run is ")
        finally:
            await engine.close()

    asyncio.run(there())


def test_planned_points_count_alike_whichever_request_measured_them(tmp_path: Path) -> None:
    """As where the host or the command was lost before the answer was kept."""
    (tmp_path / "c.yaml").write_text(FEW)
    campaign = load_campaign(str(tmp_path / "c.yaml"), workspace=Workspace(tmp_path)).campaign
    shard = split(beginning(campaign), 2, size=1, **RUN)[0]
    configuration = campaign.configurations(shard.campaign.targets[0])[0]

    def more(*loads: float) -> ShardOrder:
        points = tuple(PlannedPoint(configuration, wl) for wl in loads)
        return ShardOrder("s", going_on(shard, points), (), points=points, goes_on=shard.key)

    async def there() -> None:
        engine = Engine(Workspace(tmp_path))
        await engine.start()
        try:
            host = HostEngine(engine, LabHost("one", "simulated"))
            begun = await host.measure(ShardOrder("s", shard, ()))
            first = await host.measure(more(200.0, 300.0))
            assert (first.failure, first.samples, first.taken) == ("", 2, 2)
            again = await host.measure(more(200.0, 300.0))
            assert (again.failure, again.samples, again.taken) == ("", 2, 0)
            assert again.lab_s == pytest.approx(first.lab_s)
            in_part = await host.measure(more(300.0, 400.0))
            assert (in_part.failure, in_part.samples, in_part.taken) == ("", 2, 1)
            assert in_part.lab_s == pytest.approx(first.lab_s, rel=0.5)
            before = await host.measure(ShardOrder("s", shard, ()))
            assert (before.samples, before.taken) == (begun.samples, 0) == (2, 0)
            assert before.lab_s == pytest.approx(begun.lab_s)
        finally:
            await engine.close()

    asyncio.run(there())


def test_what_is_measured_and_not_exported_is_told_as_measured(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(FEW)
    campaign = load_campaign(str(tmp_path / "c.yaml"), workspace=Workspace(tmp_path)).campaign
    order = ShardOrder("s", split(beginning(campaign), 2, size=1, **RUN)[0], ())

    async def there() -> None:
        engine = Engine(Workspace(tmp_path))
        await engine.start()
        try:
            host = HostEngine(engine, LabHost("one", "simulated"))
            host.exports.parent.mkdir(parents=True, exist_ok=True)
            host.exports.write_text("")  # where the folder is to be
            found = await host.measure(order)
            assert found.is_measured
            assert "its bundle cannot be written there" in found.failure
            assert "the session itself is kept" in found.failure
            host.exports.unlink()
            again = await host.measure(order)
            assert (again.failure, again.is_measured) == ("", False)
            assert (again.samples, again.taken) == (2, 0)

            # A bundle of which the disk has lost some is exported again.
            (Path(again.place) / "samples.parquet").write_bytes(b"")
            assert not is_whole(Path(again.place), again.digest)
            mended = await host.found(order.shard.key, order.session)
            assert mended is not None
            assert is_whole(Path(mended.place), mended.digest)
            shutil.rmtree(mended.place)
            assert tasks.piece_of(Path(mended.place), 0) == {}  # which is asked for again
        finally:
            await engine.close()

    asyncio.run(there())
