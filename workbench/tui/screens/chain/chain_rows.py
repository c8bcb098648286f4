"""What the chain builder says in rows: targets, the part under the cursor, the descriptor."""

from __future__ import annotations

import re
from collections.abc import Sequence

from workbench.domain.counts import counted
from workbench.domain.drafts import Palette, PaletteChain, PaletteVnf
from workbench.domain.errors import Mistake
from workbench.tui.draft import Draft
from workbench.tui.screens.chain.chain_tree import (
    Leaf,
    PartGroup,
    Path,
    Tree,
    at,
    branch,
    leaves,
    share_text,
    tree_of,
    way_through,
)
from workbench.tui.text import plain, wrapped
from workbench.tui.widgets.rows import Look, Row, fit

_ITEM = re.compile(r"( *)- ")


def target_row(target: object, title: str, wrong: bool, here: bool, width: int) -> Row:
    """One line of the list of targets: its name, what it is, whether it is wrong."""
    tree = tree_of(target)
    functions = len(list(leaves(tree))) if tree is not None else 0
    what = "chain" if isinstance(tree, Leaf) and tree.is_chain else f"{functions}"
    look: Look = "badge" if here else "bad" if wrong else ""
    mark = "!" if wrong else " "
    name = fit(plain(title), max(1, width - 2 - len(what) - 1))
    return ((f"{mark}{name} ", look), (what, "badge" if here else "dim"), (" ", look))


def part_rows(
    draft: Draft, tree: Tree | None, path: Path, mistake: Mistake | None, width: int
) -> list[Row]:
    """What the part under the cursor is, and what is wrong with it."""
    if tree is None:
        return []
    part = at(tree, path)
    rows: list[Row] = []
    if isinstance(part, PartGroup):
        names = ", ".join(leaf.title for _, leaf in leaves(part))
        what = "in series" if part.form == "series" else "in parallel"
        head = f" {counted(len(part.parts), 'part')} {what} "
        rows.append(((head, "strong"), (plain(names), "dim")))
    else:
        rows += _leaf_rows(part, draft.palette)
    if branch(tree, path):
        said = "an equal share" if part.share is None else share_text(part.share)
        rows[0] = (*rows[0], (f"  branch: {said}", "dim"))
    if mistake is not None:
        del rows[1:]
        lines = wrapped(f"{_name_of(mistake)}{mistake.message}", max(20, width - 4))
        rows += [((f" {'!' if i == 0 else ' '} {plain(line)}", "bad"),) for i, line in
                 enumerate(lines)]  # fmt: skip
    return rows


def _name_of(mistake: Mistake) -> str:
    """The last name of a mistake's field; where it stands says the rest."""
    name = mistake.field.rpartition(".")[2]
    return "" if name.startswith(("series", "parallel", "targets[")) else f"{name}: "


def _leaf_rows(leaf: Leaf, palette: Palette | None) -> list[Row]:
    head: Row = ((f" {plain(leaf.title)} ", "strong"),)
    if palette is None:
        return [head]
    if leaf.is_chain:
        chain = palette.chain(leaf.template)
        said = chain_facts(chain) if chain else ("no chain of that name", "")
        return [(*head, (said[0], "dim")), ((f" {said[1]}", "dim"),)]
    vnf = palette.vnf(leaf.template)
    if vnf is None:
        return [(*head, ("no VNF of that name", "bad"))]
    of = f"{plain(leaf.template)}: " if leaf.name else ""
    return [(*head, (of + plain(vnf.summary), "dim")), ((f" {vnf_facts(vnf)}", "dim"),)]


def vnf_facts(vnf: PaletteVnf) -> str:
    """Its parameters in a line: `inline proxy, 25 % vCPU, balances load`."""
    facts = [f"{vnf.placement} {vnf.passage}", f"{100 * vnf.default_vcpu:g} % vCPU"]
    if vnf.balances:
        facts.append("balances load")
    facts += [f"{plain(key)}={plain(value)}" for key, value in vnf.settings.items()]
    if vnf.origin == "workspace":
        facts.append("of this workspace")
    return ", ".join(facts)


def chain_facts(chain: PaletteChain) -> tuple[str, str]:
    """Its summary, and its functions."""
    return plain(chain.summary), plain(way_through(chain.graph))


# --------------------------------------------------------------------------- the descriptor


def descriptor_rows(
    text: str, mistakes: Sequence[Mistake], target: int
) -> tuple[list[Row], int, int]:
    """The YAML with its mistakes below their lines; the row where the target begins; and that of
    its first mistake, or the same."""
    wrong: dict[int, list[Mistake]] = {}
    for mistake in mistakes:
        wrong.setdefault(mistake.line, []).append(mistake)
    begin, end = target_lines(text, target)
    rows: list[Row] = []
    first = worst = 0
    for number, line in enumerate(text.splitlines(), 1):
        if number == begin:
            first = worst = len(rows)
        here = begin <= number < end
        mark = "▎" if here else " "
        look: Look = "bad" if number in wrong else "" if here else "dim"
        rows.append(((mark, "accent"), (plain(line), look)))
        if here and number in wrong and worst == first:
            worst = len(rows)
        for mistake in wrong.get(number, ()):
            indent = len(line) - len(line.lstrip())
            said = f"{' ' * indent}! {_name_of(mistake)}{mistake.message}"
            rows.append(((mark, "accent"), (plain(said), "bad")))
    return rows, first, worst


def target_lines(text: str, target: int) -> tuple[int, int]:
    """First line of a target in the text, and the first behind it; (0, 0) where it is not seen."""
    indent, inside = "", False
    begins: list[int] = []
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if not inside:
            inside = line.startswith("targets:")
            continue
        found = _ITEM.match(line)
        if found and not begins:
            indent = found[1]
        if found and found[1] == indent:
            begins.append(number)
        elif line and not line.startswith((indent + " ", "#", " ")):
            begins.append(number)  # the key behind the targets
            break
    else:
        begins.append(len(lines) + 1)
    if not 0 <= target < len(begins) - 1:
        return 0, 0
    return begins[target], begins[target + 1]
