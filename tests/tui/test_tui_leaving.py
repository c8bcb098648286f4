"""Closing the screens says what goes on, how to see it again and how to end it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from fake_link import SESSION, FakeClient, opened, redrawn, story
from textual.events import Key

from workbench.cli import context, screen
from workbench.domain.sessions import SessionSummary
from workbench.tui.app import WorkbenchApp
from workbench.tui.leaving import farewell, under_way
from workbench.tui.workers import begin


def summary(name: str, state: str) -> SessionSummary:
    return SessionSummary(name, state, "demo", "sim", (), 1, 0, 0.0, 0.0, 1, "")  # type: ignore[arg-type]


def test_one_line_says_what_goes_on_and_what_to_type() -> None:
    assert farewell(()) == ""
    assert farewell((("demo-1", "running"),)) == (
        "demo-1 goes on; `workbench` opens it again; `workbench engine stop` ends it."
    )
    assert farewell((("a", "running"), ("b", "paused")), "--workspace w") == (
        "2 runs go on; `workbench --workspace w` opens them again; "
        "`workbench --workspace w engine stop` ends them."
    )
    assert farewell((("a", "paused"),)).startswith("a stays paused; ")
    assert farewell((("a", "running"),), guest=True) == "a goes on; connect again to see it."


@pytest.mark.parametrize(("finished", "going"), [(False, ((SESSION, "running"),)), (True, ())])
async def test_the_open_session_is_known(finished: bool, going: object) -> None:
    async with opened(FakeClient(story(finished=finished))) as pilot:
        await redrawn(pilot)
        app = pilot.app
        assert isinstance(app, WorkbenchApp)
        app.known_sessions = ()
        assert app.going_on == going
        others = (summary("night", "running"), summary("old", "finished"))
        assert under_way(app.opened, others) == (*going, ("night", "running"))  # type: ignore[misc]


async def test_a_replay_is_no_run() -> None:
    async with opened(FakeClient(story()), replay_speed=1000.0) as pilot:
        await redrawn(pilot)
        assert isinstance(pilot.app, WorkbenchApp)
        pilot.app.known_sessions = ()
        assert pilot.app.going_on == ()


def test_the_command_prints_it_after_the_screens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(context.settings, "workspace", tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def run(app: WorkbenchApp) -> None:
        app.known_sessions = (summary("night", "running"),)

    monkeypatch.setattr(WorkbenchApp, "run", run)
    screen.open_screen()
    assert capsys.readouterr().err == (
        f"night goes on; `workbench --workspace {tmp_path}` opens it again; "
        f"`workbench --workspace {tmp_path} engine stop` ends it.\n"
    )


async def test_a_key_that_comes_after_the_screens_have_gone_is_dropped() -> None:
    async with opened(FakeClient(story())) as pilot:
        await redrawn(pilot)
        app = pilot.app
    assert app.screen_stack == []
    for forwarded in (False, True):
        late = Key("x", "x")
        if forwarded:
            late._set_forwarded()
        await app.on_event(late)


async def test_work_ends_before_what_it_draws_on() -> None:
    """An answer that comes while widgets are being removed found no widget, and was an error."""
    drawn_on: list[bool] = []
    async with opened(FakeClient()) as pilot:
        screen = pilot.app.screen

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                drawn_on.append(bool(screen.query("*")))

        begin(screen, work)
        await pilot.pause()
    assert drawn_on == [True]
