"""Small screens over another one: a question, a name, a choice, a message, help."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen, ScreenResultType
from textual.widgets import Input, OptionList, Static

from workbench.domain.errors import DescriptorError, WorkbenchError
from workbench.tui.commands.action import Action
from workbench.tui.commands.actions import PLACE_TITLES
from workbench.tui.text import plain, plain_lines, wrapped
from workbench.tui.widgets.filter import FilterLine
from workbench.tui.workers import begin

LOOK_S = 0.05
"""Between two looks whether a dialog is on top again."""
FILTERED = 8
"""Lines of a list from which what is typed filters them."""
HELP_WIDTH = 71
"""Cells of a line of help beside its scroll bar."""


def step(options: OptionList, by: int) -> None:
    """Highlight the line after this one, or the one before."""
    if by > 0:
        options.action_cursor_down()
    else:
        options.action_cursor_up()


class Dialog(ModalScreen[ScreenResultType]):
    """Its own last line names its keys; `?` explains the screen that it lies over.

    Where text is typed `?` is text, and `f1` does the same.
    """

    BINDINGS: ClassVar[list[BindingType]] = [("question_mark,f1", "app.help", "Help")]


class ConfirmScreen(Dialog[bool]):
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
            yield Static(self.consequence, id="consequence", markup=False)
            yield Static("y yes   n no", classes="dialog-keys", markup=False)

    def ask(self, question: str, consequence: str) -> None:
        """What is known by now, while it is still open: nobody says yes to old figures."""
        if (question, consequence) == (self.question, self.consequence):
            return
        self.question, self.consequence = question, consequence
        if self.is_mounted:
            self.query_one(".dialog-title", Static).update(question)
            self.query_one("#consequence", Static).update(consequence)


class MessageScreen(ModalScreen[None]):
    """A sentence that must not be missed, or a page that is scrolled where it is long."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("enter,escape,space,q", "dismiss(None)", "Close"),
        ("j", "scroll(1)", "Down"),
        ("k", "scroll(-1)", "Up"),
    ]

    def __init__(self, title: str, message: str) -> None:
        super().__init__()
        self.heading, self.message = title, message

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog message"):
            yield Static(self.heading, classes="dialog-title", markup=False)
            with VerticalScroll(classes="dialog-text"):
                yield Static(self.message, markup=False)
            yield Static("enter close", classes="dialog-keys", markup=False)

    def on_mount(self) -> None:
        self.call_after_refresh(self._name_keys)

    def on_resize(self) -> None:
        self.call_after_refresh(self._name_keys)

    def _name_keys(self) -> None:
        more = "   j k scroll" * bool(self.query_one(VerticalScroll).max_scroll_y)
        self.query_one(".dialog-keys", Static).update(f"enter close{more}")

    def action_scroll(self, lines: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)


