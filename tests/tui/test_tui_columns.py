"""Columns of the list of sessions: sorted, hidden, moved, remembered."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_link import SESSION, FakeClient, redrawn, screen_text, until
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from workbench.tui.app import WorkbenchApp
from workbench.tui.columns import Arrangement, ListColumn, Sorting
from workbench.tui.memory import Memory
from workbench.tui.places import Files
from workbench.tui.widgets.table import CursorTable

COLUMNS: tuple[ListColumn[int], ...] = (
    ListColumn("name", 4, str, str),
    ListColumn("size", 4, str, int, falling=True),
)


@asynccontextmanager
async def listed(
    memory: Path | None = None, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[Pilot[None]]:
    client = FakeClient()

    async def connect() -> FakeClient:
        return client

    if memory is not None and not memory.exists():
        memory.write_text('{"toured": true}')
    app = WorkbenchApp(connect, theme="dark", files=Files(memory=memory))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "night" in screen_text(app), "the list")
        await redrawn(pilot)
        yield pilot


async def lines(pilot: Pilot[None]) -> list[str]:
    """The heading and a line for each session."""
    shown = (await redrawn(pilot)).splitlines()
    names = (SESSION, "night", "closed-loop")
    begin = next(i for i, line in enumerate(shown) if any(name in line for name in names))
    return shown[begin - 1 : begin + 3]


async def test_the_heading_shows_the_sort_key_and_o_goes_to_the_next() -> None:
    async with listed() as pilot:
        heading, first, *_ = await lines(pilot)
        assert "changed ▼" in heading
        assert first.startswith(SESSION)
        await pilot.press("f6", "f6", "f6", "f6")  # lab, invalid, targets, session
        heading, *rest = await lines(pilot)
        assert heading.startswith("session ▲")
        assert "changed ▼" not in heading
        names = [line.split()[0] for line in rest]
        assert names == sorted(names)
        await pilot.press("O")
        heading, *rest = await lines(pilot)
        assert heading.startswith("session ▼")
        assert [line.split()[0] for line in rest] == names[::-1]


async def test_a_sort_keeps_the_cursor_on_its_session() -> None:
    async with listed() as pilot:
        await pilot.press("down")
        await pilot.press("O")
        await redrawn(pilot)
        assert pilot.app.screen.here.name == "night"


async def test_a_heading_that_is_clicked_sorts() -> None:
    async with listed() as pilot:
        await pilot.click("#sessions", offset=(2, 0))
        assert (await lines(pilot))[0].startswith("session ▲")
        await pilot.click("#sessions", offset=(2, 0))
        assert (await lines(pilot))[0].startswith("session ▼")


async def test_a_terminal_without_arrows_gets_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_GLYPHS", "ascii")
    async with listed() as pilot:
        assert "changed v" in (await lines(pilot))[0]


async def test_hidden_columns_give_their_room_to_the_targets() -> None:
    async with listed() as pilot:
        assert "haproxy, ti…" in await redrawn(pilot)
        await pilot.press("v", "j", "j", "space", "j", "j", "j", "space", "enter")
        heading, first, *_ = await lines(pilot)
        assert heading.split() == ["session", "state", "changed", "▼", "lab", "targets"]
        assert "haproxy, tinyproxy-haproxy" in first


async def test_columns_are_moved_and_remembered(tmp_path: Path) -> None:
    memory = tmp_path / "screen.json"
    async with listed(memory) as pilot:
        await pilot.press("v", "J", "J", "k", "space", "enter", "f6", "O")
        heading = (await lines(pilot))[0]
        assert heading.split() == ["state", "session", "changed", "lab", "▼", "invalid", "targets"]
    async with listed(memory) as pilot:
        assert (await lines(pilot))[0] == heading


async def test_escape_keeps_the_columns_as_they_were() -> None:
    async with listed() as pilot:
        before = await lines(pilot)
        await pilot.press("v", "space", "J", "escape")
        assert await lines(pilot) == before


async def test_one_column_stays() -> None:
    async with listed() as pilot:
        await pilot.press("v", *["space", "j"] * 7, "enter")
        shown = (await redrawn(pilot)).splitlines()
        assert [line.strip() for line in shown[2:4]] == ["targets ▲", "haproxy, tinyproxy-haproxy"]


@pytest.mark.parametrize(
    "stored",
    [{}, {"shown": "x", "by": 3}, {"shown": [], "by": []}, {"shown": ["gone", 7], "by": "gone"}],
)
def test_what_is_remembered_may_make_no_sense(stored: dict[str, object]) -> None:
    arranged = Arrangement.remembered(stored, COLUMNS, Sorting("size", falling=True))
    assert arranged == Arrangement(("name", "size"), Sorting("size", falling=True))


def test_what_was_stored_comes_back(tmp_path: Path) -> None:
    arranged = Arrangement(("size",), Sorting("size"))
    memory = Memory(tmp_path / "screen.json")
    memory.arranged("other", {})
    memory.arranged("list", json.loads(json.dumps(arranged.stored)))
    stored = Memory(memory.path).columns("list")
    assert Arrangement.remembered(stored, COLUMNS, Sorting("name")) == arranged


def test_a_hidden_sort_key_gives_way_to_the_first_column() -> None:
    arranged = Arrangement(("name", "size"), Sorting("name"))
    assert arranged.showing(["size"], COLUMNS).sorting == Sorting("size", falling=True)
    assert arranged.sorting.sort([10, 9], COLUMNS) == [10, 9]
    assert arranged.showing(["size"], COLUMNS).sorted_by_next(COLUMNS).sorting.by == "size"


def test_what_has_no_figure_comes_last_either_way() -> None:
    column: ListColumn[int | None] = ListColumn("size", 4, str, lambda size: size)
    for falling, order in ((False, [1, 2, None]), (True, [2, 1, None])):
        assert Sorting("size", falling).sort([None, 2, 1], [column]) == order
    assert Sorting("").sort([None, 2, 1], [column]) == [None, 2, 1], "as they came"


async def test_a_list_that_is_given_more_room_is_drawn_with_it() -> None:
    """Its lines may have been drawn before it heard of that."""
    drawn: list[int] = []

    class Drawn(CursorTable):
        def refresh(self, *args: Any, **options: Any) -> Any:
            drawn.extend([column.width for column in getattr(self, "columns", {}).values()][-1:])
            return super().refresh(*args, **options)

    class Listed(App[None]):
        def compose(self) -> ComposeResult:
            yield Drawn()

    async with Listed().run_test(size=(100, 10)) as pilot:
        table = pilot.app.query_one(Drawn)
        table.styles.width = 30
        await pilot.pause()
        table.show_columns([("name", "name", 10), ("size", "size", 10)])
        table.fill([("a", ("a", "of many letters, more than fit"))])
        await pilot.pause()
        table.styles.width = 80
        await until(pilot, lambda: table.ordered_columns[-1].width == 69, "the room")
        assert drawn[-1] == 69


async def test_a_line_that_is_gone_by_then_is_not_gone_to() -> None:
    """Lines are replaced between a look at them and the move."""
    async with listed() as pilot:
        table = pilot.app.screen.listing()
        (_, last), *_ = reversed([*table.jumps()])
        table.fill([(SESSION, [""] * len(table.layout_of))])
        last()
        assert table.here == SESSION
        assert table.has_focus
        table.fill([("new", [""] * len(table.layout_of)), (SESSION, [""] * len(table.layout_of))])
        table.go_to(SESSION)
        assert table.here == SESSION, "what is there is gone to"
