"""Campaigns that a fleet measures, as the command that runs one reports them."""

from __future__ import annotations

from workbench.domain.fleet_requests import BeginFleetSession, EndFleetSession, ReportFleet
from workbench.domain.messages import Done
from workbench.engine.handlers.registry import Asker, Handlers, Services

handles = Handlers()


@handles(BeginFleetSession, of_the_host=True)
async def begin(s: Services, request: BeginFleetSession, asker: Asker) -> Done:
    await s.fleets.begin(request)
    return Done()


@handles(ReportFleet, of_the_host=True)
async def report(s: Services, request: ReportFleet, asker: Asker) -> Done:
    await s.fleets.report(request)
    return Done()


@handles(EndFleetSession, of_the_host=True)
async def end(s: Services, request: EndFleetSession, asker: Asker) -> Done:
    await s.fleets.end(request)
    return Done()
