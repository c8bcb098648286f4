"""The open draft, as the screens that write it share it.

What a screen changes is there at once and goes to the engine behind it, one change after the
other; the engine says what is wrong with it. Nothing is kept here that the engine does not get.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Literal, Protocol, TypeVar

from workbench.domain.campaign import Campaign
from workbench.domain.drafts import (
    ChangeDraft,
    DiscardDraft,
    DraftShown,
    GetDraftRevision,
    GetPalette,
    Palette,
    ReadDraft,
    StartDraft,
)
from workbench.domain.errors import (
    Mistake,
    NameTaken,
    SessionError,
    UsageError,
    WorkbenchError,
)
from workbench.domain.events import SessionCreated
from workbench.domain.lab import SIMULATION
from workbench.domain.messages import GetStatus, ListEvents, Request, Role
from workbench.link.client import Client
from workbench.tui.memory import Memory
from workbench.tui.run_terms import RunTerms
from workbench.tui.text import without_place
from workbench.tui.undo import MOST_UNDOS, Undo, Undos
from workbench.tui.workers import Worker, begin

R = TypeVar("R")

LABS = ("docker", "sim")
"""Those that can be chosen of a draft without its text."""

Wanted = Literal["", "run", "mistake"]
Document = dict[str, Any]
FieldPart = str | int


class Desk(Worker, Protocol):
    """What a draft needs of the application."""

    undos: Undos
    memory: Memory

    def client(self) -> Awaitable[Client]: ...

    def say(self, message: str, level: Any = ...) -> None: ...

    def redraw(self) -> None: ...


class Draft:
    """A draft from the moment it is opened; `changed` counts what could be drawn.

    Attributes
    ----------
    document : the YAML as nested values; change it by `edit` or `put` alone.
    text : as the engine wrote it last, or as somebody typed it.
    readable : whether the text is a mapping; else `document` is the last that was.
    campaign : of the latest state that the engine has seen; None while there are mistakes.
    target : index of the target that is looked at, on every screen of the draft.
    settled : the engine has seen everything that was changed here.
    overtaken : counts how often what stood here gave way to what somebody else had written.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.name = ""
        self.document: Document = {}
        self.text = ""
        self.readable = True
        self.campaign: Campaign | None = None
        self.mistakes: tuple[Mistake, ...] = ()
        self.beyond_host = ""
        """Why the engine's host cannot give it; of the latest state that the engine has seen."""
        self.target = 0
        self.wanted: Wanted = ""
        """What Campaign is to do once it is shown, for a key that was pressed on another screen."""
        self._terms = RunTerms()
        self._workspace = ""
        self.palette: Palette | None = None
        self.changed = self.overtaken = 0
        self.settled = True
        self.role: Role = "operator"
        self.lost = ""
        """Why the engine does not answer, as a sentence."""
        self.remote = False
        """Whether we came over SSH, and so have no editor."""
        self.fresh = True
        """Whether none was opened or closed yet: then the last one is gone on with."""
        self._revision = ""
        self._left: dict[str, str] = {}
        """Revisions of drafts as we saw them last, of as many as there are steps to take back."""
        self._waiting: ChangeDraft | None = None
        self._sending = False
        self._latest: Undo | None = None
        """Takes the last change back."""
        self._visit: object = None
        """On which it was made."""
        self._one_at_a_time = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        return bool(self.name)

    @property
    def terms(self) -> RunTerms:
        """On what it is to be run: no part of its text, but remembered with it."""
        return self._terms

    @terms.setter
    def terms(self, terms: RunTerms) -> None:
        self._terms = terms
        if self.name:
            self._desk.memory.keep_terms(self._place(self.name), terms.changed)

    @property
    def to_correct(self) -> int:
        """How many mistakes there are before it can be run: the document's, and the terms'."""
        return len(self.mistakes) + len(self._terms.mistakes)

    def set_terms(self, what: str, terms: RunTerms, visit: object = None) -> None:
        """Other terms, which one key takes back as in `edit`."""
        if terms == self._terms or not self._may_write():
            return
        if not self._goes_on(visit):
            self._keep_terms(what)
        self.terms = terms
        self._tell()

    def _goes_on(self, visit: object) -> bool:
        """Whether the latest step that can be taken back was made on this visit, too."""
        same = visit is not None and visit == self._visit and self._latest is not None
        self._visit = visit
        return same and self._desk.undos.top is self._latest

    def _keep_terms(self, what: str) -> None:
        before, place = self._terms, self._place(self.name)

        async def back() -> str:
            if self._place(self.name) == place:
                self.terms = before
                self._tell()
            else:
                self._desk.memory.keep_terms(place, before.changed)
            return f"{what} is taken back."

        self._latest = Undo(what, back)
        self._desk.undos.add(self._latest)

    def _place(self, name: str) -> str:
        """What a draft is remembered by: names come again in every workspace."""
        return f"{self._workspace}/{name}"

    @property
    def lab(self) -> str | None:
        """The lab that it names, with its options; None: whichever is there."""
        lab = self.document.get("lab")
        return lab if isinstance(lab, str) and lab else None

    @property
    def simulated(self) -> bool:
        """Whether it names the simulated lab."""
        return (self.lab or "").partition(":")[0] == SIMULATION

    @property
    def targets(self) -> list[Any]:
        """The document's targets, whatever they are; not to be changed."""
        targets = self.document.get("targets")
        return targets if isinstance(targets, list) else []

    def at(self, *path: FieldPart, default: Any = None) -> Any:
        """The value at a path of the document; the default where nothing stands there."""
        value: Any = self.document
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return default
        return value

    def mistake_at(self, *path: FieldPart) -> Mistake | None:
        """The first mistake of a field, or of something in it; `spelled` or in parts."""
        field = spelled(path)
        return next((m for m in self.own_mistakes if _within(m.field, field)), None)

    @property
    def own_mistakes(self) -> tuple[Mistake, ...]:
        """Those of the draft itself, not of templates that it names."""
        return tuple(m for m in self.mistakes if m.file == f"{self.name}.yaml")

    # ------------------------------------------------------------------------- opening

    async def meet(self) -> None:
        """Learn what the engine lets us do. Raises `WorkbenchError`."""
        try:
            client = await self._desk.client()
        except (WorkbenchError, OSError) as error:
            self.lost = without_place(error)
            raise
        self.role, self.remote, self.lost = client.role, client.remote, ""
        self._go_on()

    async def start(self, name: str = "", template: str = "") -> None:
        """Open a new draft. Raises `WorkbenchError`."""
        await self._opened(StartDraft(name, template))

    async def open(self, name: str) -> None:
        """Open a draft that is there. Raises `WorkbenchError`."""
        await self._opened(ReadDraft(name))

    async def of_session(self, session: str) -> None:
        """Open a draft of what a session measured, and named like it; where there is one of that
        name already, that one, as it was left. Raises `WorkbenchError`."""
        page = await self._ask(ListEvents(session, 0, 1))
        created = page.events[0].fact if page.events else None
        if not isinstance(created, SessionCreated) or not created.descriptors:
            raise SessionError(
                "holds no descriptor to begin with",
                where=session,
                remedy="Start from the campaign that it was made of",
            )
        try:
            await self._ask(StartDraft(session))
        except NameTaken:
            await self.open(session)
            seed = f"its own seed {self.terms.seed}"
            self._desk.say(f"The draft {session} was there already: it is as you left it, {seed}.")
        else:
            # A campaign is read before what it names.
            await self._ask(ChangeDraft(session, text=created.descriptors[0].text))
            await self.open(session)
            if created.lab in LABS and self.readable and self.lab != created.lab:
                self._send(ChangeDraft(session, {**self.document, "lab": created.lab}))
            self.terms = RunTerms(str(created.seed))
        self._tell()

    async def _opened(self, request: Request[DraftShown]) -> None:
        self.fresh = False
        await self._send_latest()  # of the draft that is left
        shown = await self._ask(request)
        palette = await self._ask(GetPalette())
        self.palette = palette
        self._workspace = (await self._ask(GetStatus())).workspace
        self.document, self.target, self._waiting = {}, 0, None
        remembered = self._desk.memory.terms(self._place(shown.name))
        self._terms = RunTerms.remembered(remembered)
        place = self._place(shown.name)
        if self._left.get(place, shown.revision) != shown.revision:  # by somebody else
            self._desk.undos.drop_all(place)
        self._take(shown)

    async def until_settled(self) -> bool:
        """Once the engine has seen everything that was changed here; False: it does not answer."""
        while self._waiting is not None and not self.lost:
            await self._send_latest()
        return self.settled

    async def refuse_latest(self) -> None:
        """As it was before the last change, which is no more offered to be taken back."""
        if self._latest is not None:
            self._desk.undos.drop(self._latest)
            await self._latest.take_back()
            self._latest = None
            await self.until_settled()

    async def refresh_palette(self) -> None:
        """Templates came or went. Raises `WorkbenchError`."""
        palette = await self._ask(GetPalette())
        self.palette = palette
        self._tell()

    async def discard(self) -> None:
        """Remove the open draft; one key brings it back. Raises `WorkbenchError`."""
        name, text, terms = self.name, self.text, self.terms
        await self._ask(DiscardDraft(name))
        self.terms = RunTerms()
        self.close()

        async def back() -> str:
            shown = await self._ask(ChangeDraft(name, text=text))
            self.document = {}
            self._take(shown)
            self.terms = terms
            return f"The draft {name} is back."

        self._desk.undos.add(Undo(f"Discarding {name}", back))

    def close(self) -> None:
        """Forget the draft; its file stays."""
        self.name, self.document, self.text, self._revision = "", {}, "", ""
        self.readable, self.campaign, self.mistakes, self.target = True, None, (), 0
        self.settled, self._waiting, self.lost, self.fresh = True, None, "", False
        self.beyond_host, self.wanted = "", ""
        self._tell()

    # ------------------------------------------------------------------------- changing

    def edit(self, what: str, change: Callable[[Document], None], visit: object = None) -> bool:
        """Change the document; whether it did.

        `change` works on a copy; `what` begins the sentence of the undo: `Adding haproxy`. What is
        changed on one `visit`, such as letter by letter, is taken back as one.
        """
        after = copy.deepcopy(self.document)
        change(after)
        if after == self.document or not self._may_write():
            return False
        self._keep(what, visit)
        self.document, self.readable = after, True
        self._send(ChangeDraft(self.name, after))
        return True

    def put(self, value: Any, *path: FieldPart, what: str) -> bool:
        """Set one field, or remove it with None; what is missing above it is made."""

        def change(document: Document) -> None:
            here: Any = document
            for part in path[:-1]:
                if isinstance(here, dict) and not isinstance(here.get(part), dict | list):
                    if value is None:
                        return
                    here[part] = {}
                here = here[part]
            if value is not None:
                here[path[-1]] = value
            elif isinstance(here, dict):
                here.pop(path[-1], None)
            else:
                del here[path[-1]]

        return self.edit(what, change)

    def write(self, what: str, text: str) -> bool:
        """Take a text from an editor, whatever it is; whether it is another one."""
        if text == self.text or not self._may_write():
            return False
        self._keep(what)
        self._send(ChangeDraft(self.name, text=text))
        return True

    def _may_write(self) -> bool:
        if self.role != "operator":
            self._desk.say("Observers may watch, not change.", "warning")
        return self.role == "operator"

    def _keep(self, what: str, visit: object = None) -> None:
        """Let one key take the coming change back, also when another draft is open by then."""
        if self._goes_on(visit):
            return
        name, place = self.name, self._place(self.name)
        before = (
            ChangeDraft(name, copy.deepcopy(self.document))
            if self.readable and not self.settled
            else ChangeDraft(name, text=self.text)
        )

        async def back() -> str:
            if self._place(self.name) == place:
                self._send(before)
            else:  # refused where somebody else has changed it since it was left
                shown = await self._ask(replace(before, revision=self._left.get(place, "")))
                self._left[place] = shown.revision
            return f"{what} is taken back."

        self._latest = Undo(what, back, of=place)
        self._desk.undos.add(self._latest)

    def _give_way(self) -> None:
        """Somebody else's text takes the place of ours. What ours was before is offered no more:
        it would be sent as a change of theirs, and take theirs away."""
        self.overtaken += 1
        place = self._place(self.name)
        self._desk.undos.drop_all(place)
        if self._latest is not None and self._latest.of == place:
            self._latest = None

    # ------------------------------------------------------------------------- sending

    def _send(self, change: ChangeDraft) -> None:
        """The latest change wins: those that wait behind one that is under way are not sent."""
        self._waiting = change
        if change.document is not None:
            self.document = copy.deepcopy(dict(change.document))
            self._clamp()
        self.settled = False
        self._tell()
        self._go_on()

    def _go_on(self) -> None:
        """Send what waits, unless that is under way."""
        if self._waiting is not None and not self._sending:
            self._sending = True
            begin(self._desk, self._send_all)

    async def _send_all(self) -> None:
        try:
            while self._waiting is not None and not self.lost:
                await self._send_latest()
        finally:
            self._sending = False
            self._tell()

    async def _send_latest(self) -> None:
        """What waits, after what is under way."""
        async with self._one_at_a_time:
            if self._waiting is not None:
                await self._send_one(self._waiting)

    async def _send_one(self, change: ChangeDraft) -> None:
        stamped = ChangeDraft(change.name, change.document, change.text, self._revision)
        shown: DraftShown | None
        try:
            shown = await self._ask(stamped)
        except (WorkbenchError, OSError) as error:
            self._desk.say(str(error), "error")
            shown = await self._look_again(change)
        else:
            self._waiting = None if self._waiting is change else self._waiting
        if shown is not None and shown.name == self.name:
            self._take(shown)

    async def look(self) -> None:
        """What somebody else has made of it, unless something of ours is under way. Never raises:
        whether the engine answers is told where something is changed."""
        if not self.is_open or not self.settled or self.lost:
            return
        name, changed = self.name, self.changed
        try:
            there = await self._ask(GetDraftRevision(name))
            if there.revision == self._revision:
                return
            shown = await self._ask(ReadDraft(name))
        except UsageError as error:  # there is none of that name
            if self.name == name and self.changed == changed:
                self.close()
                self._desk.say(f"The draft {name} is not there any more: {error}", "warning")
            return
        except (WorkbenchError, OSError):
            return
        if self.name == name and self.changed == changed and shown.revision != self._revision:
            self._give_way()
            self._take(shown)
            self._desk.say("Somebody else changed the draft: it is shown as it is now.")

    async def _look_again(self, refused: ChangeDraft) -> DraftShown | None:
        """What was sent was refused: what stands in the file. Else it waits for `meet`."""
        try:
            shown = await self._ask(ReadDraft(self.name))
        except (WorkbenchError, OSError) as error:
            self.lost = without_place(error)
            return None
        if shown.revision != self._revision:  # what was entered meanwhile is of our text, too
            self._waiting = None
            self._give_way()
        elif self._waiting is refused:  # else what was entered meanwhile is sent in its turn
            self._waiting = None
            self.overtaken += 1
        return shown

    def _take(self, shown: DraftShown) -> None:
        self.name, self.text, self._revision = shown.name, shown.text, shown.revision
        self._left.pop(place := self._place(shown.name), None)
        self._left[place] = shown.revision
        if len(self._left) > MOST_UNDOS:
            del self._left[next(iter(self._left))]
        self.campaign, self.mistakes = shown.campaign, shown.mistakes
        self.beyond_host = shown.beyond_host
        self.settled = self._waiting is None
        self.readable = shown.document is not None
        if self.settled and shown.document is not None:
            self.document = copy.deepcopy(dict(shown.document))
        self._clamp()
        self._tell()

    def _clamp(self) -> None:
        """Look at a target that there is."""
        self.target = max(0, min(self.target, len(self.targets) - 1))

    def _tell(self) -> None:
        self.changed += 1
        self._desk.redraw()

    async def _ask(self, request: Request[R]) -> R:
        return await (await self._desk.client()).ask(request)


def spelled(path: tuple[FieldPart, ...]) -> str:
    """A path as mistakes name it: `targets[0].vnf`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def _within(field: str, of: str) -> bool:
    return field == of or field.startswith((f"{of}.", f"{of}["))
