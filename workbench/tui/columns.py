"""Which columns of a list are shown, in which order, and by which one it is sorted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from workbench.tui.plots.canvas import Glyphs

Line = TypeVar("Line")


@dataclass(frozen=True)
class Column(Generic[Line]):
    """One property of what a list has a line for each of."""

    name: str
    """Its heading, and what it is remembered by."""
    width: int
    text: Callable[[Line], str]
    key: Callable[[Line], Any]
    """What lines are sorted by: any type that compares with itself."""
    falling: bool = False
    """Whether sorting by it begins with the greatest: numbers, times."""


@dataclass(frozen=True)
class Sorting:
    """A column, and whether the greatest is first."""

    by: str
    falling: bool = False

    @property
    def reversed(self) -> Sorting:
        return replace(self, falling=not self.falling)

    def heading(self, name: str, glyphs: Glyphs) -> str:
        """A column's heading; that of the sort key says so, and the direction."""
        if name != self.by:
            return name
        return f"{name} {glyphs.falling if self.falling else glyphs.rising}"


@dataclass(frozen=True)
class Arrangement:
    """What a user chose of the columns of a list; at least one is shown, and so is the sort key."""

    shown: tuple[str, ...]
    sorting: Sorting

    @classmethod
    def remembered(
        cls, stored: Mapping[str, Any], columns: Sequence[Column[Any]], first: Sorting
    ) -> Arrangement:
        """As `stored` says where that makes sense: a file may be of another version, or edited.
        Else all `columns`, sorted by `first`.
        """
        names = [column.name for column in columns]
        shown = [name for name in _strings(stored.get("shown")) if name in names]
        by, whole = stored.get("by"), cls(tuple(names), first)
        if by in names:
            whole = replace(whole, sorting=Sorting(by, stored.get("falling") is True))
        return whole.showing(list(dict.fromkeys(shown)) or names, columns)

    @property
    def stored(self) -> dict[str, Any]:
        """As it is remembered."""
        return {
            "shown": list(self.shown), "by": self.sorting.by, "falling": self.sorting.falling,
        }  # fmt: skip

    def sorted_by(self, name: str, columns: Iterable[Column[Any]]) -> Arrangement:
        """By that column; by the same once more: the other way round."""
        if name == self.sorting.by:
            return replace(self, sorting=self.sorting.reversed)
        falling = next(column.falling for column in columns if column.name == name)
        return replace(self, sorting=Sorting(name, falling))

    def sorted_by_next(self, columns: Iterable[Column[Any]]) -> Arrangement:
        """By the column to the right of the sort key."""
        if len(self.shown) == 1:
            return self
        at = self.shown.index(self.sorting.by)
        return self.sorted_by(self.shown[(at + 1) % len(self.shown)], columns)

    def showing(self, names: Sequence[str], columns: Sequence[Column[Any]]) -> Arrangement:
        """These columns in this order; sorted as before where the sort key is among them,
        else by the first.
        """
        arranged = replace(self, shown=tuple(names))
        if self.sorting.by in names:
            return arranged
        return arranged.sorted_by(names[0], columns)

    def columns(self, columns: Iterable[Column[Line]]) -> list[Column[Line]]:
        """Those that are shown, in order."""
        by_name = {column.name: column for column in columns}
        return [by_name[name] for name in self.shown]

    def sort(self, lines: Iterable[Line], columns: Iterable[Column[Line]]) -> list[Line]:
        """Lines of one key stay in the order in which they came."""
        key = next(column.key for column in columns if column.name == self.sorting.by)
        return sorted(lines, key=key, reverse=self.sorting.falling)


def _strings(found: object) -> list[str]:
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
