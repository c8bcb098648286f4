"""A target of a draft as a tree that can be edited, and back to what its descriptor says.

Paths lead from the root of the tree to a part: `()` is the whole, `(1, 0)` the first part of the
second. Every edit gives a new tree in its plain form: no series in a series, no group of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from workbench.domain.drafts import Palette
from workbench.domain.topology import Node as Graph
from workbench.domain.topology import Parallel, Series, Vnf
from workbench.tui.text import plain

Path = tuple[int, ...]
Form = Literal["series", "parallel"]
FORMS = ("vnf", "chain", "series", "parallel")
_LONGEST_NAME = 60
_PERCENT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")
_FRACTION = re.compile(r"\s*(0?\.[0-9]+)\s*")


@dataclass(frozen=True)
class Leaf:
    """A VNF, or a chain that has a descriptor of its own.

    `share` is of the traffic, as it was typed; None where the branches share alike, and outside of
    parallel branches.
    """

    template: str
    name: str = ""
    """Of the instance, where it is not its template's."""
    is_chain: bool = False
    passive: bool = False
    share: Any = None

    @property
    def title(self) -> str:
        return self.name or self.template


@dataclass(frozen=True)
class PartGroup:
    """Parts in series or in parallel."""

    form: Form
    parts: tuple[Tree, ...]
    share: Any = None


Tree = Leaf | PartGroup

# --------------------------------------------------------------------------- from and to YAML


def tree_of(target: Any) -> Tree | None:
    """A target's composition; None where it has none, or one that is no tree."""
    if isinstance(target, str):
        return Leaf(target)
    if not isinstance(target, dict):
        return None
    used = [form for form in FORMS if target.get(form) is not None]
    if len(used) != 1:
        return None
    form, given, share = used[0], target[used[0]], target.get("share")
    if form in ("vnf", "chain"):
        name = target.get("name") if form == "vnf" else None
        if not isinstance(given, str):
            return None
        passive = target.get("placement") == "passive"
        return Leaf(given, name if isinstance(name, str) else "", form == "chain", passive, share)
    if not isinstance(given, list) or not given:
        return None
    parts = [tree_of(part) for part in given]
    if any(part is None for part in parts):
        return None
    known = tuple(part for part in parts if part is not None)
    return PartGroup("series" if form == "series" else "parallel", known, share)


def composition(tree: Tree) -> dict[str, Any]:
    """What a target says of its composition."""
    if isinstance(tree, Leaf):
        # A target's own name is the profile's, so that an instance's name needs a series.
        if not (tree.name or tree.passive):
            return {"chain" if tree.is_chain else "vnf": tree.template}
        return {"series": [_part(tree)]}
    return {tree.form: [_part(part) for part in tree.parts]}


def _part(tree: Tree) -> Any:
    said: dict[str, Any] = {}
    if isinstance(tree, Leaf):
        if not (tree.is_chain or tree.name or tree.passive) and tree.share is None:
            return tree.template
        said["chain" if tree.is_chain else "vnf"] = tree.template
        if tree.name:
            said["name"] = tree.name
        if tree.passive:
            said["placement"] = "passive"
    else:
        said[tree.form] = [_part(part) for part in tree.parts]
    if tree.share is not None:
        said["share"] = tree.share
    return said


def field_of(tree: Tree, path: Path, target: int) -> tuple[str | int, ...]:
    """Where a part stands in the document, for its mistakes."""
    field: list[str | int] = ["targets", target]
    here = tree
    for index in path:
        assert isinstance(here, PartGroup)
        field += [here.form, index]
        here = here.parts[index]
    return tuple(field)


# --------------------------------------------------------------------------- looking


def at(tree: Tree, path: Path) -> Tree:
    """The part at a path, or the nearest one above it."""
    for index in path:
        if not isinstance(tree, PartGroup) or not 0 <= index < len(tree.parts):
            break
        tree = tree.parts[index]
    return tree


def leaves(tree: Tree, path: Path = ()) -> Iterator[tuple[Path, Leaf]]:
    """From the source's side, branch by branch."""
    if isinstance(tree, Leaf):
        yield path, tree
    else:
        for index, part in enumerate(tree.parts):
            yield from leaves(part, (*path, index))


def instances(tree: Tree, palette: Palette | None) -> list[str]:
    """Names of all functions, those of chains by name included."""
    found: list[str] = []
    for _, leaf in leaves(tree):
        chain = palette.chain(leaf.template) if palette and leaf.is_chain else None
        if chain is not None:
            found += names_in(chain.graph)
        elif not leaf.is_chain:
            found.append(leaf.title)
    return found


def way_through(graph: Graph) -> str:
    """`lb → split (a | b)`: what traffic passes, and where it is split."""
    match graph:
        case Series(parts=parts):
            return " → ".join(map(way_through, parts))
        case Parallel(branches=branches):
            return f"split ({' | '.join(map(way_through, branches))})"
    return graph.name


