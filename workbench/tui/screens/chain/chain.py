"""The chain builder: the draft's targets, one of them drawn and edited, and the descriptor."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Container
from textual.geometry import Offset
from textual.message import Message

from workbench.domain.errors import Mistake
from workbench.tui.commands.catalogue import SCREENS
from workbench.tui.draft import Draft
from workbench.tui.screens.base import Target as JumpTarget
from workbench.tui.screens.chain import chain_rows, chain_tree
from workbench.tui.screens.chain.building import BuildingScreen
from workbench.tui.screens.chain.chain_drawing import Drawing, drawing, window
from workbench.tui.screens.chain.chain_tree import Leaf, PartGroup, Path, Tree
from workbench.tui.screens.draft import CAMPAIGN, titles_of
from workbench.tui.text import plain
from workbench.tui.widgets.listing import Listing
from workbench.tui.widgets.rows import Look, Row, Rows

"""Name of the screen on which resources and workload of the targets are set."""
LOOKING = ("part_left", "part_right", "widen")
ADDING = ("add", "add_beside", "add_target", "add_policy")
ON_A_PART = (
    "add_beside", "part_earlier", "part_later", "replicate", "passive", "remove_part", "details",
    "unpack",
)  # fmt: skip
"""Actions that need a part under the cursor."""


class ChainDrawing(Rows):
    """The chain of one target; a part can be clicked."""

    class Picked(Message):
        """A part was clicked."""

        def __init__(self, path: Path) -> None:
            super().__init__()
            self.path = path

    class Resized(Message):
        """It has its room now, or another: it is drawn for none while it is hidden."""

    def __init__(self) -> None:
        super().__init__(id="drawing")
        self._drawn: Drawing | None = None
        self._left = self._top = 0

    def on_resize(self) -> None:
        self.post_message(self.Resized())

    def show_chain(self, drawn: Drawing, path: Path) -> None:
        rows, self._left, self._top = window(drawn, path, self.size.width - 1, self.size.height)
        space = min((self.size.height - len(rows)) // 2, 5)
        self._top -= space
        self._drawn = drawn
        self.show([*([()] * space), *(((" ", ""), *row) for row in rows)])

    def places(self) -> Iterator[tuple[Offset, Path]]:
        """Where each function is drawn, for jump mode."""
        if self._drawn is None:
            return
        seen: set[Path] = set()
        for y in range(self.size.height):
            for x in range(self.size.width):
                path = self._drawn.part_at(x - 1 + self._left, y + self._top)
                if path is not None and path not in seen:
                    seen.add(path)
                    yield self.region.offset + Offset(x, y), path

    def on_click(self, event: events.Click) -> None:
        if self._drawn is not None:
            path = self._drawn.part_at(event.x - 1 + self._left, event.y + self._top)
            if path is not None:
                self.post_message(self.Picked(path))


class ChainScreen(BuildingScreen):
    """Puts VNFs in series and in parallel; one target at a time."""

    NAME: ClassVar[str] = "chain"

    def __init__(self) -> None:
        super().__init__()
        self._scrolled = 0
        self._seen: tuple[str, int] = ("", -1)

    def middle(self) -> ComposeResult:
        with Container(id="left"):
            with Container(id="work"):
                yield Listing(id="targets")
                with Container(id="canvas"):
                    yield Rows(id="target")
                    yield ChainDrawing()
            yield Rows(id="facts")
        yield Rows(id="descriptor")

    @property
    def ready(self) -> bool:
        return super().ready and bool(self.query(ChainDrawing)) and bool(self.query(Listing))

    def listing(self) -> Listing:
        return self.query_one("#targets", Listing)

    # ------------------------------------------------------------------------- drawing

    def draw_middle(self, draft: Draft) -> None:
        tree = self.chain
        if self._seen != (draft.name, draft.target):
            self._seen, self._scrolled = (draft.name, draft.target), 0
            self.path = next((p for p, _ in chain_tree.leaves(tree)), ()) if tree else ()
        if tree is not None:
            self.path = self._nearest(tree)
        alone = len(draft.targets) < 2
        if alone != self.has_class("-alone"):  # the drawing has another width then
            self.set_class(alone, "-alone")
            self.call_after_refresh(self.draw)
        self._draw_targets(draft)
        self._draw_chain(draft, tree)
        self._draw_text(draft)

    def _nearest(self, tree: Tree) -> Path:
        """The path, as far as there is something on it."""
        path: Path = ()
        for index in self.path:
            here = chain_tree.at(tree, path)
            if not isinstance(here, PartGroup) or index >= len(here.parts):
                break
            path = (*path, index)
        if path == self.path:
            return path
        return next((p for p, _ in chain_tree.leaves(tree) if p[: len(path)] == path), ())

    def _draw_targets(self, draft: Draft) -> None:
        titles = titles_of(draft)
        count = len(titles)
        wrong = [draft.mistake_at("targets", index) is not None for index in range(count)]

        def row(index: int, here: bool, width: int) -> Row:
            target = draft.targets[index]
            return chain_rows.target_row(target, titles[index], wrong[index], here, width)

        heading: Row = ((" targets ", "dim"),)
        self.listing().show_lines(heading, count, row, draft.target)

    def _draw_chain(self, draft: Draft, tree: Tree | None) -> None:
        titles = titles_of(draft)
        canvas = self.query_one(ChainDrawing)
        head: Row = ((" no target yet", "dim"),)
        if titles:
            place = f"  {draft.target + 1} of {len(titles)}" if len(titles) > 1 else ""
            head = ((f" {plain(titles[draft.target])}", "strong"), (place, "dim"))
        self.query_one("#target", Rows).show([head])
        if tree is None:
            canvas.show([(), *self._why_nothing()])
            self.query_one("#facts", Rows).show([])
            return
        chosen = self.path

        def look_of(path: Path) -> Look:
            if path[: len(chosen)] == chosen:
                return "badge"
            field = chain_tree.field_of(tree, path, draft.target)
            return "bad" if draft.mistake_at(*field) else ""

        room = canvas.size
        ends = self.ends()
        drawn = drawing(tree, look_of, room.width - 2, room.height, ends)
        canvas.show_chain(drawn, chosen)
        facts = self.query_one("#facts", Rows)
        facts.show(chain_rows.part_rows(draft, tree, chosen, self._mistake(tree), facts.size.width))

    def _mistake(self, tree: Tree) -> Mistake | None:
        """The part's own mistake, else the first one of its target."""
        draft = self.draft
        field = chain_tree.field_of(tree, self.path, draft.target)
        return draft.mistake_at(*field) or draft.mistake_at("targets", draft.target)

    def _why_nothing(self) -> list[Row]:
        if self.unreadable:
            edit = self.key("draft.editor")
            return [((f" This target cannot be drawn: see below. {edit} edits the text.", "warn"),)]
        add, policy = self.key("chain.add"), self.key("chain.policy")
        return [
            ((f" Press {add} to choose the first function,", ""),),
            ((f" or {policy} for all chains that obey a policy.", ""),),
        ]

    def _draw_text(self, draft: Draft) -> None:
        box = self.query_one("#descriptor", Rows)
        rows, first, worst = chain_rows.descriptor_rows(
            draft.text, draft.own_mistakes, draft.target
        )
        others = [m for m in draft.mistakes if m not in draft.own_mistakes]
        rows = [*(((f" ! {plain(str(m))}", "bad"),) for m in others), *rows]
        height = max(1, box.size.height)
        most = max(0, len(rows) - height)
        if not draft.readable and draft.mistakes:
            first = worst = draft.mistakes[0].line - 1
        base = max(0, min(max(first - 1, worst - height + 2), most))
        top = max(0, min(base + self._scrolled, most))
        self._scrolled = top - base
        box.show(rows[top : top + height])

    # ------------------------------------------------------------------------- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        draft, tree = self.draft, self.chain
        writes = draft.is_open and draft.readable and draft.role == "operator"
        builds = writes and draft.palette is not None
        on = writes and tree is not None
        leaf = self.part if on and isinstance(self.part, Leaf) else None
        many = tree is not None and isinstance(tree, PartGroup)
        conditions = {
            "add": (builds and not self.unreadable) or self._may_start,
            "add_beside": builds and on,
            "add_target": builds,
            "add_policy": builds or self._may_start,
            "part_earlier": on and self._can_move(-1),
            "part_later": on and self._can_move(1),
            "replicate": on and leaf is not None and not leaf.is_chain,
            "passive": on and leaf is not None and not leaf.is_chain and (many or leaf.passive),
            "remove_part": on,
            "remove_target": writes and bool(draft.targets),
            "copy_target": writes and bool(draft.targets),
            "details": on,
            "unpack": on and leaf is not None and leaf.is_chain,
            "part_left": draft.is_open and many,
            "part_right": draft.is_open and many,
            "widen": draft.is_open and many,
            "text_down": draft.is_open,
            "text_up": draft.is_open,
            "campaign": draft.is_open and any(screen.name == CAMPAIGN for screen in SCREENS),
        }
        return conditions.get(action, super().check_action(action, parameters))

    def why_not(self, method: str) -> str:
        draft, tree = self.draft, self.chain
        if draft.is_open and method in LOOKING:
            return self._why_no_part() or "There is no other part to choose."
        if said := super().why_not(method):
            return said
        edit = self.key("draft.editor")
        if not draft.readable:
            return (
                f"The text cannot be read: {edit} edits it, {self.key('app.undo')} takes it back."
            )
        if method in ADDING and draft.palette is None:
            return "Functions and chains are still being looked up."
        if method in ("add", "add_beside") and self.unreadable:
            return f"This target cannot be drawn: {edit} edits the text."
        if method in ("remove_target", "copy_target"):
            return f"There is no target yet: {self.key('chain.add')} adds a function."
        if method in ON_A_PART:
            return self._why_no_part() or self._why_not_of(method, self.part, tree)
        return ""

    def _why_no_part(self) -> str:
        if self.unreadable:
            return f"This target cannot be drawn: {self.key('draft.editor')} edits the text."
        if self.chain is None:
            return f"There is no function yet: {self.key('chain.add')} adds one."
        return ""

    def _why_not_of(self, method: str, part: Tree | None, tree: Tree | None) -> str:
        """Why an edit makes no sense of this part."""
        if method == "part_earlier":
            return "Nothing comes before it that it could change places with."
        if method == "part_later":
            return "Nothing comes after it that it could change places with."
        if method == "unpack":
            return "Only a chain of the palette is unpacked, and this is none."
        if not isinstance(part, Leaf):
            return f"This is a group: {self.key('chain.right')} chooses a function of it."
        if part.is_chain:
            return f"This is a chain: {self.key('chain.unpack')} puts its functions in its place."
        if method == "passive" and not isinstance(tree, PartGroup):
            return "It is the only function: traffic must have a way past a passive one."
        return ""

    @property
    def _may_start(self) -> bool:
        """Nothing is open, and a first function may start a draft."""
        draft = self.draft
        return not draft.is_open and draft.role == "operator" and self.drafts is not None

    def _can_move(self, by: int) -> bool:
        tree = self.chain
        return tree is not None and chain_tree.moved(tree, self.path, by)[1] != self.path

    def jump_targets(self) -> Iterator[JumpTarget]:
        yield from super().jump_targets()
        if not self.draft.is_open:
            return
        for offset, path in self.query_one(ChainDrawing).places():
            yield offset, partial(self.look_at, path)

    def on_listing_moved(self) -> None:
        self.go_to_target(self.listing().cursor)

    def on_chain_drawing_resized(self) -> None:
        self.draw()

    def on_chain_drawing_picked(self, message: ChainDrawing.Picked) -> None:
        self.look_at(message.path)

    def action_part_left(self) -> None:
        self._step(-1)

    def action_part_right(self) -> None:
        self._step(1)

    def _step(self, by: int) -> None:
        tree = self.chain
        if tree is None:
            return
        paths = [path for path, _ in chain_tree.leaves(tree)]
        here = next((i for i, p in enumerate(paths) if p[: len(self.path)] == self.path), 0)
        inside = isinstance(chain_tree.at(tree, self.path), PartGroup)
        self.look_at(paths[here if inside else (here + by) % len(paths)])

    def action_widen(self) -> None:
        """The group around the part; around the whole there is nothing, so back to a function."""
        tree = self.chain
        if tree is not None:
            first = next(path for path, _ in chain_tree.leaves(tree))
            self.look_at(self.path[:-1] if self.path else first)

    def action_text_down(self) -> None:
        self._scrolled += 3
        self.draw()

    def action_text_up(self) -> None:
        self._scrolled -= 3
        self.draw()

    def action_campaign(self) -> None:
        self.workbench.go(CAMPAIGN)
