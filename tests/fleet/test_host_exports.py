"""A lab host that has measured a shard to its end and cannot write the bundle of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from test_central_planning import FEW, RUN

from workbench.descriptors.loading import load_campaign
from workbench.domain.fleets import LabHost, ShardOrder
from workbench.engine.core import Engine
from workbench.fleet.host_engine import HostEngine
from workbench.paths import Workspace
from workbench.sampling.shards import beginning, split


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
        finally:
            await engine.close()

    asyncio.run(there())
