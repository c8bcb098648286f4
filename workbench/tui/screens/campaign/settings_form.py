"""A form of settings under headings: it shows what a draft says, and tells what was typed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from textual.app import ComposeResult
from textual.message import Message
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
        self._headings: dict[str, Static] = {}

    def compose(self) -> ComposeResult:
        for title, fields in self._sections.items():
            self._headings[title] = Static(title, classes="heading", markup=False)
            yield self._headings[title]
            yield from fields

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
    ) -> None:
        """Bring fields up to date; those that are being typed into keep their text.

        Each setting comes with the name of its field, its mistake, and whether it is to be seen;
        `typed` is a field whose text is not in the document yet.
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
            if name != typed and not written:
                _fill(field, plain(setting.read(document)))
            if field.mistake != mistake:
                field.refuse(mistake)
        for title, fields in self._sections.items():
            for field in fields:
                if field.name not in seen:
                    field.display = False
            self._headings[title].display = any(field.display for field in fields)


def _field(setting: Setting) -> Field:
    return Field(setting.name, setting.label, hint=setting.hint, options=setting.options)


def _describe(field: Field, setting: Setting, text: str) -> None:
    """What could stand there; what does stand there is offered even where it is no choice."""
    entry = field.entry
    if isinstance(entry, Line):
        entry.placeholder = plain(setting.hint)
        return
    options = setting.options or ()
    offered = options if text in options or not text else (*options, text)
    if entry.options != offered:
        entry.offer(offered)


def _fill(field: Field, text: str) -> None:
    if field.value != text:
        field.value = text


def name_of(field: Field) -> str:
    return cast(str, field.name)
