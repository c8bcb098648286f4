"""Questions about sessions and campaigns: what any engine can answer, whatever it measures."""

from __future__ import annotations

import asyncio
from pathlib import Path

from workbench import plugins
from workbench.domain import handing_on, messages
from workbench.domain.curation import GetSample
from workbench.domain.errors import (
    EngineError,
    PluginError,
    SessionError,
    UsageError,
    WorkbenchError,
)
from workbench.domain.lab import Examined, RunDoctor
from workbench.domain.messages import Reply, Request
from workbench.domain.timeline import FindMoment, GetTimeLine
from workbench.domain.topology import Target
from workbench.engine.sessions.library import Library
from workbench.log import logger

LARGEST_PAGE = 500
"""Rows of one reply; keeps its encoding under 20 ms. Who asked for more asks on."""

log = logger("engine.queries")


async def answer(library: Library, request: Request) -> Reply:
    """The reply to a query. Raises `WorkbenchError`."""
    match request:
        case messages.ListSessions():
            return messages.SessionList(await library.list())
        case messages.ListCampaigns():
            return await _campaigns(library)
        case (
            messages.ViewSession(session=session, until=None, focus="")
            | messages.Subscribe(session=session)
        ):
            async with library.borrow(session) as channel:
                return messages.Viewed(channel.snapshot())
        case messages.ViewSession(session=session, until=until, focus=focus):
            async with library.borrow(session, folded=False) as channel:
                return messages.Viewed(await channel.file.view(until, focus))
        case GetSample(session=session, sample=id):
            async with library.borrow(session, folded=False) as channel:
                detail = await channel.file.detail(id)
            if detail is None:
                raise UsageError(f"has no sample {id!r}", where=session)
            return detail
        case GetTimeLine(session=session):
            async with library.borrow(session, folded=False) as channel:
                return await channel.file.time_line()
        case FindMoment(session=session):
            async with library.borrow(session, folded=False) as channel:
                found = await channel.file.moment(request)
            if found is None:
                raise UsageError("there is nothing at that place", where=session)
            return found
        case messages.ListSamples(session=session, offset=offset, limit=limit):
            async with library.borrow(session, folded=False) as channel:
                samples = await channel.file.samples(max(0, offset), _page(limit))
                total, _ = await channel.file.sample_counts()
                return messages.SamplePage(samples, offset, total, channel.file.damage)
        case messages.ListEvents(session=session, after=after, limit=limit, kinds=kinds):
            async with library.borrow(session, folded=False) as channel:
                events = await channel.file.events(max(0, after), _page(limit), kinds)
                return messages.EventPage(events, channel.file.last_seq)
        case messages.GenerateChains():
            return messages.ChainsGenerated(await asyncio.to_thread(_chains, library, request))
        case messages.ExportSession():
            return await _export(library, request)
        case RunDoctor():
            from workbench.engine.runs.doctor import examine

            return Examined(await examine(library.workspace))
        case messages.CompareSessions(first=first, second=second):
            from workbench.engine.answers.comparing import compare

            return await compare(library, first, second)
        case messages.ExportRecommendation():
            from workbench.engine.answers.handing_on import export_recommendation

            return await export_recommendation(library, request)
        case handing_on.GetRecommendOptions() | handing_on.PreviewRecommendation():
            from workbench.engine.answers.handing_on import answer as handed_on

            return await handed_on(library, request)
        case _:
            raise EngineError(f"does not know the request {type(request).__name__}")


async def import_bundle(library: Library, request: messages.ImportBundle) -> Reply:
    """Make a session of a bundle."""
    from workbench.store.bundle import import_bundle as imported

    folder = Path(request.path)
    name = await library.new_name(request.session or folder.name.removesuffix(".bundle"), "")
    file = await imported(folder, library.file_of(name))
    await file.close()
    return messages.RunAccepted(name)


async def _campaigns(library: Library) -> Reply:
    from workbench.descriptors.loading import list_campaigns

    found = await asyncio.to_thread(list_campaigns, workspace=library.workspace)
    return messages.CampaignList(tuple(found))


def _chains(library: Library, request: messages.GenerateChains) -> tuple[Target, ...]:
    from workbench.descriptors.library import library_for
    from workbench.descriptors.policies import generate_chains

    known = library_for(library.workspace)
    return generate_chains(request.policy, known, request.free, request.limit)


async def _export(library: Library, request: messages.ExportSession) -> Reply:
    export = await asyncio.to_thread(plugins.load, "exports", request.format)
    folder = library.workspace.exports
    destination = Path(request.destination) if request.destination else folder / request.session
    if not destination.is_absolute():
        raise EngineError("the destination must be an absolute path", where=str(destination))
    async with library.borrow(request.session) as channel:
        try:
            files = tuple(map(str, await export(channel.file, destination)))
            caution = (await channel.file.view()).caution
            warnings = (*channel.file.damage, *filter(None, (caution,)))
        except (WorkbenchError, asyncio.CancelledError):
            raise
        except OSError as error:
            raise SessionError(
                f"cannot be written: {error.strerror}",
                where=str(destination),
                remedy="Choose another destination (--output)",
            ) from None
        except plugins.FAILURES as error:
            raise PluginError(
                f"{request.format!r} cannot be written: {type(error).__name__}: {error}",
                where="workbench.exports",
            ) from error
    return messages.Exported(files[0] if files else str(destination), files, warnings)


def _page(limit: int) -> int:
    return max(1, min(limit, LARGEST_PAGE))
