"""Drafts of a workspace: read, written, checked, and saved as templates."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TypeVar

from workbench import files
from workbench.descriptors import drafts
from workbench.descriptors.library import FOLDERS
from workbench.domain import drafts as asked
from workbench.domain.campaign import Campaign
from workbench.domain.drafts import DraftShown
from workbench.domain.errors import (
    DescriptorError,
    NameTaken,
    NotAllowed,
    SessionError,
    UsageError,
)
from workbench.domain.messages import Done, Hello
from workbench.engine.runs.opening import check_fits
from workbench.paths import Workspace

T = TypeVar("T")

DOCKER = "docker"
MOST_CELLS = 5000
"""Configurations that are gone through each time a draft changes."""
OF_THE_HOST = ("agents", "attach", "initialization")
"""Parts of a campaign that reach beyond the lab: which engine is spoken to, what is run, whose
programs are loaded and limited, by which commands."""


class Drafts:
    """What `domain.drafts` asks is done here, one change at a time (`alone`)."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = asyncio.Lock()

    async def alone(self, work: Callable[[], T]) -> T:
        """Read or write drafts in a thread, nothing else meanwhile. Raises `WorkbenchError`."""
        async with self._lock:
            try:
                return await asyncio.to_thread(work)
            except OSError as error:
                raise SessionError(
                    f"cannot be written: {error.strerror or error}",
                    where=str(self._workspace.drafts),
                    remedy="Make room, or choose another workspace",
                ) from None

    def listed(self) -> asked.DraftList:
        return asked.DraftList(drafts.summaries(self._workspace))

    def palette(self) -> asked.Palette:
        from workbench.descriptors.palette import palette

        return palette(self._workspace)

    def shown(self, name: str) -> DraftShown:
        return shown(name, self._text(name), self._workspace)

    def revision_of(self, name: str) -> asked.DraftRevision:
        return asked.DraftRevision(name, revision(self._text(name)))

    def start(self, name: str, template: str) -> DraftShown:
        text = drafts.beginning(template, self._workspace)
        wanted = name or template.removeprefix(asked.PREFIX) or asked.UNTITLED
        path = self._path(wanted)
        if name and path.exists():
            raise NameTaken(
                f"a draft is called {name!a} already", remedy="Open it, or choose another name"
            )
        number = 1
        while path.exists():
            number += 1
            path = self._path(f"{wanted}-{number}")
        _write(path, text)
        return shown(path.stem, text, self._workspace)

    def change(self, request: asked.ChangeDraft, who: Hello) -> DraftShown:
        path = self._path(request.name)
        before = self._text(request.name) if path.exists() else ""
        if request.revision and request.revision != revision(before):
            raise UsageError(
                "somebody else changed the draft meanwhile"
                if before
                else "somebody discarded the draft meanwhile",
                where=request.name,
                remedy="Look at it as it is now, and change it again",
            )
        text = _text_of(request)
        if who.is_remote:
            _confine(before, text, who)
        _write(path, text)
        return shown(request.name, text, self._workspace)

    def discard(self, name: str) -> Done:
        self._existing(name).unlink()
        return Done(f"the draft {name} is discarded")

    def save(self, request: asked.SaveTemplate) -> asked.TemplateSaved:
        now = self.shown(request.draft)
        if now.campaign is None or now.document is None:
            raise DescriptorError(now.mistakes)
        text = now.text
        if request.kind == "chain":
            text = drafts.chain_text(now.document, now.campaign, request.target)
        drafts.check_name(request.name, "a template")
        folder = self._workspace.templates / FOLDERS[request.kind]
        path = folder / f"{request.name}.yaml"
        if path.exists() and not request.replace:
            raise NameTaken(
                f"a {request.kind} is called {request.name!a} already",
                where=str(path),
                remedy="Choose another name, or say that it may be replaced",
            )
        _write(path, text)
        return asked.TemplateSaved(request.name, request.kind, str(path))

    def _path(self, name: str) -> Path:
        return drafts.path_of(name, self._workspace)

    def _existing(self, name: str) -> Path:
        return drafts.existing(name, self._workspace)

    def _text(self, name: str) -> str:
        return drafts.text_of(self._existing(name))


def shown(name: str, text: str, workspace: Workspace) -> DraftShown:
    """A draft's text, read and checked."""
    document, campaign, mistakes = drafts.checked(name, text, workspace)
    beyond = _beyond_host(campaign) if campaign is not None else ""
    return DraftShown(name, text, revision(text), document, campaign, mistakes, beyond)


def _beyond_host(campaign: Campaign) -> str:
    """Why the host of its lab cannot give it, where that is looked up at once: a plan says it in
    any case. Where it names no lab, this host is meant; of the simulated one its options say."""
    cells = sum(
        prod(len(p.values) for p in (*plan.resources, *plan.settings)) for plan in campaign.targets
    )
    if cells > MOST_CELLS:
        return ""
    try:
        check_fits(replace(campaign, workload=()), campaign.lab or DOCKER)
    except UsageError as error:
        return error.what
    return ""


def revision(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _text_of(request: asked.ChangeDraft) -> str:
    """What is to stand in the file. Raises `UsageError` for what no file can hold."""
    if (request.document is None) == (request.text is None):
        raise UsageError("a draft is changed as a document or as text", where=request.name)
    if request.document is not None:
        return drafts.text_from(request.document)
    text = request.text or ""
    drafts.check_size(text)
    return text


def _confine(before: str, after: str, who: Hello) -> None:
    """Raise `NotAllowed` where somebody without an account reaches beyond the lab."""
    document = drafts.document_of(after)
    if document is None:
        raise NotAllowed("over SSH and from a browser a draft must be YAML", where=who.identity)
    known = drafts.document_of(before) or {}
    for part in OF_THE_HOST:
        if part in document and document[part] != known.get(part):
            raise NotAllowed(
                f"{part} is not changed over SSH or from a browser: it reaches beyond the lab",
                where=who.identity,
                remedy="Start from a campaign that has it, or ask somebody with an account",
            )


def _write(path: Path, text: str) -> None:
    """Whole or not at all, and only for this user's eyes."""
    files.make_folder(path.parent)
    files.write_own(path, text.encode(), synced=True)
