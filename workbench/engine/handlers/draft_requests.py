"""Drafts of campaigns, and the templates that come of them (`domain.drafts`)."""

from __future__ import annotations

from functools import partial

from workbench.domain import drafts as asked
from workbench.domain.messages import Done
from workbench.engine.handlers.registry import Asker, Handlers, Services

handles = Handlers()


@handles(asked.ListDrafts, turn="at hand")
async def list_drafts(s: Services, request: asked.ListDrafts, asker: Asker) -> asked.DraftList:
    return await s.drafts.alone(s.drafts.listed)


@handles(asked.GetPalette, turn="at hand")
async def palette(s: Services, request: asked.GetPalette, asker: Asker) -> asked.Palette:
    return await s.drafts.alone(s.drafts.palette)


@handles(asked.ReadDraft, turn="at hand")
async def read(s: Services, request: asked.ReadDraft, asker: Asker) -> asked.DraftShown:
    return await s.drafts.alone(partial(s.drafts.shown, request.name))


@handles(asked.GetDraftRevision, turn="at hand")
async def read_revision(
    s: Services, request: asked.GetDraftRevision, asker: Asker
) -> asked.DraftRevision:
    return await s.drafts.alone(partial(s.drafts.revision_of, request.name))


@handles(asked.StartDraft)
async def start(s: Services, request: asked.StartDraft, asker: Asker) -> asked.DraftShown:
    return await s.drafts.alone(partial(s.drafts.start, request.name, request.template))


@handles(asked.ChangeDraft)
async def change(s: Services, request: asked.ChangeDraft, asker: Asker) -> asked.DraftShown:
    return await s.drafts.alone(partial(s.drafts.change, request, asker.who))


@handles(asked.DiscardDraft)
async def discard(s: Services, request: asked.DiscardDraft, asker: Asker) -> Done:
    return await s.drafts.alone(partial(s.drafts.discard, request.name))


@handles(asked.SaveTemplate)
async def save(s: Services, request: asked.SaveTemplate, asker: Asker) -> asked.TemplateSaved:
    return await s.drafts.alone(partial(s.drafts.save, request))
