"""Looks at the hosts of a fleet: twice a second, beside what hands out the shards."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from workbench.domain.fleets import Fleet, LabHost, ShardResult
from workbench.fleet.dispatch import Dispatch
from workbench.fleet.fleet_looks import FleetLooks
from workbench.fleet.fleet_standing import FleetFolder
from workbench.fleet.ledger import Ledger
from workbench.paths import Workspace
from workbench.sampling.shard_times import time_left_s

HOSTS = 64


class Points(float):
    divided = 0

    def __truediv__(self, other: float) -> float:
        type(self).divided += 1
        return float(self) / other


def test_what_is_left_is_told_without_every_shard_for_every_host() -> None:
    rates = {f"h{number}": 1.0 + number for number in range(HOSTS)}
    waiting = [Points(60.0) for _ in range(3 * HOSTS)]
    assert time_left_s(waiting, {}, rates) == pytest.approx(60.0)  # of the slowest, as it begins
    assert Points.divided <= 2 * len(waiting)


class Gone(dict[str, Any]):
    """How often all that is gathered is gone through."""

    times = 0

    def values(self) -> Any:
        self.times += 1
        return super().values()


def test_what_hosts_have_finished_is_counted_in_one_go(tmp_path: Path) -> None:
    names = [f"h{number}" for number in range(HOSTS)]
    fleet = Fleet("hosts", tuple(LabHost(name, "simulated") for name in names))
    looks = FleetLooks(fleet, FleetFolder.of(Workspace(tmp_path), "hosts"), {}, 9)
    looks._anchors = {f"{number}": name for number, name in enumerate(names)}
    looks._noise = dict.fromkeys(names)
    nobody: Any = None
    dispatch = Dispatch(nobody, (), {}, Ledger(tmp_path / "kept", {}), lambda _: None)
    gathered = dispatch.gathered = Gone()
    for number in range(2 * HOSTS):
        result = ShardResult(f"{number}", names[number % HOSTS], "s", samples=3, lab_s=4.0)
        gathered[result.key] = SimpleNamespace(result=result, wall_s=2.0)
    looks.dispatch = dispatch
    seen = asyncio.run(looks.look())
    assert seen is not None
    assert {(h.shards, h.samples, h.lab_s, h.wall_s) for h in seen.hosts} == {(2, 6, 8.0, 4.0)}
    assert gathered.times <= 3
    of_anchors = {(h.anchors, h.anchor_samples, h.anchor_lab_s) for h in seen.hosts}
    assert of_anchors == {(1, 3, 4.0)}
    assert (seen.measured, seen.anchors, seen.anchors_measured) == (2 * HOSTS, HOSTS, HOSTS)
