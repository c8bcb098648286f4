"""Parts by entry point: labs, generators, samplers, models, chain rules, costs, exports.

Built-in parts register the same way as third parties' do. Loading has three grains: the names
alone, which imports nothing; one part, which raises; and all parts, which returns what is broken
beside what works, so that a broken plugin stops nothing else.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, get_args

from workbench.domain.errors import PluginError, PluginUnknown

Group = Literal[
    "labs",
    "traffic",
    "samplers",
    "models",
    "chain_rules",
    "diagnosis",
    "costs",
    "exports",
    "recommendation_exports",
    "kpis",
    "resources",
]
GROUPS: tuple[Group, ...] = get_args(Group)


FAILURES = (Exception, SystemExit)
"""What a plugin may raise; one that exits would end whoever called it."""


@cache  # what is installed does not change while a process runs; reading it takes milliseconds
def _found(group: Group) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=f"workbench.{group}")}


def names(group: Group) -> tuple[str, ...]:
    """Names of the registered parts; nothing is imported."""
    return tuple(sorted(_found(group)))


def load(group: Group, name: str) -> Any:
    """The part of that name. Raises `PluginUnknown` or, if its import fails, `PluginError`."""
    found = _found(group)
    if name not in found:
        known = ", ".join(sorted(found)) or "none"
        raise PluginUnknown(
            f"nothing is registered as {name!r}",
            where=f"workbench.{group}",
            remedy=f"Choose one of: {known}",
        )
    try:
        return found[name].load()
    except FAILURES as error:  # a plugin may fail in any way while it is imported
        distribution = found[name].dist
        raise PluginError(
            f"{name!r} cannot be loaded: {type(error).__name__}: {error}",
            where=f"workbench.{group}, from {distribution.name if distribution else 'unknown'}",
            remedy="Upgrade or uninstall that package",
        ) from error


def make(group: Group, name: str) -> Any:
    """What the part of that name makes without arguments. Raises as `load`, and `PluginError`."""
    part = load(group, name)
    try:
        return part()
    except FAILURES as error:  # a plugin may fail in any way
        raise PluginError(
            f"{name!r} cannot be made: {type(error).__name__}: {error}", where=f"workbench.{group}"
        ) from error


def load_all(group: Group) -> tuple[dict[str, Any], tuple[PluginError, ...]]:
    """Every part that loads, by name, and an error for every one that does not."""
    parts: dict[str, Any] = {}
    broken: list[PluginError] = []
    for name in names(group):
        try:
            parts[name] = load(group, name)
        except PluginError as error:
            broken.append(error)
    return parts, tuple(broken)


def meanings(group: Group) -> dict[str, str]:
    """What each part says of itself: its docstring's first line; of a broken one, what is wrong."""
    parts, broken = load_all(group)
    said = {name: ((part.__doc__ or "").strip() or name) for name, part in parts.items()}
    wrong = dict(zip((n for n in names(group) if n not in parts), broken, strict=True))
    lines = {name: text.splitlines()[0].rstrip(".") for name, text in said.items()}
    return {name: lines[name] if name in lines else str(wrong[name]) for name in names(group)}


def distribution(group: Group, name: str) -> str:
    """The normalized name of the package that registers a part; empty if unknown."""
    dist = _found(group)[name].dist
    return normalized(dist.name) if dist else ""


def normalized(package: str) -> str:
    """A package's name as the index compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", package).lower()