def names_in(graph: Graph) -> list[str]:
    """Names of the functions of a chain."""
    match graph:
        case Vnf(name=name):
            return [name]
        case Series(parts=parts):
            return [name for part in parts for name in names_in(part)]
        case Parallel(branches=branches):
            return [name for branch in branches for name in names_in(branch)]


def tree_from(graph: Graph) -> Tree:
    """The tree of a chain that somebody else made."""
    match graph:
        case Vnf(name=name, template=template):
            return Leaf(template, name if name != template else "")
        case Series(parts=parts):
            return _plain(PartGroup("series", tuple(map(tree_from, parts))))
        case Parallel(branches=branches, shares=shares):
            alike = len(set(shares)) <= 1
            return PartGroup(
                "parallel",
                tuple(
                    replace(tree_from(branch), share=None if alike else share)
                    for branch, share in zip(branches, shares, strict=True)
                ),
            )


def auto_name(tree: Tree) -> str:
    """What a target is called that nobody named: `tinyproxy-haproxy`, `lb-split-a-b`."""
    return "-".join(_words(tree))[:_LONGEST_NAME].rstrip("-")


def _words(tree: Tree) -> list[str]:
    if isinstance(tree, Leaf):
        return [tree.title]
    words = [word for part in tree.parts for word in _words(part)]
    return ["split", *words] if tree.form == "parallel" else words


def fresh(leaf: Leaf, tree: Tree | None, palette: Palette | None) -> Leaf:
    """The leaf with a name that no function of the tree has."""
    taken = set(instances(tree, palette)) if tree is not None else set()
    if leaf.is_chain or leaf.title not in taken:
        return leaf
    number = 2
    while f"{leaf.template}-{number}" in taken:
        number += 1
    return replace(leaf, name=f"{leaf.template}-{number}")


# --------------------------------------------------------------------------- editing


def added_behind(tree: Tree | None, path: Path, new: Leaf) -> tuple[Tree, Path]:
    """`new` in series behind the part; where it stands then."""
    if tree is None:
        return new, ()
    part = at(tree, path)
    pair = PartGroup("series", (replace(part, share=None), new), part.share)
    return _settled(_put(tree, path, pair), new)


def added_beside(tree: Tree | None, path: Path, new: Leaf) -> tuple[Tree, Path]:
    """`new` in parallel with the part: one branch more where it is a branch already."""
    if tree is None:
        return new, ()
    above = at(tree, path[:-1]) if path else None
    if isinstance(above, PartGroup) and above.form == "parallel":
        index = path[-1]
        parts = (*above.parts[: index + 1], new, *above.parts[index + 1 :])
        return _settled(_put(tree, path[:-1], _alike(replace(above, parts=parts))), new)
    part = at(tree, path)
    if isinstance(part, PartGroup) and part.form == "parallel":
        return _settled(_put(tree, path, _alike(replace(part, parts=(*part.parts, new)))), new)
    pair = PartGroup("parallel", (replace(part, share=None), new), part.share)
    return _settled(_put(tree, path, pair), new)


def removed(tree: Tree, path: Path) -> tuple[Tree | None, Path]:
    """Without the part; None where nothing is left. And the part that stands near by then."""
    if not path:
        return None, ()
    above = at(tree, path[:-1])
    assert isinstance(above, PartGroup)
    index = path[-1]
    rest = replace(above, parts=(*above.parts[:index], *above.parts[index + 1 :]))
    found = _plain(_put(tree, path[:-1], _alike(rest)))
    paths = [p for p, _ in leaves(found)]
    before = sum(p < path for p, _ in leaves(tree))
    return found, paths[min(before, len(paths) - 1)]


def moved(tree: Tree, path: Path, by: int) -> tuple[Tree, Path]:
    """The part one place towards the source (-1) or the sink (1) among its neighbours."""
    above = at(tree, path[:-1]) if path else None
    if not isinstance(above, PartGroup):
        return tree, path
    index, other = path[-1], path[-1] + by
    if not 0 <= other < len(above.parts):
        return tree, path
    parts = list(above.parts)
    parts[index], parts[other] = parts[other], parts[index]
    return _put(tree, path[:-1], replace(above, parts=tuple(parts))), (*path[:-1], other)


def replaced(tree: Tree, path: Path, part: Tree) -> Tree:
    """With another part in that place."""
    return _plain(_put(tree, path, part))


def share_text(share: object) -> str:
    """A share as it was typed; percents all alike."""
    typed = plain(str(share))
    found = _PERCENT.fullmatch(typed)
    return f"{found[1]} %" if found else typed


def shared(tree: Tree, path: Path, share: str) -> Tree:
    """The branch with a share. Others that have none, or are alone, get what is left.

    An empty share makes all branches alike.
    """
    above = at(tree, path[:-1])
    assert isinstance(above, PartGroup)
    mine, others = path[-1], [i for i in range(len(above.parts)) if i != path[-1]]
    shares: dict[int, Any] = {mine: share} if share else dict.fromkeys((mine, *others))
    found, whole, unit = _PERCENT.fullmatch(share), 100, "%"
    if found is None:
        found, whole, unit = _FRACTION.fullmatch(share), 1, ""
    free = [i for i in others if above.parts[i].share is None] or (
        others if len(others) == 1 else []
    )
    if found and len(free) == len(others):
        rest = (whole - float(found[1])) / len(free)
        shares |= dict.fromkeys(free, f"{rest:.6g}{unit}")
    parts = tuple(
        replace(part, share=shares.get(i, part.share)) for i, part in enumerate(above.parts)
    )
    return _put(tree, path[:-1], replace(above, parts=parts))