class HelpScreen(ModalScreen[None]):
    """One screen explained: what it is for, its keys from the registry, what its marks mean."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape,q,question_mark,f1,enter", "dismiss(None)", "Close"),
        ("j,down", "scroll(1)", "Down"),
        ("k,up", "scroll(-1)", "Up"),
        ("space,pagedown", "scroll(10)", "Page down"),
        ("b,pageup", "scroll(-10)", "Page up"),
        ("g,home", "scroll_home", "Begin"),
        ("G,end", "scroll_end", "End"),
    ]

    def __init__(
        self, title: str, about: str, actions: Iterable[Action], legend: tuple[str, ...]
    ) -> None:
        super().__init__()
        self.heading, self.about, self.legend = title, about, legend
        self.actions = tuple(actions)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog help"):
            yield Static(self.heading, classes="dialog-title", markup=False)
            with VerticalScroll(classes="dialog-text", can_focus=False):
                yield Static(self._text(), markup=False)
            yield Static("j k scroll   esc close", classes="dialog-keys", markup=False)

    def action_scroll(self, lines: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_scroll_home(self) -> None:
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        self.query_one(VerticalScroll).scroll_end(animate=False)

    def _text(self) -> str:
        lines, columns = [self.about], _columns(self.actions)
        for place in dict.fromkeys(action.place for action in self.actions):
            lines += ["", PLACE_TITLES.get(place, "On this screen")]
            for action in self.actions:
                lines += _explained(action, *columns) if action.place == place else []
        return "\n".join((*lines, "", *self.legend)).rstrip()


def _columns(actions: Iterable[Action]) -> tuple[int, int]:
    """Widths of the keys and the names of these actions."""
    keys, labels = [9], [10]
    for action in actions:
        keys.append(len(action.key_text))
        labels.append(len(action.label))
    return max(keys), max(labels)


def _explained(action: Action, keys: int, labels: int) -> list[str]:
    """Key, name and help of an action; the help goes on below itself."""
    before = f"{action.key_text:<{keys}} {action.label:<{labels}} "
    first, *rest = wrapped(action.help, HELP_WIDTH - len(before))
    return [before + first, *(f"{'':<{len(before)}}{line}" for line in rest)]


class NameScreen(Dialog[str | None]):
    """Asks for a line of text, such as a session's new name.

    A `proposal` gives way to what is typed; any other value is written on. `carry_out` is done with
    what was typed; a mistake that it raises is said below the line, which stays as it was typed.
    """

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss(None)", "Cancel")]

    def __init__(
        self,
        question: str,
        value: str,
        note: str = "",
        *,
        proposal: bool = False,
        may_be_empty: bool = False,
        carry_out: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__()
        self.question, self.value, self.note, self.proposal = question, value, note, proposal
        self.carry_out, self.may_be_empty = carry_out, may_be_empty
        self.trying = False
        """Whether it is being carried out: what was commanded once is not commanded again."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog name"):
            yield Static(self.question, classes="dialog-title", markup=False)
            yield Input(self.value, id="name", select_on_focus=self.proposal)
            yield Static(self.note, markup=False)
            yield Static("", classes="dialog-mistake", markup=False)
            yield Static("enter do it   esc cancel", classes="dialog-keys", markup=False)

    def on_mount(self) -> None:
        self._refuse("")

    def on_input_changed(self) -> None:
        self._refuse("")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        written = event.value.strip()
        if self.trying:
            return
        if written and self.carry_out is not None:
            self.trying = True
            begin(self, partial(self._try, written, self.carry_out))
        else:
            self.dismiss(written if written or self.may_be_empty else None)

    async def _try(self, written: str, carry_out: Callable[[str], Awaitable[None]]) -> None:
        try:
            await carry_out(written)
        except DescriptorError as error:
            self._refuse(str(error.mistakes[0]))
        except (WorkbenchError, OSError) as error:
            self._refuse(str(error))
        else:
            while self.is_attached and self.app.screen is not self:  # noqa: ASYNC110 - help is over it
                await asyncio.sleep(LOOK_S)
            if self.is_attached:
                self.dismiss(written)
        finally:
            self.trying = False

    def _refuse(self, mistake: str) -> None:
        line = self.query_one(".dialog-mistake", Static)
        line.display = bool(mistake)
        line.update(f"! {plain_lines(mistake)}")


