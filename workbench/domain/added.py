"""Words that plug-ins add: KPIs and resources, by entry point.

Every process knows them as soon as it first asks, also a screen, which loads no other plug-in. A
part that cannot be loaded adds nothing here; `workbench doctor` names it.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TypeVar

T = TypeVar("T")


def added(group: str, kind: type[T]) -> tuple[T, ...]:
    """What plug-ins register in a group and is of that kind, in the order of their names."""
    found: list[T] = []
    for point in sorted(entry_points(group=f"workbench.{group}"), key=lambda point: point.name):
        try:
            part = point.load()
        except (Exception, SystemExit):  # noqa: BLE001, S112  # a plug-in may fail in any way
            continue
        if isinstance(part, kind):
            found.append(part)
    return tuple(found)
