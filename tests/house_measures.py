"""What the checks of the house count in the package, by its text: nothing is imported.

Names in what is returned begin below `workbench`: `tui.app`, `engine.core.Engine.answer`.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

MOST_LINES, MOST_PARAMETERS = 80, 6
USUAL = ("__init__", "__main__", "base")
"""Module names that every room may have."""
Imports = dict[str, set[str]]
KINDS = ("loading", "types", "deferred")
"""When an import is done: on loading, for types only, in a function. Each counts those before."""


@dataclass(frozen=True)
class Module:
    name: str
    is_package: bool
    tree: ast.Module


class Package:
    """The modules of a package by name."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def modules(self) -> dict[str, Module]:
        """Read when they are first asked for: whoever collects tests does without."""
        found = {}
        for path in sorted(self.root.rglob("*.py")):
            parts = path.relative_to(self.root).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            found[name] = Module(name, is_package, ast.parse(path.read_bytes()))
        return found

    def class_names(self) -> dict[str, list[str]]:
        """Public classes that stand in several modules."""
        found = defaultdict(list)
        for module in self.modules.values():
            for node in module.tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(module.name)
        return _several(found)

    def module_names(self) -> dict[str, list[str]]:
        """Modules of the same name in several folders."""
        found = defaultdict(list)
        for module in self.modules.values():
            folder, _, last = module.name.rpartition(".")
            if not module.is_package and last not in USUAL:
                found[last].append(folder)
        return _several(found)

    def long_functions(self) -> dict[str, int]:
        """Lines of functions that have too many."""
        counts = {name: (node.end_lineno or 0) - node.lineno + 1 for name, node in self._functions}
        return {name: lines for name, lines in counts.items() if lines > MOST_LINES}

    def many_parameters(self) -> dict[str, int]:
        """Parameters of functions that have too many, `self` and `cls` not counted."""
        found = {}
        for name, node in self._functions:
            taken = node.args
            names = [a.arg for a in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)]
            count = len(names) - (names[:1] in (["self"], ["cls"]))
            if count > MOST_PARAMETERS:
                found[name] = count
        return found

    def circles(self, kind: str) -> list[list[str]]:
        """Modules that import each other, directly or not."""
        edges: Imports = {}
        for module in self.modules.values():
            edges[module.name] = set(self._imported(module, module.tree.body, KINDS.index(kind)))
            edges[module.name].discard(module.name)
        return sorted(_strongly_connected(edges))

    def sentences(self, banned: Iterable[str]) -> dict[str, list[str]]:
        """Modules by what of the banned their strings hold; docstrings are not shown to anybody."""
        found: dict[str, list[str]] = {}
        for pattern in banned:
            own = [
                name
                for name, texts in self._strings.items()
                if any(re.search(pattern, text) for text in texts)
            ]
            if own:
                found[pattern] = own
        return found

    @cached_property
    def _functions(self) -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
        return [
            found for one in self.modules.values() for found in _functions_of(one.name, one.tree)
        ]

    @cached_property
    def _strings(self) -> dict[str, list[str]]:
        return {one.name: list(_strings_of(one.tree)) for one in self.modules.values()}

    def _imported(self, module: Module, body: Iterable[ast.AST], kind: int) -> Iterator[str]:
        for node in body:
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
                yield from self._imported(module, node.body if kind >= 1 else [], kind)
                yield from self._imported(module, node.orelse, kind)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                if kind == 2:
                    yield from self._imported(module, ast.iter_child_nodes(node), kind)
            elif isinstance(node, ast.Import):
                yield from (self._own(alias.name) for alias in node.names if self._is_own(alias))
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    parts = module.name.split(".")
                    parts = parts[: len(parts) - node.level + module.is_package]
                    base = ".".join((self.root.name, *parts, *([base] if base else [])))
                if base.split(".")[0] == self.root.name:
                    for alias in node.names:
                        deeper = self._own(f"{base}.{alias.name}")
                        yield deeper if deeper in self.modules else self._own(base)
            else:
                yield from self._imported(module, ast.iter_child_nodes(node), kind)

    def _is_own(self, alias: ast.alias) -> bool:
        return alias.name.split(".")[0] == self.root.name

    def _own(self, name: str) -> str:
        return name.removeprefix(self.root.name).removeprefix(".")


def _several(found: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {name: sorted(own) for name, own in sorted(found.items()) if len(own) > 1}


def _functions_of(
    name: str, tree: ast.AST
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{name}.{node.name}"
            if not isinstance(node, ast.ClassDef):
                yield inner, node
            yield from _functions_of(inner, node)
        else:
            yield from _functions_of(name, node)


def _strings_of(tree: ast.Module) -> Iterator[str]:
    """Strings, those with places to fill in as a whole, without docstrings and the like."""
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            parts.update(id(value) for value in node.values)
            yield "".join(
                str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values
            )
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts
        ):
            yield node.value


def _strongly_connected(edges: Imports) -> Iterator[list[str]]:
    """Tarjan's algorithm; circles of two and more."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(one: str) -> Iterator[list[str]]:
        index[one] = low[one] = len(index)
        stack.append(one)
        for other in sorted(edges.get(one, ())):
            if other not in index:
                yield from visit(other)
                low[one] = min(low[one], low[other])
            elif other in stack:
                low[one] = min(low[one], index[other])
        if low[one] == index[one]:
            circle = []
            while not circle or circle[-1] != one:
                circle.append(stack.pop())
            if len(circle) > 1:
                yield sorted(circle)

    for one in sorted(edges):
        if one not in index:
            yield from visit(one)
