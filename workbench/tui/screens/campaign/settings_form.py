"""A form of settings under headings: it shows what a draft says, and tells what was typed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from textual.app import ComposeResult
from textual.geometry import Region, Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from workbench.tui.screens.campaign.settings import Document, Setting
from workbench.tui.text import plain
from workbench.tui.widgets.field import Field, Form, Line

FLEXIBLE = "line-"
"""Begins the names of fields that stand for other settings by and by."""


class SettingsForm(Form):
    """Fields under headings.

    Parameters
    ----------
    sections : the settings of each heading; whether one is a choice never changes.
    flexible : heading and number of lines that stand for other settings by and by, since targets
        have other functions than each other.
    """

    DEFAULT_CSS = """
    SettingsForm .more { height: 1; padding: 0 1; color: $foreground 65%; }
    SettingsForm .heading { height: 1; padding: 0 1; color: $primary; text-style: bold; }
    """

    class Made(Message):
        """Its fields are there, and can be shown."""

    def __init__(
        self, sections: Mapping[str, Sequence[Setting]], flexible: tuple[str, int]
    ) -> None:
        heading, count = flexible
        self._sections = {
            title: [
                *map(_field, settings),
                *(Field(f"{FLEXIBLE}{i}", "") for i in range(count * (title == heading))),
            ]
            for title, settings in sections.items()
        }
        self.lines, self.made = count, False
        super().__init__(f for fields in self._sections.values() for f in fields)
        self.visible = False  # its lines say nothing of the draft until they are filled in
        self._headings: dict[str, Static] = {}
        self._more = Static("", classes="more", markup=False)
        self._cursor = ""
        """Name of the field that the cursor is on; empty: the first."""
        self._seen_at: tuple[str, Region, Size] | None = None
        """Which field was scrolled to, where it stood, and in how much room."""

    def compose(self) -> ComposeResult:
        for title, fields in self._sections.items():
            self._headings[title] = Static(title, classes="heading", markup=False)
            yield self._headings[title]
            yield from fields
        yield self._more

    def on_mount(self) -> None:
        def made() -> None:
            self.made = True
            self.post_message(self.Made())

        self.call_after_refresh(made)

    def show(
        self,
        document: Document,
        settings: Iterable[tuple[str, Setting, str, bool]],
        typed: str = "",
        more: str = "",
        *,
        anew: bool = False,
    ) -> None:
        """Bring fields up to date; those that are being typed into keep their text.

        Each setting comes with the name of its field, its mistake, and whether it is to be seen;
        `typed` is a field whose text is not in the document yet; `more` is said below all of them;
        `anew`: what stands in a line gave way to what somebody else wrote.
        """
        seen: set[str] = set()
        for name, setting, mistake, visible in settings:
            field = self.field(name)
            field.display = visible
            if not visible:
                continue
            seen.add(name)
            field.rename(plain(setting.label))
            _describe(field, setting, plain(setting.read(document)))
            written = isinstance(field.entry, Line) and field.entry is self.screen.focused
            if name != typed and (anew or not written):
                field.fill(plain(setting.read(document)))
            if (field.mistake, field.note) != (mistake, setting.note):
                field.refuse(mistake, setting.note)
        for title, fields in self._sections.items():
            for field in fields:
                if field.name not in seen:
                    field.display = False
            self._headings[title].display = any(field.display for field in fields)
        self._more.update(more)
        self.visible = True
        self.mark_cursor()

    # ------------------------------------------------------------------------- the cursor

    def mark_cursor(self) -> None:
        """The cursor is always seen: on the field that has the keys, else where it was left."""
        focused = next((f for f in self.fields if f.entry is self.screen.focused), None)
        if focused is not None:
            self._cursor = name_of(focused)
        here = self.here
        for field in self.fields:
            field.mark(field is here)
        self.call_after_refresh(self._show_here)

    def _show_here(self) -> None:
        """Scroll to the cursor where its field has another place now, or a line more below it; a
        wheel may look at others meanwhile."""
        if not any(self._shown()):
            return
        here = self.here
        place = (name_of(here), here.virtual_region, cast(Widget, self.parent).size)
        if place != self._seen_at:
            self._seen_at = place
            here.scroll_visible(animate=False)

    @property
    def here(self) -> Field:
        """The field that the cursor is on."""
        shown = [*self._shown()]
        return next((field for field in shown if field.name == self._cursor), shown[0])

    def move_cursor(self, by: int) -> None:
        """To another field, which is not edited yet; not beyond the ends."""
        shown = [*self._shown()]
        at = max(0, min(shown.index(self.here) + by, len(shown) - 1))
        self._cursor = name_of(shown[at])
        self.mark_cursor()

    @property
    def wrong(self) -> bool:
        """Whether one of its lines has a mistake."""
        return any(field.mistake for field in self._shown())

    def edit(self, name: str = "") -> None:
        """Give the keys to that field, the first wrong one, or the one under the cursor."""
        super().edit(name or ("" if self.wrong else name_of(self.here)))


def _field(setting: Setting) -> Field:
    return Field(
        setting.name, setting.label, hint=setting.hint, unit=setting.unit, options=setting.options
    )


def _describe(field: Field, setting: Setting, text: str) -> None:
    """What could stand there; what does stand there is offered even where it is no choice."""
    entry = field.entry
    field.measure(setting.unit)
    if isinstance(entry, Line):
        entry.hint(plain(setting.hint))
        return
    options = setting.options or ()
    field.offer(options if text in options or not text else (*options, text))


def name_of(field: Field) -> str:
    return cast(str, field.name)
