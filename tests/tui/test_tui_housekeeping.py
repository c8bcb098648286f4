"""What is done with sessions: rename, copy, export, delete, take back; workspaces, the tour."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_link import SESSION, FakeClient, redrawn, screen_text, story, toasts, until
from textual.pilot import Pilot

from workbench import plugins
from workbench.domain.errors import SessionTaken
from workbench.domain.housekeeping import (
    DeleteSession,
    DuplicateSession,
    RenameSession,
    RestoreSession,
)
from workbench.domain.messages import ExportSession
from workbench.tui.app import WorkbenchApp
from workbench.tui.memory import Memory
from workbench.tui.places import Files
from workbench.tui.screens.dialogs import MessageScreen, NameScreen
from workbench.tui.screens.sessions.sessions import SessionsScreen


@asynccontextmanager
async def on_night(client: FakeClient, **files: Any) -> AsyncIterator[Pilot[None]]:
    """The list, with the cursor on `night`, which was interrupted."""

    async def connect() -> FakeClient:
        return client

    app = WorkbenchApp(connect, theme="dark", files=Files(**files))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "night" in screen_text(app), "the list")
        await pilot.press("down")
        yield pilot


async def told(pilot: Pilot[None], part: str) -> None:
    await until(pilot, lambda: any(part in toast for toast in toasts(pilot.app)), part)


async def test_a_deleted_session_is_gone_until_u_takes_it_back() -> None:
    client = FakeClient()
    async with on_night(client) as pilot:
        await pilot.press("u")
        assert client.commands() == []
        await pilot.press("d")
        await told(pilot, "night is in the trash. u takes it back.")
        await until(pilot, lambda: "night" not in screen_text(pilot.app), "the list without it")
        assert "u Undo" in screen_text(pilot.app)
        await pilot.press("u")
        await told(pilot, "night is back.")
        await until(pilot, lambda: "night" in screen_text(pilot.app), "the list with it")
        assert client.commands() == [DeleteSession("night"), RestoreSession("night@1")]
        assert "u Undo" not in await redrawn(pilot)


async def test_a_session_that_is_measured_is_not_deleted() -> None:
    client = FakeClient()
    async with on_night(client) as pilot:
        await pilot.press("up", "d", "e", "C", "r")
        assert client.commands() == []


async def test_a_session_gets_another_name_and_its_old_one_back() -> None:
    client = FakeClient()
    async with on_night(client) as pilot:
        await pilot.press("e", "end", *"-2", "enter")
        await told(pilot, "Renamed to night-2. u takes it back.")
        await until(pilot, lambda: "night-2" in screen_text(pilot.app), "the new name")
        await pilot.press("u")
        await told(pilot, "night has its name again.")
        renames = [RenameSession("night", "night-2"), RenameSession("night-2", "night")]
        assert client.commands() == renames
        await pilot.press("e", "escape")
        assert client.commands() == renames


async def test_after_a_deletion_the_cursor_is_on_what_followed_it() -> None:
    client = FakeClient()
    client.listed[0] = replace(client.listed[0], state="finished")
    async with on_night(client) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, SessionsScreen)
        await pilot.press("d")
        await until(pilot, lambda: screen.listing().row_count == 2, "the list without it")
        await pilot.press("d")
        await until(pilot, lambda: len(client.commands()) == 2, "the second")
        assert client.commands() == [DeleteSession("night"), DeleteSession("closed-loop")]
        await until(pilot, lambda: screen.listing().keys() == [SESSION], "the one that is left")
        assert screen.session_here == SESSION


async def test_the_cursor_goes_along_with_a_session_that_gets_another_name() -> None:
    async with on_night(FakeClient()) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, SessionsScreen)
        await pilot.press("e", "end", *"-2", "enter")
        await until(pilot, lambda: screen.session_here == "night-2", "its new name")
        await pilot.press("u")
        await until(pilot, lambda: screen.session_here == "night", "its old name")


async def test_a_refused_name_is_a_sentence_and_nothing_to_take_back() -> None:
    client = FakeClient()
    async with on_night(client) as pilot:
        await pilot.press("e")
        client.refuses = SessionTaken("there is a session 'x' already")
        await pilot.press("end", "x", "enter")
        said = "! there is a session 'x' already"
        await until(pilot, lambda: said in screen_text(pilot.app), "the refusal in the dialog")
        assert not pilot.app.undos


async def test_a_session_is_copied_and_exported() -> None:
    client = FakeClient()
    async with on_night(client) as pilot:
        await pilot.press("C")
        await told(pilot, "Copied night to night-1.")
        await pilot.press("x")
        await until(pilot, lambda: "Parquet: a row" in screen_text(pilot.app), "the formats")
        place = plugins.names("exports").index("parquet")
        await pilot.press(*["j"] * place, "enter")
        await told(pilot, "Wrote exports/night.parquet.")
        assert client.commands() == [
            DuplicateSession("night"),
            ExportSession("night", "parquet"),
        ]


async def open_night(pilot: Pilot[Any]) -> None:
    """The open session is called `night`, and the list is looked at."""
    await pilot.press("up", "enter")
    await until(pilot, lambda: pilot.app.opened.connected, "the session")
    await pilot.press("escape")
    pilot.app.opened.session = "night"  # which this client cannot play


async def test_deleting_the_open_session_closes_its_screens() -> None:
    client = FakeClient()
    async with on_night(client) as pilot:
        app = pilot.app
        await open_night(pilot)
        await pilot.press("down", "d")
        await told(pilot, "night is in the trash; its screens are closed.")
        assert not app.is_open
        assert app.screen.NAME == "sessions"
        await pilot.press("4")
        assert app.opened.session == "demo-1", "the one that goes on, and nothing of night"


async def test_renaming_the_open_session_closes_its_screens_and_says_so() -> None:
    client = FakeClient()
    async with on_night(client) as pilot:
        app = pilot.app
        await open_night(pilot)
        client.refuses = SessionTaken("there is a session 'nightx' already")
        await pilot.press("down", "e", "end", "x", "enter")
        said = "! there is a session 'nightx' already"
        await until(pilot, lambda: said in screen_text(app), "the refusal in the dialog")
        assert app.is_open, "nothing was renamed"
        client.refuses = None
        await pilot.press("y", "enter")
        await told(pilot, "Renamed to nightxy; its screens are closed. u takes it back.")
        assert not app.is_open
        assert app.screen.NAME == "sessions"


async def test_what_is_entered_twice_is_commanded_once() -> None:
    async with on_night(FakeClient()) as pilot:
        app, may = pilot.app, asyncio.Event()
        done: list[str] = []

        async def carry_out(written: str) -> None:
            done.append(written)
            await may.wait()

        app.push_screen(NameScreen("How many?", "7", carry_out=carry_out))
        await pilot.pause()
        await pilot.press("enter", "enter")
        await until(pilot, lambda: bool(done), "it is being carried out")
        await pilot.press("f1")
        may.set()
        await pilot.pause()
        await pilot.press("escape")
        await until(pilot, lambda: getattr(app.screen, "NAME", "") == "sessions", "both closed")
        assert done == ["7"]


async def test_another_workspace_is_another_engine() -> None:
    first, second = FakeClient(), FakeClient()
    second.listed = second.listed[2:]
    chosen: list[str] = []

    async def connect() -> FakeClient:
        return second if chosen else first

    files = Files(workspaces=lambda: ("/data/a", "/data/b"), choose_workspace=chosen.append)
    app = WorkbenchApp(connect, theme="dark", files=files)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "night" in screen_text(app), "the list")
        await pilot.press("down", "e", "end", *"-2", "enter")
        await told(pilot, "Renamed to night-2. u takes it back.")
        await pilot.press("ctrl+k", "j", "enter")
        await until(pilot, lambda: "1 session" in screen_text(app), "the other list")
        assert chosen == ["/data/b"]
        assert first.closed
        assert not second.closed
        await pilot.press("u")
        nothing = "There is nothing to take back."
        await until(pilot, lambda: nothing in screen_text(app), "why u does nothing")
        assert second.commands() == []
        assert "night" not in screen_text(app)


async def test_the_tour_has_five_steps_comes_once_and_can_be_skipped(tmp_path: Path) -> None:
    memory = tmp_path / "state" / "screen.json"
    async with on_night(FakeClient(), memory=memory) as pilot:
        seen = []
        for _ in range(5):
            seen.append(await redrawn(pilot))
            await pilot.press("T")
        assert all(f"Tour {step}/5" in text for step, text in enumerate(seen, 1))
        assert "Tour" not in await redrawn(pilot)
    assert Memory(memory).toured
    async with on_night(FakeClient(), memory=memory) as pilot:
        assert "Tour" not in await redrawn(pilot)
    memory.unlink()
    async with on_night(FakeClient(), memory=memory) as pilot:
        await pilot.press("X")
        assert "Tour" not in await redrawn(pilot)
    assert Memory(memory).toured


@pytest.mark.parametrize("content", ["", "[]", "{", '{"theme": 3, "workspaces": 1}'])
def test_a_memory_that_cannot_be_read_is_empty(tmp_path: Path, content: str) -> None:
    path = tmp_path / "screen.json"
    path.write_text(content)
    memory = Memory(path)
    assert (memory.theme, memory.toured, memory.workspaces) == ("", False, ())
    memory.opened("/a")
    memory.opened("/b")
    memory.opened("/a")
    assert Memory(path).workspaces == ("/a", "/b")


async def test_places_says_where_everything_is(tmp_path: Path) -> None:
    client = FakeClient()
    async with on_night(client, keys=tmp_path / "keys.toml") as pilot:
        await pilot.press("i")
        await until(pilot, lambda: isinstance(pilot.app.screen, MessageScreen), "the dialog")
        for part in ("process 42", "1 client\n", "plain preset", "keys.toml", "not written here"):
            assert part in pilot.app.screen.message, part


async def test_the_tour_begins_on_live_where_a_session_is_opened_first(tmp_path: Path) -> None:
    client = FakeClient(story(finished=True))

    async def connect() -> FakeClient:
        return client

    memory = tmp_path / "screen.json"
    app = WorkbenchApp(connect, session=SESSION, theme="dark", files=Files(memory=memory))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Tour 1/5" in screen_text(app), "the tour")
        await until(pilot, lambda: "breakpoints" in screen_text(app), "what is read")
        text = await redrawn(pilot)
        assert "This is Live" in text
        assert "64/80 samples" in text, "it stands below what is read"
        await pilot.press("9")
        assert "Tour" not in await redrawn(pilot)
        await pilot.press("4", "T", "T", "T", "T")
        assert "T done" in await redrawn(pilot)
        await pilot.press("T")
        assert "Tour" not in await redrawn(pilot)
        await pilot.press("escape")
        assert "Tour" not in await redrawn(pilot), "it is told once"
    assert Memory(memory).toured


async def test_a_low_terminal_has_no_room_for_the_tour_on_live(tmp_path: Path) -> None:
    client = FakeClient(story(finished=True))

    async def connect() -> FakeClient:
        return client

    files = Files(memory=tmp_path / "screen.json")
    app = WorkbenchApp(connect, session=SESSION, theme="dark", files=files)
    async with app.run_test(size=(60, 18)) as pilot:
        await until(pilot, lambda: "●" in screen_text(app), "the plot")
        assert "Tour" not in await redrawn(pilot)
