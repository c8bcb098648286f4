"""A lab host is checked as `doctor` does before it takes part."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.domain.errors import LabError, PluginUnknown
from workbench.domain.fleets import LabHost
from workbench.domain.lab import Check
from workbench.fleet.lab_worker import must_be_able


async def test_a_host_whose_lab_cannot_measure_is_refused_with_what_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    with pytest.raises(
        LabError, match="the lab docker cannot measure there: docker engine"
    ) as told:
        await must_be_able(LabHost("alpha", "ssh", lab="docker"))
    assert told.value.where == "alpha"
    with pytest.raises(PluginUnknown, match="nothing is registered as 'dokcer'"):
        await must_be_able(LabHost("alpha", "ssh", lab="dokcer"))


async def test_a_host_that_takes_the_campaigns_lab_is_not_asked_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    async def examine(name: str) -> tuple[Check, ...]:
        asked.append(name)
        return (Check("cores", "warning", "few"),)

    monkeypatch.setattr("workbench.fleet.lab_worker.examine_lab", examine)
    await must_be_able(LabHost("alpha", "ssh"))
    await must_be_able(LabHost("alpha", "simulated", lab="sim"))
    assert asked == []
    await must_be_able(LabHost("alpha", "ssh", lab="netns:noise=0"))
    assert asked == ["netns"], "and a warning keeps nobody away"
