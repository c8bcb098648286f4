"""Small screens over another one: a question, a message, help."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from workbench.tui.actions import Action
from workbench.tui.canvas import Glyphs


class ConfirmScreen(ModalScreen[bool]):
    """Asks before something that cannot be undone; only `y` does it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "dismiss(True)", "Yes"),
        ("n,escape,q", "dismiss(False)", "No"),
    ]

    def __init__(self, question: str, consequence: str) -> None:
        super().__init__()
        self.question, self.consequence = question, consequence

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self.question, classes="dialog-title", markup=False)
            yield Static(self.consequence, markup=False)
            yield Static("y yes   n no", classes="dialog-keys", markup=False)


class MessageScreen(ModalScreen[None]):
    """A sentence that must not be missed."""

    BINDINGS: ClassVar[list[BindingType]] = [("enter,escape,space,q", "dismiss(None)", "Close")]

    def __init__(self, title: str, message: str) -> None:
        super().__init__()
        self.heading, self.message = title, message

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self.heading, classes="dialog-title", markup=False)
            with VerticalScroll(classes="dialog-text"):
                yield Static(self.message, markup=False)
            yield Static("enter close", classes="dialog-keys", markup=False)


class HelpScreen(ModalScreen[None]):
    """The keys of a screen, from the registry, and what the marks mean."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape,q,question_mark,f1,enter", "dismiss(None)", "Close"),
        ("j,down", "scroll(1)", "Down"),
        ("k,up", "scroll(-1)", "Up"),
    ]

    def __init__(self, actions: Iterable[Action], glyphs: Glyphs) -> None:
        super().__init__()
        self.actions = tuple(actions)
        self.glyphs = glyphs

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog help"):
            yield Static("Keys", classes="dialog-title", markup=False)
            with VerticalScroll(classes="dialog-text", can_focus=False):
                yield Static(self._text(), markup=False)
            yield Static("j k scroll   esc close", classes="dialog-keys", markup=False)

    def action_scroll(self, lines: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def _text(self) -> str:
        keys = [f"{a.key_text:<9} {a.label:<10} {a.help}" for a in self.actions]
        return "\n".join((*keys, "", *self._legend()))

    def _legend(self) -> tuple[str, ...]:
        g = self.glyphs
        return (
            "Marks",
            f"{g.valid} valid sample   {g.invalid} sample that is not valid, and is not modelled",
            f"{g.bar_top}{g.bar}{g.bar_bottom} its 95 % interval; at the top edge: not stated",
            f"{g.curve * 2} fitted curve   {g.band * 2} its 95 % band",
            f"{g.ask_left}{g.ask}{g.asked}{g.ask}{g.ask_right} next: interval and point to measure",
            f"{g.vertical} breakpoint   {g.span_left}{g.span}{g.span_right} its 95 % interval",
            f"{g.limit * 2} limit of the SLA",
            "T37 quota throttled 37 % of the periods   ! no CPU left",
            "",
            "States of a configuration",
            "· planned   ▶ sampling   ✓ done   » skipped",
            "$ out of budget   ! unusable   ■ stopped",
            "",
            "Breakpoints",
            "capacity  largest load that is carried without loss or backlog",
            "knee      where the KPI starts to follow the load",
            "cpu       where usage stops following the load",
            "sla       where the fitted KPI crosses the limit of the SLA",
            "covariance  paper B's rule, for comparison",
        )
