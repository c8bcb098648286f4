"""Which columns of a list are shown, in which order, and by which one it is sorted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from workbench.tui.plots.canvas import Glyphs

Line = TypeVar("Line")


@dataclass(frozen=True)
class ListColumn(Generic[Line]):
    """One property of what a list has a line for each of."""

    name: str
    """Its heading, and what it is remembered by."""
    width: int
    text: Callable[[Line], str]
    key: Callable[[Line], Any]
    """What lines are sorted by: any type that compares with itself; None comes last."""
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

    @property
    def stored(self) -> dict[str, Any]:
        """As it is remembered."""
        return {"by": self.by, "falling": self.falling}

    @classmethod
    def remembered(
        cls, stored: Mapping[str, Any], columns: Iterable[ListColumn[Any]], first: Sorting
    ) -> Sorting:
        """As `stored` says where that makes sense: a file may be of another version, or edited."""
        by = next((column.name for column in columns if column.name == stored.get("by")), None)
        return first if by is None else cls(by, stored.get("falling") is True)

    def by_column(self, column: ListColumn[Any]) -> Sorting:
        """By that column; by the same once more: the other way round."""
        return self.reversed if column.name == self.by else Sorting(column.name, column.falling)

    def heading(self, name: str, glyphs: Glyphs, room: int | None = None) -> str:
        """A column's heading; that of the sort key says so, and the direction.

        The arrow stands apart, unless that takes more than `room` cells.
        """
        if name != self.by:
            return name
        arrow = glyphs.falling if self.falling else glyphs.rising
        apart = room is None or len(name) + 2 <= room
        return f"{name} {arrow}" if apart else f"{name}{arrow}"

    def sort(self, lines: Iterable[Line], columns: Iterable[ListColumn[Line]]) -> list[Line]:
        """Lines of one key stay in the order in which they came; all do without a column."""
        lines = list(lines)
        column = next((column for column in columns if column.name == self.by), None)
        if column is None:
            return lines
        known = [line for line in lines if column.key(line) is not None]
        unknown = [line for line in lines if column.key(line) is None]
        return sorted(known, key=column.key, reverse=self.falling) + unknown


@dataclass(frozen=True)
class Arrangement:
    """What a user chose of the columns of a list; at least one is shown, and so is the sort key."""

    shown: tuple[str, ...]
    sorting: Sorting

    @classmethod
    def remembered(
        cls, stored: Mapping[str, Any], columns: Sequence[ListColumn[Any]], first: Sorting
    ) -> Arrangement:
        """As `stored` says where that makes sense: a file may be of another version, or edited.
        Else all `columns`, sorted by `first`.
        """
        names = [column.name for column in columns]
        shown = [name for name in _strings(stored.get("shown")) if name in names]
        whole = cls(tuple(names), Sorting.remembered(stored, columns, first))
        return whole.showing(list(dict.fromkeys(shown)) or names, columns)

    @property
    def stored(self) -> dict[str, Any]:
        """As it is remembered."""
        return {"shown": list(self.shown), **self.sorting.stored}

    def sorted_by(self, name: str, columns: Iterable[ListColumn[Any]]) -> Arrangement:
        """By that column; by the same once more: the other way round."""
        column = next(column for column in columns if column.name == name)
        return replace(self, sorting=self.sorting.by_column(column))

    def sorted_by_next(self, columns: Iterable[ListColumn[Any]]) -> Arrangement:
        """By the column to the right of the sort key."""
        if len(self.shown) == 1:
            return self
        at = self.shown.index(self.sorting.by)
        return self.sorted_by(self.shown[(at + 1) % len(self.shown)], columns)

    def showing(self, names: Sequence[str], columns: Sequence[ListColumn[Any]]) -> Arrangement:
        """These columns in this order; sorted as before where the sort key is among them,
        else by the first.
        """
        arranged = replace(self, shown=tuple(names))
        if self.sorting.by in names:
            return arranged
        return arranged.sorted_by(names[0], columns)

    def columns(self, columns: Iterable[ListColumn[Line]]) -> list[ListColumn[Line]]:
        """Those that are shown, in order."""
        by_name = {column.name: column for column in columns}
        return [by_name[name] for name in self.shown]


def _strings(found: object) -> list[str]:
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
