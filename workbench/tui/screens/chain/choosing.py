"""What the chain builder asks in dialogs: a VNF or chain of the palette, a chain policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from workbench.domain.counts import counted
from workbench.domain.drafts import Palette
from workbench.domain.errors import DescriptorError
from workbench.domain.messages import GenerateChains
from workbench.domain.topology import Target
from workbench.tui.screens.asking import EngineQuestion
from workbench.tui.screens.chain.chain_rows import chain_facts, vnf_facts
from workbench.tui.screens.chain.chain_tree import way_through
from workbench.tui.screens.dialogs import Dialog, step
from workbench.tui.text import plain


@dataclass(frozen=True)
class Chosen:
    """What was taken from the palette."""

    kind: Literal["vnf", "chain"]
    name: str


class PaletteScreen(Dialog[Chosen | None]):
    """Functions and chains by name; typing filters, enter takes the one under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", priority=True),
        Binding("down,ctrl+n", "cursor(1)", "Down", priority=True),
        Binding("up,ctrl+p", "cursor(-1)", "Up", priority=True),
        Binding("slash", "begin_filter", "Filter", priority=True),
    ]

    def __init__(self, question: str, palette: Palette) -> None:
        super().__init__()
        self.question, self.palette = question, palette
        self._choices = [
            *((Chosen("vnf", v.name), v.name, plain(v.summary)) for v in palette.functions),
            *((Chosen("chain", c.name), f"[{c.name}]", chain_facts(c)[1]) for c in palette.chains),
        ]
        self._shown: list[Chosen] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog from-palette"):
            yield Static(self.question, classes="dialog-title", markup=False)
            yield Input(placeholder="part of a name or summary", id="words")
            yield OptionList(id="choices", markup=False)
            yield Static("", id="facts", markup=False)
            yield Static(
                "enter take it   ↓ ↑ choose   esc cancel", classes="dialog-keys", markup=False
            )

    def on_mount(self) -> None:
        self._fill("")
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._fill(event.value)

    def _fill(self, text: str) -> None:
        words = text.casefold().split()
        found = [
            (choice, title, said)
            for choice, title, said in self._choices
            if all(word in f"{title} {said}".casefold() for word in words)
        ]
        found.sort(key=lambda one: not one[0].name.startswith(tuple(words)))
        self._shown = [choice for choice, _, _ in found]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(Option(plain(f"{title:<22} {said}")) for _, title, said in found)
        options.highlighted = 0 if found else None
        self._explain()

    def _explain(self) -> None:
        here = self._here()
        text = "Nothing has these words."
        if here is not None and here.kind == "vnf":
            vnf = self.palette.vnf(here.name)
            text = vnf_facts(vnf) if vnf else ""
        elif here is not None:
            chain = self.palette.chain(here.name)
            text = chain_facts(chain)[0] if chain else ""
        notes = "".join(f"\n! {plain(note)}" for note in self.palette.notes[:2])
        self.query_one("#facts", Static).update(text + notes)

    def _here(self) -> Chosen | None:
        index = self.query_one(OptionList).highlighted
        return self._shown[index] if index is not None and index < len(self._shown) else None

    def action_cursor(self, by: int) -> None:
        step(self.query_one(OptionList), by)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "begin_filter":  # else it is text, as in `requests/s`
            return not self.query_one(Input).value
        return super().check_action(action, parameters)

    def action_begin_filter(self) -> None:
        """What is typed filters already: the key that begins that in other lists is no text."""

    def on_option_list_option_highlighted(self) -> None:
        self._explain()

    def on_option_list_option_selected(self) -> None:
        self.dismiss(self._here())

    def on_input_submitted(self) -> None:
        if (here := self._here()) is not None:
            self.dismiss(here)


