"""Where Docker cannot be made ready the simulated lab stands in, unless it was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar

import pytest
from engine_watching import SMALL, Watched

from workbench import plugins
from workbench.descriptors.loading import load_campaign
from workbench.domain.errors import LabError, UsageError
from workbench.domain.events import Noted
from workbench.domain.lab import Check, HostFacts
from workbench.domain.messages import PlanCampaign, RunAccepted, RunCampaign, StopRun
from workbench.engine.runs import opening
from workbench.engine.runs.opening import is_users_own
from workbench.labs.simulated import SimulatedLab
from workbench.link.socket import SocketClient
from workbench.paths import Workspace

pytestmark = pytest.mark.asyncio(loop_scope="module")


class EngineWithoutImages(SimulatedLab):
    """In place of the Docker lab: its engine answers, and no base image can be had."""

    name = "docker"
    error: ClassVar[LabError]

    async def open(self) -> HostFacts:
        raise self.error

    @staticmethod
    async def examine() -> tuple[Check, ...]:
        return (Check("docker engine", "ok", "20.10.24 on Debian"),)

    @staticmethod
    async def reap(alive: frozenset[str]) -> tuple[str, ...]:
        return ()


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[EngineWithoutImages]]:
    point = EntryPoint("docker", f"{__name__}:EngineWithoutImages", "workbench.labs")
    registered = {**plugins._found("labs"), "docker": point}
    found = plugins._found
    monkeypatch.setattr(
        plugins, "_found", lambda group: registered if group == "labs" else found(group)
    )
    EngineWithoutImages.error = LabError(
        "the base image can neither be pulled nor made here", remedy="Install debootstrap"
    )
    return EngineWithoutImages


async def test_a_campaign_for_no_lab_runs_on_the_simulated_one_and_says_why(
    client: SocketClient, docker: type[EngineWithoutImages]
) -> None:
    accepted = await client.ask(RunCampaign(SMALL, session="stands-in"))
    assert isinstance(accepted, RunAccepted)
    async with client.follow("stands-in") as feed:
        watched = Watched(feed)
        finished = await watched.finish()
    assert finished.outcome == "done"
    assert finished.samples > 0
    assert watched.view.lab == "sim"
    said = [e.fact.text for e in watched.events if isinstance(e.fact, Noted)]
    said += [line.text for line in watched.view.log]
    assert (
        "the base image can neither be pulled nor made here: the simulated lab is used instead. "
        "For the real one: Install debootstrap"
    ) in said


async def test_a_campaign_that_ships_runs_on_a_host_of_one_core_too(
    client: SocketClient, docker: type[EngineWithoutImages], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo needs 1.75. A campaign of the user's own is refused, as anything that was named."""
    monkeypatch.setattr(opening, "cores_here", lambda: 1.0)
    session = (await client.ask(RunCampaign("demo", session="one-core"))).session
    await client.ask(StopRun(session, abort=True))
    async with client.follow(session) as feed:
        watched = Watched(feed)
        await watched.finish()
    assert watched.view.lab == "sim"
    (said,) = [line.text for line in watched.view.log if "simulated lab is used" in line.text]
    assert "1.75 in all, but this host has 1" in said
    assert "--oversubscribe" in said
    planned = await client.ask(PlanCampaign("demo"))
    assert said in planned.plan.warnings
    for refused in (RunCampaign(SMALL), RunCampaign("demo", lab="docker")):
        with pytest.raises(UsageError, match="but this host has 1"):
            await client.ask(refused)


async def test_a_lab_that_was_asked_for_by_name_stays_an_error(
    client: SocketClient, docker: type[EngineWithoutImages]
) -> None:
    with pytest.raises(LabError, match="neither be pulled nor made"):
        await client.ask(RunCampaign(SMALL, session="named", lab="docker", oversubscribe=True))


async def test_a_template_of_the_users_own_that_does_not_build_is_told(tmp_path: Path) -> None:
    campaign = load_campaign(SMALL, workspace=Workspace(tmp_path)).campaign
    tinyproxy = next(t for t in campaign.templates if t.name == "tinyproxy")
    broken = LabError("its image cannot be built", where="template tinyproxy")
    assert not is_users_own(broken, campaign)
    own = replace(campaign, templates=(replace(tinyproxy, build="/home/me/vnfs/tinyproxy"),))
    assert is_users_own(broken, own)
    assert not is_users_own(LabError("there is no base image"), own)
