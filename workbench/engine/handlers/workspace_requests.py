"""The engine itself and its host, and what a workspace has besides sessions."""

from __future__ import annotations

import asyncio

from workbench.domain.lab import Examined, Reaped, ReapStrays, RunDoctor
from workbench.domain.messages import (
    CampaignList,
    Cancel,
    ChainsGenerated,
    Done,
    EngineStatus,
    GenerateChains,
    GetStatus,
    ListCampaigns,
    StopEngine,
    Unsubscribe,
)
from workbench.domain.topology import Target
from workbench.engine.handlers.registry import Asker, Handlers, Services
from workbench.paths import Workspace

handles = Handlers()


@handles(GetStatus, turn="at hand")
async def status(s: Services, request: GetStatus, asker: Asker) -> EngineStatus:
    return s.status()


@handles(StopEngine, of_the_host=True)
async def stop_engine(s: Services, request: StopEngine, asker: Asker) -> Done:
    s.end()
    return Done("the engine ends")


@handles(Cancel, turn="at hand")
async def cancel(s: Services, request: Cancel, asker: Asker) -> Done:
    """What is cancelled belongs to the connection (`engine.connections`)."""
    return Done()


@handles(Unsubscribe, turn="at hand")
async def unsubscribe(s: Services, request: Unsubscribe, asker: Asker) -> Done:
    """Feeds belong to the connection, too."""
    return Done()


@handles(ReapStrays, of_the_host=True)
async def reap(s: Services, request: ReapStrays, asker: Asker) -> Reaped:
    return Reaped(await s.reap())


@handles(RunDoctor)
async def examine(s: Services, request: RunDoctor, asker: Asker) -> Examined:
    from workbench.engine.runs import doctor

    return Examined(await doctor.examine(s.library.workspace))


@handles(ListCampaigns)
async def list_campaigns(s: Services, request: ListCampaigns, asker: Asker) -> CampaignList:
    from workbench.descriptors import loading

    found = await asyncio.to_thread(loading.list_campaigns, workspace=s.library.workspace)
    return CampaignList(tuple(found))


@handles(GenerateChains)
async def generate_chains(s: Services, request: GenerateChains, asker: Asker) -> ChainsGenerated:
    return ChainsGenerated(await asyncio.to_thread(_chains, s.library.workspace, request))


def _chains(workspace: Workspace, request: GenerateChains) -> tuple[Target, ...]:
    from workbench.descriptors import policies
    from workbench.descriptors.library import library_for

    known = library_for(workspace)
    return policies.generate_chains(request.policy, known, request.free, request.limit)
