"""The drawing of a chain: source, functions, branches with their shares, sink.

Boxes where there is room, one line for each branch where there is not. Every piece knows the part
that it belongs to, so that a part can be clicked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from rich.cells import cell_len

from workbench.tui.screens.chain.chain_tree import Leaf, PartGroup, Path, Tree, share_text
from workbench.tui.text import plain
from workbench.tui.widgets.rows import Look, Row, fit

LookOf = Callable[[Path], Look]
"""How a function is drawn: chosen, wrong, or plain."""
Piece = tuple[str, Look, Path | None]

_LINES = {
    (0, 0, 1, 1): "─", (1, 1, 0, 0): "│", (0, 1, 0, 1): "┌", (0, 1, 1, 0): "┐",
    (1, 0, 0, 1): "└", (1, 0, 1, 0): "┘", (1, 1, 0, 1): "├", (1, 1, 1, 0): "┤",
    (0, 1, 1, 1): "┬", (1, 0, 1, 1): "┴", (1, 1, 1, 1): "┼",
}  # fmt: skip
"""By whether a line goes up, down, left, right."""


@dataclass(frozen=True)
class Drawing:
    """Rows of equal width; traffic enters and leaves at the row `axis`."""

    rows: tuple[tuple[Piece, ...], ...]
    axis: int

    @property
    def width(self) -> int:
        return sum(cell_len(text) for text, _, _ in self.rows[0])

    @property
    def height(self) -> int:
        return len(self.rows)

    def part_at(self, x: int, y: int) -> Path | None:
        """The part that is drawn there."""
        if not 0 <= y < self.height:
            return None
        ends = accumulate(cell_len(text) for text, _, _ in self.rows[y])
        pairs = zip(ends, self.rows[y], strict=True)
        return next((path for end, (_, _, path) in pairs if x < end), None)

    def columns_of(self, path: Path) -> tuple[int, int]:
        """From where to where a part is drawn."""
        found = []
        for row in self.rows:
            start = 0
            for text, _, of in row:
                if of is not None and of[: len(path)] == path:
                    found += [start, start + cell_len(text)]
                start += cell_len(text)
        return (min(found), max(found)) if found else (0, 0)


def drawing(
    tree: Tree | None, look_of: LookOf, width: int, height: int, ends: tuple[str, str]
) -> Drawing:
    """A chain between its ends, in boxes if that fits."""
    boxed = _whole(tree, look_of, ends, boxes=True)
    if boxed.width <= width and boxed.height <= height:
        return boxed
    return _whole(tree, look_of, ends, boxes=False)


def window(drawn: Drawing, path: Path, width: int, height: int) -> tuple[list[Row], int, int]:
    """The rows that fit, so that the part is seen; and how much was left out at left and top."""
    start, end = drawn.columns_of(path)
    left = 0
    if drawn.width > width:
        left = max(0, min((start + end - width) // 2, drawn.width - width))
    here = [y for y, row in enumerate(drawn.rows) for _, _, of in row if of == path] or [0]
    top = 0
    if drawn.height > height:
        top = max(0, min(here[0] - height // 2, drawn.height - height))
    return [_cut(row, left, width) for row in drawn.rows[top : top + height]], left, top


def _cut(row: Sequence[Piece], left: int, width: int) -> Row:
    spans: list[tuple[str, Look]] = []
    at = 0
    for text, look, _ in row:
        start, end = max(left - at, 0), left + width - at
        if end > 0 and (seen := text[start:end]):
            spans.append((seen, look))
        at += cell_len(text)
    if left and spans:
        spans[0] = ("…" + spans[0][0][1:], spans[0][1])
    if at > left + width and spans:
        spans[-1] = (spans[-1][0][:-1] + "…", spans[-1][1])
    return tuple(spans)


# --------------------------------------------------------------------------- blocks


def _whole(tree: Tree | None, look_of: LookOf, ends: tuple[str, str], *, boxes: bool) -> Drawing:
    source, sink = (_line(((plain(name), "strong", None),)) for name in ends)
    if tree is None:
        gap = _line(((" ──▶ ", "dim", None), ("nothing yet", "dim", None), (" ──▶ ", "dim", None)))
        return _beside([source, gap, sink])
    splits = isinstance(tree, PartGroup) and tree.form == "parallel"
    last = tree.parts[-1] if isinstance(tree, PartGroup) and not splits else tree
    first = tree.parts[0] if isinstance(tree, PartGroup) and not splits else tree
    block = _block(tree, (), look_of, boxes)
    return _beside([source, _arrow(None, first), block, _arrow(last, None), sink])


def _line(pieces: tuple[Piece, ...]) -> Drawing:
    return Drawing((pieces,), 0)


def _block(tree: Tree, path: Path, look_of: LookOf, boxes: bool) -> Drawing:
    if isinstance(tree, Leaf):
        return (_box if boxes else _name)(tree, path, look_of(path))
    blocks = [_block(part, (*path, i), look_of, boxes) for i, part in enumerate(tree.parts)]
    if tree.form == "series":
        joined = [blocks[0]]
        for index, block in enumerate(blocks[1:]):
            joined += [_arrow(tree.parts[index], tree.parts[index + 1]), block]
        return _beside(joined)
    return _branches(tree, blocks)


def _arrow(before: Tree | None, behind: Tree | None) -> Drawing:
    """From one part to the next; a line goes on where traffic splits, and comes from a join."""
    joins, splits = _is_parallel(before), _is_parallel(behind)
    text = ("─" if joins else " ") + "─" + ("──" if splits else "▶ ")
    return _line(((text, "dim", None),))


def _is_parallel(tree: Tree | None) -> bool:
    return isinstance(tree, PartGroup) and tree.form == "parallel"


COPY = " (copy)"
"""Of a passive function: it gets a copy of what reaches the part behind it."""


def _title(leaf: Leaf) -> str:
    title = plain(leaf.title)
    if leaf.name and leaf.name != leaf.template:
        title += f" ({plain(leaf.template)})" if not leaf.name.startswith(leaf.template) else ""
    return f"[{title}]" if leaf.is_chain else title


def _name(leaf: Leaf, path: Path, look: Look) -> Drawing:
    mark = COPY if leaf.passive else ""
    return _line(((f" {_title(leaf)}{mark} ", look, path),))


def _box(leaf: Leaf, path: Path, look: Look) -> Drawing:
    title = f" {_title(leaf)}{COPY if leaf.passive else ''} "
    rule, side = ("┄", "┆") if leaf.passive else ("─", "│")
    line = rule * cell_len(title)
    edge: Look = look if look in ("bad", "accent") else ""
    return Drawing(
        (
            ((f"┌{line}┐", edge, path),),
            ((side, edge, path), (title, look, path), (side, edge, path)),
            ((f"└{line}┘", edge, path),),
        ),
        1,
    )


def _beside(blocks: Sequence[Drawing]) -> Drawing:
    """Joined along their axes."""
    above = max(block.axis for block in blocks)
    below = max(block.height - block.axis for block in blocks)
    rows: list[tuple[Piece, ...]] = []
    for y in range(-above, below):
        row: list[Piece] = []
        for block in blocks:
            inside = 0 <= block.axis + y < block.height
            row += block.rows[block.axis + y] if inside else ((" " * block.width, "", None),)
        rows.append(tuple(row))
    return Drawing(tuple(rows), above)


def _branches(group: PartGroup, blocks: Sequence[Drawing]) -> Drawing:
    """One below the other, between the lines that split and join the traffic."""
    labels = [_share(part.share, len(blocks)) for part in group.parts]
    label = max(map(cell_len, labels))
    width = max(block.width for block in blocks)
    tops = list(accumulate((block.height for block in blocks), initial=0))
    axes = [top + block.axis for top, block in zip(tops, blocks, strict=False)]
    axis = (axes[0] + axes[-1]) // 2
    rows: list[tuple[Piece, ...]] = []
    for top, block, text in zip(tops, blocks, labels, strict=False):
        for y, row in enumerate(block.rows):
            here = top + y
            on = here == top + block.axis
            left = _corner(here, axes, axis, split=True)
            right = _corner(here, axes, axis, split=False)
            lead = f"─ {fit(text, label)} ─▶ " if on else " " * (label + 6)
            tail = ("─" if on else " ") * (width - block.width + 1)
            rows.append(
                ((left, "dim", None), (lead, "dim", None), *row, (tail + right, "dim", None))
            )
    return Drawing(tuple(rows), axis)


def _corner(y: int, axes: Sequence[int], axis: int, *, split: bool) -> str:
    inside = axes[0] <= y <= axes[-1]
    if not inside:
        return " "
    branch, trunk = y in axes, y == axis
    left, right = (trunk, branch) if split else (branch, trunk)
    return _LINES.get((int(y > axes[0]), int(y < axes[-1]), int(left), int(right)), "│")


def _share(share: object, branches: int) -> str:
    """What a branch gets, as it was typed."""
    if share is None:
        return f"{100 / branches:.3g} %"
    if isinstance(share, float) and 0 < share <= 1:
        return f"{100 * share:.3g} %"
    return share_text(share)[:12]
