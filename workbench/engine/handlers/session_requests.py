"""Sessions: what is read of them, how they are moved about, exported, followed and compared."""

from __future__ import annotations

import asyncio
from pathlib import Path

from workbench import plugins
from workbench.domain import export_requests, housekeeping, messages
from workbench.domain.errors import (
    EngineError,
    PluginError,
    SessionError,
    UsageError,
    WorkbenchError,
)
from workbench.domain.messages import Exported, RunAccepted, Viewed
from workbench.domain.sample_review import GetSample, SampleDetail
from workbench.domain.timeline import FindMoment, GetTimeLine, Moment, TimeLine
from workbench.engine.handlers.registry import Asker, Handlers, Services
from workbench.engine.sessions import housekeeping as files_of
from workbench.store.session_file import SessionFile

LARGEST_PAGE = 500
"""Rows of one reply; keeps its encoding under 20 ms. Who asked for more asks on."""

handles = Handlers()


# ------------------------------------------------------------------- read


@handles(messages.ListSessions, turn="page")
async def list_sessions(
    s: Services, request: messages.ListSessions, asker: Asker
) -> messages.SessionList:
    return messages.SessionList(await s.library.list())


@handles(messages.ViewSession, turn="page")
async def view(s: Services, request: messages.ViewSession, asker: Asker) -> Viewed:
    if request.until is None and not request.focus:
        async with s.library.borrow(request.session) as channel:
            return Viewed(channel.snapshot())
    async with s.library.borrow(request.session, folded=False) as channel:
        return Viewed(await channel.file.view(request.until, request.focus))


@handles(messages.Subscribe, turn="page")
async def subscribe(s: Services, request: messages.Subscribe, asker: Asker) -> Viewed:
    """The view alone: who follows has a connection (`engine.connections`)."""
    async with s.library.borrow(request.session) as channel:
        return Viewed(channel.snapshot())


@handles(GetSample)
async def sample(s: Services, request: GetSample, asker: Asker) -> SampleDetail:
    async with s.library.borrow(request.session, folded=False) as channel:
        detail = await channel.file.detail(request.sample)
    if detail is None:
        raise UsageError(f"has no sample {request.sample!r}", where=request.session)
    return detail


@handles(GetTimeLine, turn="page")
async def time_line(s: Services, request: GetTimeLine, asker: Asker) -> TimeLine:
    async with s.library.borrow(request.session, folded=False) as channel:
        return await channel.file.time_line()


@handles(FindMoment)
async def moment(s: Services, request: FindMoment, asker: Asker) -> Moment:
    async with s.library.borrow(request.session, folded=False) as channel:
        found = await channel.file.moment(request)
    if found is None:
        raise UsageError("there is nothing at that place", where=request.session)
    return found


@handles(messages.ListSamples, turn="page")
async def list_samples(
    s: Services, request: messages.ListSamples, asker: Asker
) -> messages.SamplePage:
    async with s.library.borrow(request.session, folded=False) as channel:
        samples = await channel.file.samples(max(0, request.offset), _page(request.limit))
        total, _ = await channel.file.sample_counts()
        return messages.SamplePage(samples, request.offset, total, channel.file.damage)


@handles(messages.ListEvents, turn="page")
async def list_events(
    s: Services, request: messages.ListEvents, asker: Asker
) -> messages.EventPage:
    async with s.library.borrow(request.session, folded=False) as channel:
        after, limit = max(0, request.after), _page(request.limit)
        events = await channel.file.events(after, limit, request.kinds)
        return messages.EventPage(events, channel.file.last_seq)


def _page(limit: int) -> int:
    return max(1, min(limit, LARGEST_PAGE))


@handles(messages.CompareSessions)
async def compare(
    s: Services, request: messages.CompareSessions, asker: Asker
) -> messages.Compared:
    from workbench.engine.answers import comparing

    return await comparing.compare(s.library, request.first, request.second)


# ------------------------------------------------------------------- moved about


@handles(housekeeping.RenameSession)
async def rename(s: Services, request: housekeeping.RenameSession, asker: Asker) -> RunAccepted:
    return await files_of.rename(s.library, request.session, request.name)


@handles(housekeeping.DuplicateSession)
async def duplicate(
    s: Services, request: housekeeping.DuplicateSession, asker: Asker
) -> RunAccepted:
    return await files_of.duplicate(s.library, request.session, request.name)


@handles(housekeeping.DeleteSession)
async def delete(
    s: Services, request: housekeeping.DeleteSession, asker: Asker
) -> housekeeping.Trashed:
    return await files_of.delete(s.library, request.session)


@handles(housekeeping.RestoreSession)
async def restore(s: Services, request: housekeeping.RestoreSession, asker: Asker) -> RunAccepted:
    return await files_of.restore(s.library, request.ticket)


@handles(housekeeping.RescueSession)
async def rescue(s: Services, request: housekeeping.RescueSession, asker: Asker) -> RunAccepted:
    return await files_of.rescue(s.library, request.session, request.folder)


@handles(messages.ImportBundle, of_the_host=True)
async def import_bundle(s: Services, request: messages.ImportBundle, asker: Asker) -> RunAccepted:
    from workbench.store.session_file import import_bundle as imported

    folder = Path(request.path)
    name = await s.library.new_name(request.session or folder.name.removesuffix(".bundle"), "")
    file = await imported(folder, s.library.file_of(name))
    await file.close()
    return RunAccepted(name)


# ------------------------------------------------------------------- written out


def _must_spare(exported: SessionFile, destination: Path) -> None:
    """Raises `UsageError` for a destination at which a session would be written over itself."""
    source = exported.path.resolve()
    for place in (destination, destination / f"{exported.name}.bundle"):
        there = place.resolve()
        if there == source or (source.is_dir() and source in there.parents):
            raise UsageError(
                "is the session itself, which an export would overwrite",
                where=str(place),
                remedy="Choose another destination (--output)",
            )


@handles(messages.ExportSession, changes=True)
async def export_session(s: Services, request: messages.ExportSession, asker: Asker) -> Exported:
    library = s.library
    export = await asyncio.to_thread(plugins.load, "exports", request.format)
    async with library.borrow(request.session) as channel:
        own = library.workspace.exports / channel.file.name
        destination = Path(request.destination) if request.destination else own
        if not destination.is_absolute():
            raise EngineError("the destination must be an absolute path", where=str(destination))
        await asyncio.to_thread(_must_spare, channel.file, destination)
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
    return Exported(files[0] if files else str(destination), files, warnings)


@handles(messages.ExportRecommendation, changes=True)
async def export_recommendation(
    s: Services, request: messages.ExportRecommendation, asker: Asker
) -> Exported:
    from workbench.engine.answers import recommendation_export as answers

    return await answers.export_recommendation(s.library, request)


@handles(export_requests.ListFormats)
async def formats(
    s: Services, request: export_requests.ListFormats, asker: Asker
) -> export_requests.SessionFormats:
    from workbench.engine.answers import recommendation_export as answers

    return export_requests.SessionFormats(await answers.formats_of("exports"))


@handles(export_requests.PreviewRecommendation)
async def preview(
    s: Services, request: export_requests.PreviewRecommendation, asker: Asker
) -> export_requests.Previewed:
    from workbench.engine.answers import recommendation_export as answers

    return await answers.preview(s.library, request)


@handles(export_requests.GetRecommendOptions)
async def options(
    s: Services, request: export_requests.GetRecommendOptions, asker: Asker
) -> export_requests.RecommendOptions:
    from workbench.engine.answers import recommendation_export as answers

    return await answers.options(s.library, request.session)