def branch(tree: Tree, path: Path) -> bool:
    """Whether the part is a branch of parallel ones."""
    above = at(tree, path[:-1]) if path else None
    return isinstance(above, PartGroup) and above.form == "parallel"


def _put(tree: Tree, path: Path, part: Tree) -> Tree:
    if not path:
        return part
    assert isinstance(tree, PartGroup)
    index, *rest = path
    below = _put(tree.parts[index], tuple(rest), part)
    return replace(tree, parts=(*tree.parts[:index], below, *tree.parts[index + 1 :]))


def _alike(group: PartGroup) -> PartGroup:
    """Shares are for the branches that there were: the new ones share alike."""
    if group.form == "series":
        return group
    parts = (part if part.share is None else replace(part, share=None) for part in group.parts)
    return replace(group, parts=tuple(parts))


def _plain(tree: Tree) -> Tree:
    """No series in a series, no parallel in a parallel that shares alike, no group of one."""
    if isinstance(tree, Leaf):
        return tree
    parts: list[Tree] = []
    for part in map(_plain, tree.parts):
        alike = isinstance(part, PartGroup) and part.form == tree.form == "series"
        parts += part.parts if isinstance(part, PartGroup) and alike else [part]
    if len(parts) == 1:
        return replace(parts[0], share=tree.share)
    return replace(tree, parts=tuple(parts))


def _settled(tree: Tree, new: Leaf) -> tuple[Tree, Path]:
    found = _plain(tree)
    return found, next((p for p, leaf in leaves(found) if leaf is new), ())


# --------------------------------------------------------------------------- targets


def with_tree(
    target: Mapping[str, Any], tree: Tree, palette: Palette | None, taken: set[str]
) -> dict[str, Any]:
    """A target with another composition; what it says of functions that are gone, goes.

    `taken` are the names of the other targets. A name that was made of the functions is made anew.
    """
    before = tree_of(target)
    said = composition(tree)
    name = target.get("name")
    made = name is None or (before is not None and _is_made(name, before))
    new: dict[str, Any] = {}
    if "series" in said or "parallel" in said:
        new["name"] = unique(auto_name(tree), taken) if made else name
    elif not made or auto_name(tree) in taken:
        new["name"] = name if not made else unique(auto_name(tree), taken)
    new |= said
    new |= {key: value for key, value in target.items() if key not in ("name", *FORMS)}
    _keep_resources(new, before, tree, palette)
    return new


def _is_made(name: object, tree: Tree) -> bool:
    """Whether a target's name was made of its functions, with a counter or without."""
    auto = auto_name(tree)
    rest = name.removeprefix(auto) if isinstance(name, str) and name.startswith(auto) else "?"
    return rest == "" or (rest[0] == "-" and rest[1:].isdigit())


def unique(name: str, taken: set[str]) -> str:
    """The name, with a counter where another target has it."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name[: _LONGEST_NAME - 4]}-{number}"
    return found


def _keep_resources(
    target: dict[str, Any], before: Tree | None, tree: Tree, palette: Palette | None
) -> None:
    parameters = target.get("resource_parameters")
    if not isinstance(parameters, list) or before is None:
        return
    was, now = instances(before, palette), instances(tree, palette)
    gone, come = set(was) - set(now), set(now) - set(was)
    renamed = {*gone, *come} if len(was) == len(now) and len(gone) == len(come) == 1 else set()
    kept = []
    for parameter in parameters:
        if isinstance(parameter, dict):
            vnf = parameter.get("vnf", was[0] if len(was) == 1 else None)
            if vnf in gone and vnf in renamed:
                vnf = next(iter(come))
            elif vnf in gone:
                continue
            if vnf is not None:
                rest = {key: value for key, value in parameter.items() if key != "vnf"}
                parameter = {"vnf": vnf, **rest}
        kept.append(parameter)
    if kept:
        target["resource_parameters"] = kept
    else:
        del target["resource_parameters"]


def without_idle_managers(document: dict[str, Any], palette: Palette | None) -> None:
    """Managers of functions that no target has any more go; the document is changed."""
    managers, targets = document.get("managers"), document.get("targets")
    if not isinstance(managers, dict) or not isinstance(targets, list):
        return
    trees = [tree_of(target) for target in targets]
    if any(tree is None for tree in trees):
        return
    used = {name for tree in trees if tree is not None for name in instances(tree, palette)}
    for name in [n for n in managers if n not in ("source", "sink") and n not in used]:
        del managers[name]
    if not managers:
        del document["managers"]
