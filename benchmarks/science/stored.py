"""Results on disk, by the code that made them: an interrupted run goes on, a changed part is
played again and nothing else is.

A file of JSON lines per name and digest. The digest is of a module and of every module of ours
that it imports, wherever in its text: lazy imports count. What takes hours and does not depend on
the machine, references and curves, stands in the tree: `rm -r benchmarks/results/science` before a
run plays everything anew.
"""

from __future__ import annotations

import ast
import importlib.util
import json
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "bench-science"
KEPT = ROOT / "benchmarks" / "results" / "science"
IN_TREE = ("references/", "curves/")
"""Results of one digest are the same on every machine; these stand in the tree."""
OURS = ("workbench.models", "workbench.sampling", "science", "workbench_")
"""Packages whose text decides a result; words and plugins of the house do not."""


@cache
def _source(module: str) -> Path | None:
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return Path(found.origin) if found and found.origin and found.has_location else None


@cache
def _imports(module: str) -> frozenset[str]:
    """What a module of ours imports from ours, by its text."""
    path = _source(module)
    if path is None or path.suffix != ".py":
        return frozenset()
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(n for n in names if n.startswith(OURS) and _source(n))


@cache
def digest(*modules: str) -> str:
    """Of the text of modules and of what of ours they import, directly or not."""
    seen: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting.extend(_imports(module))
    taken = blake2b(digest_size=6)
    for module in sorted(seen):
        path = _source(module)
        if path is not None:
            taken.update(path.read_bytes())
    return taken.hexdigest()


class Store:
    """Lines by name below `folder`; those of `IN_TREE` below `kept`."""

    def __init__(self, folder: Path = CACHE, kept: Path = KEPT) -> None:
        self.folder, self.kept = folder, kept

    def add(self, name: str, line: Any) -> None:
        """One result; whole lines only, so that two processes may add at once."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Python's own JSON: it knows infinity, the error of a model that failed.
        text = json.dumps(msgspec.to_builtins(line), separators=(",", ":"))
        with path.open("ab") as file:
            file.write(text.encode() + b"\n")

    def lines(self, name: str, kind: type[T]) -> Iterator[T]:
        """In the order stored; a last one that was cut short by a kill is passed over."""
        return lines_of(self.path(name), kind)

    def path(self, name: str) -> Path:
        """Where the lines of that name are."""
        folder = self.kept if name.startswith(IN_TREE) else self.folder
        return folder / f"{name.replace(':', '/')}.jsonl"


def lines_of(path: Path, kind: type[T]) -> Iterator[T]:
    """Those of a file, none where it is not there."""
    if not path.exists():
        return
    for line in path.read_bytes().splitlines():
        try:
            yield msgspec.convert(json.loads(line), type=kind)
        except (ValueError, msgspec.ValidationError):
            continue
