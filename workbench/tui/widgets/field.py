"""Forms: labelled fields that are gone through by keys, each with its mistake below it.

While a field is edited its keys are its own: letters and digits are text, ↓ ↑, tab and enter go to
the next field, and escape gives the keys back to the screen. What the form is for has a key of its
screen, which the line of keys names where it is no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, cast

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.strip import Strip
from textual.widgets import Input, Static

from workbench.tui.text import plain, plain_lines

LONGEST_SOUGHT = 40
"""Letters that are kept of what is typed into a choice."""


class Line(Input):
    """The text of a field: seen from its beginning, and at its end while it is typed into."""

    DEFAULT_CSS = """
    Line, Line:focus { border: none; height: 1; padding: 0 1; width: 1fr; background: $panel; }
    Line:focus { background: $primary 25%; }
    """

    def hint(self, hint: str) -> None:
        """What an empty line means; in brackets, so that nobody takes it for a value."""
        self.placeholder = f"({hint})" if hint else ""

    def write(self, text: str) -> None:
        """Another text; a long one is seen where the cursor is."""
        self.value = text
        self.cursor_position = len(text) if self.has_focus else 0

    def render_line(self, y: int) -> Strip:
        """Of a long text that nobody types into, that there is more of it."""
        strip, width = super().render_line(y), self.content_size.width
        if self.has_focus or cell_len(self.value or str(self.placeholder)) <= width:
            return strip
        *_, last = strip
        return Strip([*strip.crop(0, width - 1), Segment("…", last.style)])

    def on_focus(self) -> None:
        self.cursor_position = len(self.value)

    def on_blur(self) -> None:
        self.cursor_position = 0


class Cycle(Static, can_focus=True):
    """One of a few values: ← → and space go through them. Letters look for what begins with them,
    and enter takes what they found: typed into the wrong line they change nothing, and say so.
    """

    DEFAULT_CSS = """
    Cycle { height: 1; width: 1fr; padding: 0 1; background: $panel; text-wrap: nowrap; }
    Cycle { text-overflow: ellipsis; }
    Cycle:focus { background: $primary 25%; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "turn(-1)", show=False),
        Binding("right,space", "turn(1)", show=False),
    ]

    class Turned(Message):
        """Another value stands there."""

    def __init__(self, options: Iterable[str], value: str) -> None:
        super().__init__(markup=False)
        self.options = tuple(options)
        self.value = value if value in self.options else (*self.options, "")[0]
        self._typed = ""
        """Letters since another key."""

    def on_mount(self) -> None:
        self._show()

    def on_focus(self) -> None:
        self._forget()

    def on_blur(self) -> None:
        self._forget()

    def _forget(self) -> None:
        """The next letter is a first one."""
        if self._typed:
            self._look_for("")

    def offer(self, options: Iterable[str]) -> None:
        """Other values to choose from; the chosen one stays where it is among them."""
        self.options = tuple(options)
        if self.value not in self.options:
            self.value = (*self.options, "")[0]
        self._show()

    def choose(self, value: str) -> None:
        if value != self.value and value in self.options:
            self.value = value
            self._show()
            self.post_message(self.Turned())

    def action_turn(self, by: int) -> None:
        self._forget()
        if self.options:
            at = self.options.index(self.value) if self.value in self.options else -by
            self.choose(self.options[(at + by) % len(self.options)])

    def on_key(self, event: events.Key) -> None:
        """Letters are this field's, as they are in a line of text."""
        if event.key == "enter" and self._typed:
            if self._found is None:
                event.stop()  # the line is left when it is known what was meant
            else:
                self.choose(self._found)
                self._forget()
        elif event.key == "backspace" and self._typed:
            event.stop()
            self._look_for(self._typed[:-1])
        elif (event.key == "space" and not self._typed) or not event.is_printable:
            self._forget()
        else:
            event.stop()
            self._look_for((self._typed + (event.character or ""))[:LONGEST_SOUGHT])

    def _look_for(self, typed: str) -> None:
        """Show what begins with that; it is not chosen."""
        self._typed = typed
        self._show()

    @property
    def _found(self) -> str | None:
        typed = self._typed.casefold()
        return next(
            (option for option in self.options if option.casefold().startswith(typed)), None
        )

    def on_click(self) -> None:
        self.focus()
        self.action_turn(1)

    def _show(self) -> None:
        if self._typed:
            found = self._found
            none = f"← → choose: no {plain(self._typed)}"
            self.update(f"{plain(found)}?  ⏎ takes it" if found else none)
            return
        value = plain(self.value) or "–"
        self.update(f"‹ {value} ›" if len(self.options) > 1 else value)


