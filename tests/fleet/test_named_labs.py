"""Which lab a host of a fleet measures with: one that is named, whatever happens to its engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from test_dispatch_shares import first_shard

from workbench.domain.fleets import LabHost, ShardOrder
from workbench.fleet.host_engine import HostEngine
from workbench.paths import Workspace


@pytest.mark.parametrize(
    ("asked", "of_campaign", "lab"),
    [(None, None, "docker"), (None, "netns", "netns"), ("vm", "netns", "vm")],
)
def test_a_host_whose_engine_went_does_not_simulate_what_others_measure(
    tmp_path: Path, asked: str | None, of_campaign: str | None, lab: str
) -> None:
    """Where nobody names a lab a run takes the simulated one if no engine answers."""
    shard = first_shard(tmp_path)
    shard = replace(shard, campaign=replace(shard.campaign, lab=of_campaign))
    engine = cast(Any, SimpleNamespace(workspace=Workspace(tmp_path)))
    host = HostEngine(engine, LabHost("a", "ssh"))
    assert host._begin(ShardOrder("r", shard, (), asked)).lab == lab