class ListDialog(Dialog[ScreenResultType]):
    """A list to choose from. What is typed leaves over the lines that have all of its words: `/`
    begins, or any letter that is no key."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "leave", "Cancel"),
        ("q", "dismiss(None)", "Cancel"),
        ("slash", "filter", "Filter"),
        ("j,down", "cursor(1)", "Down"),
        ("k,up", "cursor(-1)", "Up"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.lines: tuple[str, ...] = ()
        self.left: tuple[int, ...] = ()
        """Which of the lines are shown."""

    def list_lines(self, lines: Iterable[str]) -> None:
        """These are what is chosen from."""
        self.lines = tuple(map(plain, lines))
        self._narrow()

    @property
    def here(self) -> int | None:
        """Of all lines, the number of the one under the cursor."""
        at = self.query_one(OptionList).highlighted
        return self.left[at] if at is not None and at < len(self.left) else None

    @property
    def filters(self) -> bool:
        """Whether there are so many that they are worth a filter."""
        return len(self.lines) >= FILTERED

    def _narrow(self) -> None:
        words = self.query_one(FilterLine).words
        options = self.query_one(OptionList)
        left = [n for n, line in enumerate(self.lines) if all(w in line.casefold() for w in words)]
        if tuple(left) == self.left and options.option_count == len(left):
            return
        self.left = tuple(left)
        options.clear_options()
        options.add_options(self.lines[n] for n in left)
        if left:
            options.highlighted = 0

    def on_key(self, event: events.Key) -> None:
        """A letter that is no key of this dialog begins the filter."""
        line, typed = self.query_one(FilterLine), event.character or ""
        if line.has_focus or not self.filters or not typed.isalnum():
            return
        if not self.active_bindings.get(event.key):
            event.stop()
            self.action_filter()
            line.insert_text_at_cursor(typed)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._narrow()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.query_one(OptionList).action_select()

    def action_filter(self) -> None:
        if self.filters:
            self.query_one(FilterLine).open()

    def action_leave(self) -> None:
        """What is typed first, then the dialog."""
        line = self.query_one(FilterLine)
        if not line.display:
            self.dismiss(None)
            return
        line.shut()
        self.query_one(OptionList).focus()

    def action_cursor(self, by: int) -> None:
        step(self.query_one(OptionList), by)


class ChoiceScreen(ListDialog[str | None]):
    """Asks for one of a few things; `options` are ids with the words for them."""

    def __init__(self, question: str, options: Iterable[tuple[str, str]]) -> None:
        super().__init__()
        self.question, self.options = question, tuple(options)

    def compose(self) -> ComposeResult:
        filter = "/ filter   " * (len(self.options) >= FILTERED)
        with Vertical(classes="dialog choice"):
            yield Static(self.question, classes="dialog-title", markup=False)
            yield FilterLine("words of a line")
            yield OptionList(markup=False)
            yield Static(f"enter choose   j k move   {filter}esc cancel", classes="dialog-keys")

    def on_mount(self) -> None:
        self.list_lines(words for _, words in self.options)
        self.query_one(OptionList).focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self.options[self.left[event.option_index]][0])


class ColumnsScreen(Dialog[tuple[str, ...] | None]):
    """Which columns of a list are shown, and in which order; the last one is never hidden."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape,q", "dismiss(None)", "Cancel"),
        ("space", "turn", "Show or hide"),
        ("j", "cursor(1)", "Down"),
        ("k", "cursor(-1)", "Up"),
        ("J,shift+down", "shift(1)", "Later"),
        ("K,shift+up", "shift(-1)", "Earlier"),
    ]

    def __init__(self, names: Iterable[str], shown: tuple[str, ...]) -> None:
        super().__init__()
        self.order = [*shown, *(name for name in names if name not in shown)]
        self.shown = set(shown)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog choice"):
            yield Static("Columns of this list", classes="dialog-title", markup=False)
            yield OptionList(*map(self._line, self.order), markup=False)
            yield Static(
                "space show or hide   J K move   enter keep   esc cancel", classes="dialog-keys"
            )

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.highlighted = 0
        options.focus()

    def _line(self, name: str) -> str:
        return f"[{'x' if name in self.shown else ' '}] {name}"

    def _draw(self) -> None:
        options = self.query_one(OptionList)
        for index, name in enumerate(self.order):
            options.replace_option_prompt_at_index(index, self._line(name))

    def action_cursor(self, by: int) -> None:
        step(self.query_one(OptionList), by)

    def action_turn(self) -> None:
        if (at := self.query_one(OptionList).highlighted) is not None:
            changed = self.shown ^ {self.order[at]}
            self.shown = changed or self.shown
            self._draw()

    def action_shift(self, by: int) -> None:
        options = self.query_one(OptionList)
        at = options.highlighted
        if at is not None and 0 <= at + by < len(self.order):
            self.order.insert(at + by, self.order.pop(at))
            options.highlighted = at + by
            self._draw()

    def on_option_list_option_selected(self) -> None:
        self.dismiss(tuple(name for name in self.order if name in self.shown))