class Field(Vertical):
    """A label, a value that is typed or chosen, and the sentence on what is wrong with it.

    Parameters
    ----------
    name : what forms know it by.
    options : values to choose from; without them it is a line of text.
    hint : what it means that the line is empty.
    unit : of what stands there; shown behind it.
    """

    DEFAULT_CSS = """
    Field { height: auto; width: 1fr; }
    Field > Horizontal { height: 1; }
    Field .field-label { width: 14; height: 1; padding: 0 1 0 0; color: $foreground 80%; }
    Field .field-unit { width: auto; height: 1; padding: 0 1; color: $foreground 65%; }
    Field .field-unit { display: none; }
    Field.-measured .field-unit { display: block; }
    Field.-here .field-label { color: $primary; text-style: bold; }
    Field:focus-within .field-label { color: $primary; text-style: bold; }
    Field > .field-mistake { height: auto; display: none; color: $error; padding: 0 1 0 15; }
    Field.-wrong > .field-mistake { display: block; }
    Field.-noted > .field-mistake { display: block; color: $warning; }
    Field.-hinted > .field-mistake { display: block; color: $foreground 65%; }
    Field.-wrong .field-label { color: $error; text-style: bold; }
    """

    class Changed(Message):
        """Its value is another one now."""

        def __init__(self, field: Field) -> None:
            super().__init__()
            self.field = field

    class Submitted(Message):
        """Enter was pressed in it."""

        def __init__(self, field: Field) -> None:
            super().__init__()
            self.field = field

    def __init__(
        self,
        name: str,
        label: str,
        value: str = "",
        *,
        hint: str = "",
        unit: str = "",
        options: Iterable[str] | None = None,
        id: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id)
        self.label, self.mistake, self.note, self.unit = label, "", "", unit
        self._here, self._shown_below = False, ""
        self.entry: Line | Cycle
        if options is None:
            self.entry = Line(value, select_on_focus=False)
            self.entry.hint(hint)
        else:
            self.entry = Cycle(options, value)
        self._known = self.entry.value
        self._below = Static("", classes="field-mistake", markup=False)

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static(self._labelled, classes="field-label", markup=False)
            yield self.entry
            yield Static(self.unit, classes="field-unit", markup=False)
        yield self._below

    @property
    def _cut_hint(self) -> str:
        """What its empty line means, where the line is too narrow to say it and is looked at."""
        entry = self.entry
        looked_at = self._here or entry.has_focus
        if not looked_at or not isinstance(entry, Line) or entry.value:
            return ""
        hint, width = str(entry.placeholder), entry.content_size.width
        return hint if cell_len(hint) > width > 0 else ""

    @property
    def value(self) -> str:
        """Without the blanks around it."""
        return self.entry.value.strip()

    @value.setter
    def value(self, value: str) -> None:
        if isinstance(self.entry, Cycle):
            self.entry.choose(value)
        else:
            self.entry.write(value)

    def fill(self, value: str) -> None:
        """Show what its owner has, but never over what was entered and not heard of yet."""
        if self.value != value and self.entry.value == self._known:
            self.value = value
            self._known = self.entry.value

    def hear(self) -> None:
        """Its owner knows now what stands there, and may `fill` it again."""
        self._known = self.entry.value

    def offer(self, options: Iterable[str]) -> None:
        """Other values to choose from, where it has a choice; the chosen one stays if it can."""
        if isinstance(self.entry, Cycle) and self.entry.options != (offered := tuple(options)):
            heard = self.entry.value == self._known
            self.entry.offer(offered)
            if heard or self.entry.value not in offered:
                self.hear()

    def rename(self, label: str) -> None:
        """Stand for another thing from now on."""
        if label != self.label:
            self.label = label
            self._show_label()

    def measure(self, unit: str) -> None:
        """Show what its value is counted in, or nothing."""
        self.set_class(bool(unit), "-measured")
        if unit != self.unit:
            self.unit = unit
            self.query_one(".field-unit", Static).update(unit)

    def mark(self, here: bool) -> None:
        """Whether the cursor of its form is on it."""
        if here != self._here:
            self._here = here
            self.set_class(here, "-here")
            self._show_label()
        self._show_below()

    @property
    def _labelled(self) -> str:
        return f"{'›' if self._here or self.entry.has_focus else ' '}{self.label}"

    def _show_label(self) -> None:
        if self.is_mounted and self._nodes:
            self.query_one(".field-label", Static).update(self._labelled)

    def refuse(self, mistake: str, note: str = "") -> None:
        """Show what is wrong, or else how the value is read; nothing where nothing is."""
        self.mistake, self.note = plain_lines(mistake), plain_lines(note)
        self.set_class(bool(mistake), "-wrong")
        self.set_class(bool(note) and not mistake, "-noted")
        self._show_below()

    def _show_below(self) -> None:
        """The mistake, or how the value is read, or the hint that its line cuts."""
        said = self.mistake or self.note
        hint = "" if said else self._cut_hint
        below = f"! {said}" if said else hint
        if below != self._shown_below:
            self._shown_below = below
            self._below.update(below)
        self.set_class(bool(hint), "-hinted")

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_below)

    def on_descendant_focus(self) -> None:
        self._show_label()

    def on_descendant_blur(self) -> None:
        self._show_label()

    def on_mount(self) -> None:
        self.set_class(bool(self.unit), "-measured")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._show_below()
        self.post_message(self.Changed(self))

    def on_cycle_turned(self, event: Cycle.Turned) -> None:
        event.stop()
        self.post_message(self.Changed(self))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Submitted(self))


