"""A lab host is checked as `doctor` does before it takes part."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from workbench.domain.errors import LabError, PluginUnknown
from workbench.domain.fleets import LabHost
from workbench.domain.lab import Check
from workbench.fleet import lab_worker, tasks
from workbench.fleet.host_engine import HostEngine
from workbench.fleet.lab_checks import must_be_able


async def test_a_host_whose_lab_cannot_measure_is_refused_with_what_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    with pytest.raises(
        LabError, match="the lab docker cannot measure there: docker engine"
    ) as told:
        await must_be_able("docker", "alpha")
    assert told.value.where == "alpha"
    with pytest.raises(PluginUnknown, match="nothing is registered as 'dokcer'"):
        await must_be_able("dokcer", "alpha")


@pytest.mark.parametrize(
    ("host", "seen"),
    [
        (LabHost("alpha", "ssh"), []),
        (LabHost("alpha", "simulated", lab="sim"), []),
        (LabHost("alpha", "ssh", lab="netns:noise=0"), ["netns"]),
    ],
)
async def test_a_worker_looks_at_the_lab_that_its_hosts_file_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: LabHost, seen: list[str]
) -> None:
    """A warning keeps nobody away."""
    asked: list[str] = []

    async def examine(name: str) -> tuple[Check, ...]:
        asked.append(name)
        return (Check("cores", "warning", "few"),)

    class Begun(Exception):
        pass

    def begun(*_: object) -> Any:
        raise Begun

    monkeypatch.setattr("workbench.fleet.lab_checks.examine_lab", examine)
    monkeypatch.setattr(lab_worker, "_hung_up", asyncio.Event)
    monkeypatch.setattr(lab_worker, "serving", begun)
    with pytest.raises(Begun):
        await lab_worker.work(SimpleNamespace(host=host, folder=str(tmp_path)))  # type: ignore[arg-type]
    assert asked == seen


async def test_the_campaign_s_lab_is_looked_at_before_the_first_shard_and_may_start_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    lacks = ["not found"] * 2

    async def examine(name: str) -> tuple[Check, ...]:
        asked.append(name)
        return (Check("engine", "missing" if lacks else "ok", lacks.pop() if lacks else "there"),)

    monkeypatch.setattr("workbench.fleet.lab_checks.examine_lab", examine)
    monkeypatch.setattr("workbench.fleet.host_engine.ABLE_PAUSE_S", 0.01)
    nothing: Any = SimpleNamespace(workspace=None)
    tasks.be(HostEngine(nothing, LabHost("alpha", "dask")))
    try:
        assert [await tasks.see_lab(lab) for lab in ("docker", "docker:cores=2")] == ["", ""]
        assert asked == ["docker"] * 3
        lacks[:] = ["not found"] * 9
        monkeypatch.setattr("workbench.fleet.host_engine.ABLE_S", 0.0)
        why = "the lab netns cannot measure there: engine: not found"
        assert await tasks.see_lab("netns") == why
    finally:
        tasks.be(None)
