"""Running functions that are watched: who watches reports, screens ask."""

from __future__ import annotations

from workbench.domain.function_watches import FunctionWatches, ListWatches, ReportLook
from workbench.domain.messages import Done
from workbench.engine.handlers.registry import Asker, Handlers, Services
from workbench.engine.sessions.clock import now

handles = Handlers()


@handles(ReportLook, of_the_host=True)
async def report(s: Services, request: ReportLook, asker: Asker) -> Done:
    s.watches.take(request, now())
    return Done()


@handles(ListWatches)
async def watches(s: Services, request: ListWatches, asker: Asker) -> FunctionWatches:
    return s.watches.of(request.session, request.since, now())