class Form(Vertical):
    """Fields below each other, by name; `Submitted` on enter, `Left` on escape."""

    DEFAULT_CSS = "Form { height: auto; width: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,tab", "step(1)", show=False),
        Binding("up,shift+tab", "step(-1)", show=False),
        Binding("enter", "submit", show=False),
        Binding("escape", "leave", show=False),
    ]

    class Submitted(Message):
        """Enter was pressed in one of its fields."""

    class Left(Message):
        """Escape was pressed: the keys are the screen's again."""

    def __init__(self, fields: Iterable[Field], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._made = tuple(fields)

    def compose(self) -> ComposeResult:
        yield from self._made

    @property
    def fields(self) -> tuple[Field, ...]:
        return self._made

    def field(self, name: str) -> Field:
        """Raises `KeyError` where there is none of that name."""
        found = next((field for field in self._made if field.name == name), None)
        if found is None:
            raise KeyError(name)
        return found

    def values(self) -> dict[str, str]:
        return {cast(str, field.name): field.value for field in self._made}

    @property
    def editing(self) -> bool:
        """Whether one of its fields has the keys."""
        return any(field.entry is self.screen.focused for field in self._made)

    def edit(self, name: str = "") -> None:
        """Give the keys to a field; the first wrong one, or the first one, where none is named."""
        shown = [*self._shown()]
        wrong = next((field for field in shown if field.mistake), None)
        chosen = self.field(name) if name else wrong or shown[0]
        self._focus(chosen)

    def refuse(self, mistakes: Mapping[str, str]) -> None:
        """Show mistakes at their fields, and none at the others."""
        for field in self._made:
            field.refuse(mistakes.get(cast(str, field.name), ""))

    def action_step(self, by: int) -> None:
        shown = [*self._shown()]
        focused = self.screen.focused
        here = next((i for i, field in enumerate(shown) if field.entry is focused), 0)
        self._focus(shown[(here + by) % len(shown)])

    def go_on(self) -> None:
        """To the field below the one that has the keys; not from one that is wrong, nor from the
        last one to the first."""
        shown = [*self._shown()]
        here = next((i for i, f in enumerate(shown) if f.entry is self.screen.focused), 0)
        if not shown[here].mistake and here + 1 < len(shown):
            self._focus(shown[here + 1])

    def _focus(self, field: Field) -> None:
        """At once: the key that comes next is the field's already."""
        self.screen.set_focus(field.entry)

    def action_submit(self) -> None:
        self.post_message(self.Submitted())

    def action_leave(self) -> None:
        self.screen.set_focus(None)
        self.post_message(self.Left())

    def on_field_submitted(self, event: Field.Submitted) -> None:
        event.stop()
        self.action_submit()

    def _shown(self) -> Iterator[Field]:
        return (field for field in self._made if field.display)
