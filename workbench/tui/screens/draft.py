"""What the screens of the open draft share: frame, opening, saving, the editor, running it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TypeVar

from textual.app import ComposeResult
from textual.containers import Container
from textual.widgets import Static

from workbench.domain.counts import counted
from workbench.domain.drafts import (
    DraftList,
    ListDrafts,
    SaveTemplate,
    TemplateKind,
)
from workbench.domain.errors import DescriptorError, NameTaken, WorkbenchError
from workbench.domain.messages import ListCampaigns, Request
from workbench.tui import editor
from workbench.tui.commands.action import Action
from workbench.tui.draft import Draft, Wanted
from workbench.tui.screens.base import CHECKING, NO_ENGINE, OBSERVING, WorkbenchScreen
from workbench.tui.screens.dialogs import ChoiceScreen, ConfirmScreen, NameScreen
from workbench.tui.text import day, plain, without_place
from workbench.tui.widgets.keys import KeyLine
from workbench.tui.widgets.rows import Row, Rows, Span
from workbench.tui.widgets.tabs import TabLine
from workbench.tui.workers import begin

R = TypeVar("R")

REFRESH_S = 3.0
"""How often the draft is looked at for what somebody else has changed."""
TOLD_EVERY_S = 0.7
"""How often it is told that a dialog is waited for, and after which time first."""
CAMPAIGN = "campaign"
"""The screen that runs a draft."""
FROM_NOTHING = ""
"""Choice of a new draft without template."""


class DraftScreen(WorkbenchScreen):
    """Shows the open draft; subclasses give `middle`, `draw_middle` and `why_empty`."""

    def __init__(self) -> None:
        super().__init__()
        self.drafts: DraftList | None = None
        """As the engine knew them last."""

    def compose(self) -> ComposeResult:
        yield self.too_small_note()
        with Container(id="top"):
            yield TabLine(id="tabs")
            yield Rows(id="header")
        yield Rows(id="banner")
        with Container(id="middle"):
            yield from self.middle()
        yield Static("connecting…", id="empty", markup=False)
        yield KeyLine(id="keys")

    def middle(self) -> ComposeResult:
        """The widgets of this screen, which are hidden while no draft is open."""
        raise NotImplementedError

    def draw_middle(self, draft: Draft) -> None:
        """Bring these widgets up to date."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self.set_interval(REFRESH_S, self._look_for_others)
        self.look()
        self.call_after_refresh(self.draw)

    def on_screen_resume(self) -> None:
        self.look()
        self.call_after_refresh(self.draw)

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw)

    @property
    def ready(self) -> bool:
        return super().ready and self.has_its_parts

    @property
    def draft(self) -> Draft:
        return self.workbench.draft

    def look(self) -> None:
        """Ask which drafts there are, for the empty state and for `open`."""
        begin(self, self._look)

    def _look_for_others(self) -> None:
        """Another screen may change the draft, too; looked for where there is time to draw."""
        pace = self.workbench.pace
        if self.in_sight and self.draft.is_open and not pace.wait_s:
            pace.drawing()
            begin(self, self.draft.look, group="others", exclusive=True)

    async def _look(self) -> None:
        try:
            await self.draft.meet()
            reply = await self.request(ListDrafts())
        except (WorkbenchError, OSError) as error:
            self.draft.lost = without_place(error)
        else:
            self.drafts = reply
            self._go_on_with_the_last()
        if self.in_sight:
            self.draw()

    def _go_on_with_the_last(self) -> None:
        """Whoever closed the screens in the middle of a draft finds it open again."""
        if self.draft.fresh and self.drafts is not None and self.drafts.drafts:
            self.draft.fresh = False
            self.do(self.draft.open(self.drafts.drafts[0].name))

    # ------------------------------------------------------------------------- drawing

    def draw(self) -> None:
        """Bring everything up to date; called whenever something could have changed."""
        if not self.ready or self.too_small:
            return
        draft, middle, empty = (
            self.draft,
            self.query_one("#middle", Container),
            self.query_one("#empty", Static),
        )
        with self.app.batch_update():
            self.query_one("#header", Rows).show([self._head()])
            self._draw_banner()
            middle.display, empty.display = draft.is_open, not draft.is_open
            if draft.is_open:
                self.draw_middle(draft)
            else:
                empty.update(self.why_empty())
            self.offer_keys()

    def _head(self) -> Row:
        draft = self.draft
        if not draft.is_open:
            waiting = "no engine" if self.draft.lost else "no draft is open"
            return ((" workbench ", "strong"), (f" {waiting}", "dim"))
        said: list[Span] = [(f" {plain(draft.name)} ", "strong"), (" draft", "dim")]
        if not draft.settled:
            said.append(("  checking…", "dim"))
        elif draft.to_correct:
            said.append((f"  {counted(draft.to_correct, 'mistake')}", "bad"))
        elif draft.beyond_host:
            host = "the simulated host" if draft.simulated else "this host"
            said.append((f"  needs more cores than {host} has", "warn"))
        else:
            said.append(("  can be run", "good"))
        said.append((f"  {counted(len(draft.targets), 'target')}", "dim"))
        return tuple(said)

    def _draw_banner(self) -> None:
        banner = self.query_one("#banner", Rows)
        text = ""
        if self.draft.lost:
            text = f"{self.key('draft.reconnect')} to reconnect: {self.draft.lost}"
        elif not self.draft.readable and self.draft.mistakes:
            first = self.draft.mistakes[0]
            undo, edit = self.key("app.undo"), self.key("draft.editor")
            text = f"line {first.line}: {plain(first.message)} ({edit} edits, {undo} takes it back)"
        banner.display = bool(text)
        banner.show([((f" {text} ", "alert"),)])

    def why_empty(self) -> str:
        """What to press where no draft is open."""
        if self.draft.lost:
            return f"No engine answers.\n\nPress {self.key('draft.reconnect')} to look again."
        if self.draft.role != "operator":
            return f"Nothing is being written.\n\nPress {self.key('draft.open')} to see a draft."
        lines = [
            "No draft is open.",
            "",
            f"Press {self.key('draft.new')} to start one, from a template or from nothing.",
        ]
        if self.drafts is not None and self.drafts.drafts:
            latest = self.drafts.drafts[0]
            lines.append(f"Press {self.key('draft.open')} to go on with {plain(latest.name)}.")
        return "\n".join(lines)

    # ------------------------------------------------------------------------- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        draft = self.draft
        able = not self.draft.lost and draft.role == "operator"
        right = draft.is_open and draft.settled and not draft.mistakes
        conditions = {
            "new_draft": able,
            "open_draft": not self.draft.lost
            and self.drafts is not None
            and bool(self.drafts.drafts),
            "save_draft": able and right,
            "edit_text": able and draft.is_open and not draft.remote,
            "discard_draft": able and draft.is_open,
            "run_draft": able and right and not draft.to_correct,
            "mistake": able and draft.readable and bool(draft.to_correct),
            "reconnect_draft": bool(self.draft.lost),
        }
        return conditions.get(action, super().check_action(action, parameters))

    def why_not(self, method: str) -> str:
        draft = self.draft
        if draft.lost:
            return NO_ENGINE
        if method == "open_draft":
            return "There is no draft yet." if self.drafts else "Drafts are still being looked up."
        if method == "reconnect_draft":
            return "The engine answers."
        if draft.role != "operator":
            return OBSERVING
        if not draft.is_open:
            return f"No draft is open: {self.key('draft.new')} starts one."
        if method == "edit_text" and draft.remote:
            return "There is no editor over SSH; the fields here write the same text."
        if method == "mistake" and not draft.to_correct and draft.settled:
            return "There is no mistake."
        wrong = draft.to_correct if method == "run_draft" else len(draft.mistakes)
        if method in ("run_draft", "save_draft") and wrong:
            return f"{counted(wrong, 'mistake')} must be corrected first."
        if method in ("run_draft", "save_draft") and not draft.settled:
            return CHECKING
        return ""

    def offered(self) -> tuple[Action, ...]:
        """Without a draft, first what opens one."""
        actions = super().offered()
        if self.draft.is_open:
            return actions
        return tuple(sorted(actions, key=lambda action: action.place != "draft"))

    def copied(self) -> tuple[str, str]:
        return ("the descriptor", self.draft.text) if self.draft.is_open else ("", "")

    def action_reconnect_draft(self) -> None:
        self.draft.lost = ""
        self.workbench.reconnect()
        self.look()
        self.draw()

    def action_new_draft(self) -> None:
        self.do_latest(self._choose_template)

    async def _choose_template(self) -> None:
        reply = await self.request(ListCampaigns())
        campaigns = reply.campaigns

        def chosen(template: str | None) -> None:
            if template is not None:
                self.do(self.draft.start(template=template))

        known = [(c.name, f"{c.name:<18} {c.summary}") for c in campaigns]
        options = [(FROM_NOTHING, "from nothing"), *known]
        self.show_late(ChoiceScreen("Start a draft from", options), chosen)

    def action_open_draft(self) -> None:
        self.do_latest(self._choose_draft)

    async def _choose_draft(self) -> None:
        reply = await self.request(ListDrafts())
        self.drafts = reply
        if not reply.drafts:
            return

        def chosen(name: str | None) -> None:
            if name is not None:
                self.do(self.draft.open(name))

        options = [
            (d.name, f"{d.name:<18} {day(d.changed_at)}  {', '.join(d.targets) or d.summary}")
            for d in self.drafts.drafts
        ]
        self.show_late(ChoiceScreen("Open a draft", options), chosen)

    def action_save_draft(self) -> None:
        draft = self.draft
        titles = titles_of(draft)
        here = titles[draft.target] if titles else ""
        kinds: list[tuple[TemplateKind, str]] = [
            ("campaign", "campaign: targets, grid, workload, everything"),
            ("chain", f"chain: {plain(here)} alone, for other campaigns"),
        ]

        def chosen(kind: str | None) -> None:
            if kind is not None:
                name = draft.name if kind == "campaign" else here
                self._name_template("chain" if kind == "chain" else "campaign", name)

        self.app.push_screen(ChoiceScreen("Save as a template", kinds), chosen)

    def _name_template(self, kind: TemplateKind, name: str) -> None:
        taken: list[SaveTemplate] = []

        async def carry_out(name: str) -> None:
            request = SaveTemplate(self.draft.name, name, kind, self.draft.target)
            try:
                await self._save(request)
            except NameTaken:
                taken.append(request)

        def named(name: str | None) -> None:
            if name is not None and taken:
                self._ask_to_replace(taken[-1])

        note = f"It goes to templates/{kind}s/ of the workspace."
        question = f"Save the {kind} as"
        self.app.push_screen(NameScreen(question, name, note, carry_out=carry_out), named)

    async def _save(self, request: SaveTemplate) -> None:
        reply = await self.request(request)
        self.workbench.say(f"Saved the {reply.kind} {reply.name}.")
        await self.draft.refresh_palette()

    def _ask_to_replace(self, request: SaveTemplate) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                again = SaveTemplate(
                    request.draft, request.name, request.kind, request.target, replace=True
                )
                self.do(self._save(again))

        question = f"Replace the {request.kind} {plain(request.name)}?"
        self.app.push_screen(ConfirmScreen(question, "What it says now is lost."), answered)

    def action_edit_text(self) -> None:
        """Once the engine has written the text of what was changed: it would be lost else."""
        if self.draft.settled:
            self._edit_text()
        else:
            self.do_latest(self._edit_settled_text)

    async def _edit_settled_text(self) -> None:
        name = self.draft.name
        settled = await self.draft.until_settled()
        if not settled:
            self.workbench.say("Nobody has the text of what was changed: no engine answers.")
        elif self.app.screen is self and self.draft.name == name:
            self._edit_text()

    def _edit_text(self) -> None:
        draft = self.draft
        try:
            text = editor.edited(self.app, draft.text, draft.name)
        except WorkbenchError as error:
            self.workbench.say(str(error), "error")
            return
        if draft.write("Editing the text", text):
            self.workbench.say(f"Took the edited text. {self.key('app.undo')} takes it back.")
        else:
            self.workbench.say("Nothing was changed.")

    def action_discard_draft(self) -> None:
        self.do(self._discard())

    async def _discard(self) -> None:
        name = self.draft.name
        await self.draft.discard()
        self.workbench.say(f"Discarded {name}. {self.key('app.undo')} brings it back.")
        await self._look()

    def action_run_draft(self) -> None:
        """Campaign asks: there stands what it takes, and on what terms it is run."""
        self._on_campaign("run")

    def action_mistake(self) -> None:
        self._on_campaign("mistake")

    def _on_campaign(self, wanted: Wanted) -> None:
        self.draft.wanted = wanted
        self.workbench.go(CAMPAIGN)

    # ------------------------------------------------------------------------- requests

    async def request(self, request: Request[R]) -> R:
        return await (await self.workbench.client()).ask(request)

    def do(self, work: Coroutine[None, None, None]) -> None:
        """Without holding up the keys; what goes wrong is a message."""
        begin(self, partial(self._carried_out, lambda: work))

    def do_latest(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Likewise, in place of the one before: what is pressed twice opens one dialog."""
        begin(
            self,
            partial(self._carried_out, partial(self._told, work)),
            group="latest",
            exclusive=True,
        )

    async def _told(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """A dialog that waits for the engine shows nothing else meanwhile."""
        words = "The engine looks it up; the dialog comes with its answer."
        late = self.set_interval(TOLD_EVERY_S, partial(self.workbench.say_shortly, words))
        try:
            await work()
        finally:
            late.stop()

    async def _carried_out(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        try:
            await work()
        except DescriptorError as error:
            self.workbench.say(str(error.mistakes[0]), "error")
        except (WorkbenchError, OSError) as error:
            self.workbench.say(str(error), "error")


def titles_of(draft: Draft) -> Sequence[str]:
    """What the targets are called; a place where nothing says it has its number."""
    return [_title(target) or f"target {number}" for number, target in enumerate(draft.targets, 1)]


def _title(target: object) -> str:
    if not isinstance(target, dict):
        return ""
    return next((t for k in ("name", "vnf", "chain") if isinstance(t := target.get(k), str)), "")
