"""Recommendations for those who deploy: as files, or as the text that the files would hold.

And what questions about allocations can be asked with, by name: what forms offer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from workbench import __version__, plugins
from workbench.domain import export_requests as asked
from workbench.domain import messages
from workbench.domain.errors import EngineError, PluginError, SessionError, WorkbenchError
from workbench.domain.events import RecommendationIssued
from workbench.domain.projection import SessionView
from workbench.domain.questions import Diagnose
from workbench.domain.recommendations import IssuedRecommendation
from workbench.engine.answers.chain_profiles import chains_of
from workbench.engine.answers.diagnosing import diagnose
from workbench.engine.answers.recommending import stored_in
from workbench.engine.sessions.library import Library
from workbench.files import write_whole
from workbench.paths import Workspace

LONGEST_PREVIEW = 200_000
"""Characters of a file that are sent to be looked at."""
DEFAULT_COST = "vcpu-hours"


async def options(library: Library, session: str) -> asked.RecommendOptions:
    """What can be named in a question about this session, and in the export of its answer."""
    async with library.borrow(session) as channel:
        campaign = channel.snapshot().campaign
    unmeasurable = ""
    try:
        await library.resumable(session)
    except WorkbenchError as error:
        unmeasurable = str(error)
    workspace = library.workspace
    chains = await asyncio.to_thread(chains_of, campaign, workspace) if campaign else ()
    tables = await asyncio.to_thread(_price_tables, workspace)
    costs = sorted(plugins.names("costs"), key=lambda name: (name != DEFAULT_COST, name))
    costs += [table for table in tables if table not in costs]
    formats = await formats_of("recommendation_exports")
    return asked.RecommendOptions(chains, tuple(costs), formats, unmeasurable)


async def formats_of(
    group: Literal["exports", "recommendation_exports"],
) -> tuple[asked.ExportFormat, ...]:
    """What is registered there, with what it says of itself."""
    found = await asyncio.to_thread(plugins.meanings, group)
    return tuple(asked.ExportFormat(name, meaning) for name, meaning in found.items())


def _price_tables(workspace: Workspace) -> tuple[str, ...]:
    from workbench.descriptors.library import library_for

    return library_for(workspace).names("prices")


# ------------------------------------------------------------------- files


async def export_recommendation(
    library: Library, request: messages.ExportRecommendation
) -> messages.Exported:
    """Write a stored recommendation in a registered format.

    Raises
    ------
    UsageError
        If the session has none of that id.
    PluginError, WorkbenchError
        If there is no such format, or nothing to deploy.
    """
    files = await _files(library, request, request.destination)
    return await asyncio.to_thread(_written, files)


async def preview(library: Library, request: asked.PreviewRecommendation) -> asked.Previewed:
    """What an export into the workspace would write. Raises as `export_recommendation`."""
    files = await _files(library, request, None)
    return asked.Previewed(
        tuple(
            asked.PreviewedFile(str(path), text[:LONGEST_PREVIEW], len(text))
            for path, text in files.items()
        )
    )


async def _files(
    library: Library,
    request: messages.ExportRecommendation | asked.PreviewRecommendation,
    destination: str | None,
) -> dict[Path, str]:
    """The text of each file by its path, the main file first."""
    async with library.borrow(request.session) as channel:
        view = channel.snapshot()
        issued = stored_in(view, request.recommendation)
        (event,) = await channel.file.events(issued.seq - 1, 1)
    fact = event.fact
    assert isinstance(fact, RecommendationIssued)
    why = await _why(library, request.session, issued.recommendation.chain)
    texts = await asyncio.to_thread(_rendered, request.format, view, issued, fact, why)
    stem = f"{view.session}-{request.recommendation}"
    folder = Path(destination) if destination else library.workspace.exports
    if not folder.is_absolute():
        raise EngineError("the destination must be an absolute path", where=str(folder))
    if not texts:
        raise PluginError(
            f"{request.format!r} names no file", where="workbench.recommendation_exports"
        )
    for name in texts:
        if name != Path(name).name:
            raise PluginError(
                f"{request.format!r} names a file {name!r}, which is no plain name",
                where="workbench.recommendation_exports",
            )
    if len(texts) == 1 and folder.suffix and not folder.is_dir():
        (text,) = texts.values()
        return {folder: text}
    if destination is None and len(texts) > 1:
        folder /= stem
    return {folder / name: text for name, text in texts.items()}


async def _why(library: Library, session: str, chain: str) -> str:
    """Why the chain takes longer than its functions alone; empty where it does not, or where
    nothing was measured that could say."""
    from workbench.diagnosis.explaining import DEPARTS

    try:
        found = (await diagnose(library, Diagnose(session, chain))).diagnosis
    except WorkbenchError:
        return ""
    if found.departure is None or found.departure <= DEPARTS:
        return ""
    if not found.answered:  # the sentence says how much longer
        return f"at {found.wl:.4g}: {found.sentence}."
    return (
        f"at {found.wl:.4g} it takes {found.departure:.3g} times as long as they take alone. "
        f"{found.sentence}. What to do: {found.verdicts[0].remedy}."
    )


def _rendered(
    format: str,
    view: SessionView,
    issued: IssuedRecommendation,
    fact: RecommendationIssued,
    why: str,
) -> Mapping[str, str]:
    from workbench.exports.recommendation.base import Context

    export = plugins.load("recommendation_exports", format)
    campaign = view.campaign
    assert campaign is not None  # it was issued from it
    primary = campaign.targets[0].primary
    known = {template.name: template for template in campaign.templates}
    context = Context(
        version=__version__,
        templates={f: known[name] for f, name in fact.templates.items() if name in known},
        host=view.host,
        trends=fact.trends,
        wl_label=f"{primary.name} ({primary.unit})" if primary.unit else primary.name,
        why=why,
    )
    # A session may have been renamed, or duplicated, since it was issued.
    recommendation = replace(issued.recommendation, session=view.session)
    try:
        texts: Mapping[str, str] = dict(export(recommendation, context))
        if not all(isinstance(text, str) for item in texts.items() for text in item):
            raise TypeError("names or contents of files are no text")
    except WorkbenchError:
        raise
    except plugins.FAILURES as error:
        raise PluginError(
            f"{format!r} cannot be written: {type(error).__name__}: {error}",
            where="workbench.recommendation_exports",
        ) from error
    return texts


def _written(texts: Mapping[Path, str]) -> messages.Exported:
    folder = next(iter(texts)).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            write_whole(path, text)
    except OSError as error:
        raise SessionError(
            f"cannot be written: {error.strerror}",
            where=str(folder),
            remedy="Choose another destination (--output)",
        ) from None
    names = tuple(map(str, texts))
    return messages.Exported(names[0] if len(names) == 1 else str(folder), names)
