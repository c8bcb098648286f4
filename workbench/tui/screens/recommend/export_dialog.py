"""A recommendation for those who deploy: choose a format, look at its text, write it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import OptionList, Static

from workbench.domain.export_requests import ExportFormat, PreviewedFile, PreviewRecommendation
from workbench.domain.messages import ExportRecommendation
from workbench.tui.application import Application
from workbench.tui.screens.asking import EngineQuestion
from workbench.tui.screens.dialogs import Dialog, step
from workbench.tui.text import plain, plain_lines

SETTLE_S = 0.15
"""How long the cursor rests on a format before its text is asked for."""
LOOK_S = 0.5
"""Between two looks whether what is stored has changed."""
MOST_LINES = 2000
"""Of a file, drawn."""


def _label(format: ExportFormat) -> str:
    """The format as the list has it, under the word that people look for."""
    of_kubernetes = format.meaning.startswith("Kubernetes")
    return plain(format.name) + ("\n Kubernetes" if of_kubernetes else "")


class ExportDialog(Dialog[None]):
    """Formats at the left, the text of the one under the cursor at the right; enter writes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("j", "cursor(1)", "Down"),
        ("k", "cursor(-1)", "Up"),
        ("space,pagedown", "scroll(1)", "Page down"),
        ("b,pageup", "scroll(-1)", "Page up"),
        ("tab", "file(1)", "Next file"),
        ("c", "copy", "Copy"),
        ("escape,q", "dismiss(None)", "Close"),
    ]

    def __init__(
        self,
        session: str,
        id: str,
        formats: Sequence[ExportFormat],
        *,
        writes: bool,
        stored: Callable[[], object],
    ) -> None:
        """`stored` says what is exported, as it is now: a verdict may come meanwhile."""
        super().__init__()
        self._stored = stored
        self._seen = stored()
        self.session, self.of, self.formats = session, id, tuple(formats)
        self.writes = writes
        self.files: tuple[PreviewedFile, ...] = ()
        self.file = 0
        self.trouble = ""
        self.asking = EngineQuestion(self, self._draw_busy)
        self._wanted = False
        """Whether enter came before the text of what it is to write."""
        self._writing = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog hand-on"):
            yield Static(f"Export {plain(self.of)}", classes="dialog-title", markup=False)
            with Horizontal():
                yield OptionList(*map(_label, self.formats), markup=False)
                with Vertical():
                    yield Static("", id="meaning", markup=False)
                    yield Static("", id="path", markup=False)
                    with VerticalScroll(can_focus=False, id="preview"):
                        yield Static("", id="text", markup=False)
            yield Static("", classes="dialog-keys", markup=False)

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.focus()
        options.highlighted = 0
        self._show()
        self.set_interval(LOOK_S, self._look_again)

    @property
    def format(self) -> str:
        """The name of the one under the cursor."""
        return self._under_cursor.name

    @property
    def _under_cursor(self) -> ExportFormat:
        return self.formats[self.query_one(OptionList).highlighted or 0]

    def on_option_list_option_highlighted(self) -> None:
        self.files, self.file, self.trouble = (), 0, ""
        self._wanted = self._writing = False
        self.query_one("#preview", VerticalScroll).scroll_home(animate=False)
        self._ask_text()

    def _look_again(self) -> None:
        """Have the text as its file would be, where what is stored is another one by now."""
        if not self._writing and (now := self._stored()) != self._seen:
            self._seen = now
            self._ask_text()

    def _ask_text(self) -> None:
        self.asking.begin(partial(self._look, self.format), f"writing it as {plain(self.format)}")

    async def _look(self, format: str) -> None:
        await asyncio.sleep(SETTLE_S)
        reply = await self.asking.answer(PreviewRecommendation(self.session, self.of, format))
        self.files = reply.files if reply is not None else ()
        self.file = min(self.file, max(0, len(self.files) - 1))
        self.trouble = self.asking.trouble
        self._show()
        if self._wanted:
            self.on_option_list_option_selected()

    def _draw_busy(self) -> None:
        """For how long it is waited for; not once it was closed."""
        if self.is_attached:
            self._show()

    def _show(self) -> None:
        self.query_one("#meaning", Static).update(plain(self._under_cursor.meaning))
        busy = self.asking.busy
        waits = busy.text if busy is not None else ""
        path, text = "", f"… {waits}" + "; it goes to its file then" * self._wanted
        if self.trouble:
            text = f"! {plain_lines(self.trouble)}"
        elif self.files:
            shown = self.files[self.file]
            lines = shown.text.splitlines()
            left_out = len(lines) > MOST_LINES or len(shown.text) < shown.characters
            path = plain(shown.path)
            if len(self.files) > 1:
                path += f"  (file {self.file + 1} of {len(self.files)})"
            text = plain_lines("\n".join(lines[:MOST_LINES]))
            text += f"\n… {shown.characters} characters in all" * left_out
        if self.files and waits:
            path = f"… {waits}"
        self.query_one("#path", Static).update(path)
        self.query_one("#text", Static).update(text)
        keys = ["observers may preview, not write"] * (not self.writes)
        keys += ["enter write"] * (self.writes and not self.trouble)
        keys += ["j k format", "space b page"] + ["tab file"] * (len(self.files) > 1)
        self.query_one(".dialog-keys", Static).update("   ".join((*keys, "c copy", "esc close")))

    # ------------------------------------------------------------------------- actions

    def action_cursor(self, by: int) -> None:
        step(self.query_one(OptionList), by)

    def action_scroll(self, pages: int) -> None:
        view = self.query_one("#preview", VerticalScroll)
        view.scroll_relative(y=pages * max(1, view.size.height - 1), animate=False)

    def action_file(self, by: int) -> None:
        if self.files:
            self.file = (self.file + by) % len(self.files)
            self.query_one("#preview", VerticalScroll).scroll_home(animate=False)
            self._show()

    def action_copy(self) -> None:
        if self.files:
            shown = self.files[self.file]
            cast(Application, self.app).copy_out(f"{self.format} of {self.of}", shown.text)

    def on_option_list_option_selected(self) -> None:
        """Enter; before the text has come it is kept, as nobody sees that it came too early."""
        self._wanted = self.writes and not self.files and not self.trouble
        if self._wanted:
            self._show()
        elif self.writes and not self.trouble:
            self._writing = True
            self.asking.begin(partial(self._write, self.format), "writing it to its file")

    async def _write(self, format: str) -> None:
        app = cast(Application, self.app)
        reply = await self.asking.answer(ExportRecommendation(self.session, self.of, format))
        if reply is None:
            self._writing, self.trouble = False, self.asking.trouble
            return
        files = f" ({len(reply.files)} files)" if len(reply.files) > 1 else ""
        self.dismiss(None)
        app.say(f"Wrote {reply.path}{files}.")