class PolicyScreen(Dialog[tuple[Target, ...]]):
    """A policy, then the chains that obey it; those that are marked become targets."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(())", "Cancel"),
        Binding("j", "cursor(1)", "Down"),
        Binding("k", "cursor(-1)", "Up"),
        Binding("space", "mark", "Mark"),
        Binding("a", "all", "All or none"),
        Binding("e", "again", "Policy"),
    ]

    def __init__(self, taken: Sequence[str]) -> None:
        """`taken` are names of targets that are there already; their chains come unmarked."""
        super().__init__()
        self.taken = set(taken)
        self.chains: tuple[Target, ...] = ()
        self.marked: set[str] = set()
        self.asking = EngineQuestion(self, self._draw_busy)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog policy"):
            yield Static("Chains that obey a policy", classes="dialog-title", markup=False)
            yield Input(placeholder="tinyproxy & haproxy", id="policy")
            yield Input(placeholder="functions that may stand anywhere, with commas", id="free")
            yield Static("", id="told", markup=False)
            yield OptionList(id="chains", markup=False)
            yield Static("", id="policy-keys", classes="dialog-keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(OptionList).display = False
        self._tell(
            "A & B  both, in any order      A | B  one of them\n"
            "A > B  both, A before B        ( )  first"
        )
        self._keys("enter generate   tab free functions   esc cancel")
        self.query_one("#policy", Input).focus()

    def on_input_submitted(self) -> None:
        self.asking.begin(self._generate, "looking for chains that obey it")

    def _draw_busy(self) -> None:
        if self.asking.busy is not None and self.is_attached:
            self._tell(f"… {self.asking.busy.text}")

    async def _generate(self) -> None:
        policy = self.query_one("#policy", Input).value.strip()
        free = tuple(
            filter(None, (n.strip() for n in self.query_one("#free", Input).value.split(",")))
        )
        reply = await self.asking.answer(GenerateChains(policy, free))
        if reply is None:
            self._tell(f"! {self._refusal()}")
            return
        self.chains = reply.chains
        self.marked = {c.name for c in reply.chains if c.name not in self.taken}
        self._show()

    def _refusal(self) -> str:
        error = self.asking.refused
        if not isinstance(error, DescriptorError):
            return plain(self.asking.trouble)
        first = error.mistakes[0]
        at = f"column {first.column}: " if first.field != "free" else "free: "
        return f"{at}{plain(first.message)}"

    def _show(self) -> None:
        options = self.query_one(OptionList)
        options.display = True
        options.clear_options()
        options.add_options(Option(self._line(chain)) for chain in self.chains)
        options.highlighted = 0 if self.chains else None
        options.focus()
        self._count()

    def _line(self, chain: Target) -> str:
        mark = "x" if chain.name in self.marked else " "
        there = "  (is a target)" if chain.name in self.taken else ""
        return plain(f"[{mark}] {way_through(chain.graph)}{there}")

    def _count(self) -> None:
        count = len(self.chains)
        obey = f"{counted(count, 'chain')} obey{'s' * (count == 1)} it"
        self._tell(f"{obey}, {len(self.marked)} marked")
        self._keys("enter take marked   space mark   a all   e policy   esc cancel")

    def action_cursor(self, by: int) -> None:
        step(self.query_one(OptionList), by)

    def action_mark(self) -> None:
        index = self.query_one(OptionList).highlighted
        if index is not None and index < len(self.chains):
            self.marked ^= {self.chains[index].name}
            self._redraw()

    def action_all(self) -> None:
        names = {chain.name for chain in self.chains}
        self.marked = set() if self.marked == names else names
        self._redraw()

    def action_again(self) -> None:
        self.query_one("#policy", Input).focus()
        self._keys("enter generate   tab free functions   esc cancel")

    def _redraw(self) -> None:
        options = self.query_one(OptionList)
        for index, chain in enumerate(self.chains):
            options.replace_option_prompt_at_index(index, self._line(chain))
        self._count()

    def on_option_list_option_selected(self) -> None:
        self.dismiss(tuple(chain for chain in self.chains if chain.name in self.marked))

    def _tell(self, text: str) -> None:
        self.query_one("#told", Static).update(text)

    def _keys(self, text: str) -> None:
        self.query_one("#policy-keys", Static).update(text)
