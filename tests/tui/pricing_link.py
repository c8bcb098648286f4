"""A fake engine for the screen Campaign: real drafts in a folder, costs that were thought out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from fake_link import FakeClient, opened, redrawn, until
from textual.pilot import Pilot
from textual.widgets import Input

from workbench.descriptors import drafts
from workbench.domain.drafts import ChangeDraft, GetDraftRevision, Palette, ReadDraft, StartDraft
from workbench.domain.errors import DescriptorError, SessionError, UsageError
from workbench.domain.messages import (
    PROTOCOL_VERSION,
    Hello,
    PlanCampaign,
    Planned,
    Request,
    RunCampaign,
)
from workbench.domain.sessions import Plan, PlannedConfiguration, SamplerCost
from workbench.engine.drafts import Drafts
from workbench.engine.handlers.draft_requests import handles as draft_handlers
from workbench.paths import Workspace
from workbench.tui.screens.campaign import campaign_screen
from workbench.tui.screens.campaign.campaign_screen import CampaignScreen

SAMPLERS = ("bisection", "blocks", "heuristic", "pooled", "uniform")
SAMPLE_S = 6.0
NARROW = "its functions need up to 4 cores and source and sink 0.5 each, but this host has 2"


class PricingClient(FakeClient):
    """Drafts as the engine keeps them.

    Attributes
    ----------
    holds : plans wait for it before they are answered.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.workspace = Workspace(folder)
        self.holds = asyncio.Event()
        self.holds.set()
        self.plan_fails: UsageError | None = None
        self._services: Any = SimpleNamespace(drafts=Drafts(self.workspace))
        self._checked = cache(drafts.checked)  # one plan is asked for once a sampler

    def plans(self) -> list[PlanCampaign]:
        return [request for request in self.asked if isinstance(request, PlanCampaign)]

    async def ask(self, request: Request) -> Any:
        if type(request) in draft_handlers.by_kind:
            self.asked.append(request)
            who = Hello(PROTOCOL_VERSION, "test", "ann")
            reply = await draft_handlers.answer(self._services, request, who)
            return replace(reply, samplers=SAMPLERS) if isinstance(reply, Palette) else reply
        if isinstance(request, PlanCampaign) and request.campaign.startswith("draft:"):
            self.asked.append(request)
            await self.holds.wait()
            if self.plan_fails is not None:
                raise self.plan_fails
            return Planned(self._plan(request))
        return await super().ask(request)

    def _plan(self, request: PlanCampaign) -> Plan:
        """Six lab seconds a sample; a vCPU share over two cores does not fit the host."""
        name = request.campaign.partition(":")[2]
        text = drafts.text_of(drafts.path_of(name, self.workspace))
        _, campaign, mistakes = self._checked(name, text, self.workspace)
        if campaign is None:
            raise DescriptorError(mistakes)
        each = campaign.sampling.max_samples
        cells = [
            PlannedConfiguration(0, plan.target.name, configuration, each, each * SAMPLE_S)
            for plan in campaign.targets
            for configuration in campaign.configurations(plan)
        ]
        most = each * len(cells)
        wide = any(c.configuration.vcpu(v) > 2 for c in cells for v in ("haproxy", "tinyproxy"))
        lab = request.lab or "docker"
        warnings = (NARROW,) if wide and lab == "docker" else ()
        costs = [
            SamplerCost(
                sampler, count, count * SAMPLE_S, figure, sampler == campaign.sampling.method, note
            )
            for sampler, count, figure, note in (
                ("bisection", most - len(cells), "played", ""),
                ("blocks", most, "played", ""),
                ("heuristic", most // 2, "scaled", "from 4 of 8 configurations"),
                ("pooled", 0, "unknown", "needs at least 4 configurations"),
                ("uniform", 30 * most, "at_most", ""),
            )
            if sampler in request.only
        ]
        return Plan(
            name, lab, tuple(cells), most, most * SAMPLE_S, most * 36.0, warnings, tuple(costs)
        )


class SlowClient(PricingClient):
    """Changes of drafts wait for `takes`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.takes = asyncio.Event()
        self.takes.set()
        self.broken: SessionError | None = None
        """Of every look at a draft."""
        self.refuses_late: UsageError | None = None
        """Of a run, once the lab opens."""

    async def ask(self, request: Request) -> Any:
        if isinstance(request, ChangeDraft):
            await self.takes.wait()
        if isinstance(request, GetDraftRevision | ReadDraft) and self.broken is not None:
            self.asked.append(request)
            raise self.broken
        reply = await super().ask(request)
        if isinstance(request, RunCampaign) and self.refuses_late is not None:
            raise self.refuses_late
        return reply


@asynccontextmanager
async def campaigning(
    client: PricingClient,
    size: tuple[int, int] = (80, 24),
    template: str = "demo",
    **arguments: Any,
) -> AsyncIterator[Pilot[Any]]:
    """The screen Campaign; with a draft of that template where one is named."""
    # Every change is followed by a wait for its cost.
    with patch.object(campaign_screen, "SETTLE_S", 0.01):
        async with opened(client, size, screen="live", **arguments) as pilot:
            if template:
                await client.ask(StartDraft("mine", template))
                await pilot.app.draft.open("mine")
            await pilot.press("3")
            screen = pilot.app.screen
            assert isinstance(screen, CampaignScreen)
            if template:
                await until(pilot, lambda: screen.form is not None and screen.form.made, "form")
                for line in screen.query(Input):
                    line.cursor_blink = False  # snapshots would catch it in either state
                await priced(pilot)
            await redrawn(pilot)
            yield pilot


async def priced(pilot: Pilot[Any]) -> None:
    """What stands there has its cost, or a mistake."""
    screen, draft = pilot.app.screen, pilot.app.draft
    assert isinstance(screen, CampaignScreen)
    await until(pilot, lambda: draft.settled, "the draft is settled")
    if draft.campaign is not None and not screen.terms.mistakes:
        await until(pilot, lambda: screen.is_priced and not screen.costs.busy, "its cost")
    await redrawn(pilot)
