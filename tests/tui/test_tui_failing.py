"""An error that nobody expected ends one screen, not the application; the trace goes to the log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_link import FakeClient, flashed, opened, redrawn, screen_text, until
from textual.pilot import Pilot

from workbench.tui.places import Files
from workbench.tui.screens.dialogs import ConfirmScreen, MessageScreen
from workbench.tui.screens.failed import FailedScreen
from workbench.tui.screens.live.live import LiveScreen
from workbench.tui.screens.session import SessionScreen
from workbench.tui.screens.sessions.sessions import SessionsScreen
from workbench.tui.watch import Watch
from workbench.tui.widgets.rows import Rows
from workbench.tui.workers import begin

pytestmark = pytest.mark.painted


class Log:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.kept: list[Exception] = []

    def __call__(self, error: Exception) -> str:
        self.kept.append(error)
        return "state/workbench.log"


def broken(*_: object, **__: object) -> None:
    raise ValueError("a bug")


async def broken_work() -> None:
    raise ValueError("a bug")


def in_drawing(pilot: Pilot[Any], patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LiveScreen, "draw_middle", broken)
    pilot.app.opened.touch()


def in_a_widget(pilot: Pilot[Any], patch: pytest.MonkeyPatch) -> None:
    rows = pilot.app.screen.query_one("#header", Rows)
    patch.setattr(rows, "render_line", broken)
    rows.refresh()


def in_a_worker(pilot: Pilot[Any], patch: pytest.MonkeyPatch) -> None:
    begin(pilot.app.screen, broken_work)


def in_a_handler(pilot: Pilot[Any], patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LiveScreen, "on_resize", broken)
    pilot.app.screen.on_screen_resume()
    pilot.app.screen.post_message(_resize(pilot))


def in_a_widgets_handler(pilot: Pilot[Any], patch: pytest.MonkeyPatch) -> None:
    rows = pilot.app.screen.query_one("#header", Rows)
    rows.call_later(broken)


def in_a_timer(pilot: Pilot[Any], patch: pytest.MonkeyPatch) -> None:
    pilot.app.screen.set_timer(0.01, broken)


def _resize(pilot: Pilot[Any]) -> Any:
    from textual.events import Resize

    return Resize(pilot.app.size, pilot.app.size)


PLACES = (in_drawing, in_a_widget, in_a_worker, in_a_handler, in_a_widgets_handler, in_a_timer)


@pytest.mark.parametrize("fail", PLACES, ids=lambda fail: fail.__name__)
async def test_a_screen_fails_alone_and_opens_again(
    fail: Callable[[Pilot[Any], pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, log = FakeClient(), Log()
    async with opened(client, log=log) as pilot:
        app = pilot.app
        with monkeypatch.context() as patch:
            fail(pilot, patch)
            await until(pilot, lambda: isinstance(app.screen, FailedScreen), "it is put aside")
            await until(pilot, lambda: app.screen.ready, "it is drawn")
        text = " ".join(screen_text(app).split())
        assert "The screen Live failed, and nothing else" in text
        assert "Unexpected ValueError: a bug" in text
        assert "state/workbench.log" in text
        assert "Traceback" not in text
        assert [str(error) for error in log.kept] == ["a bug"]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen), "it opens again")
        assert "Figures" not in await redrawn(pilot)
        assert "tinyproxy" in screen_text(app)
        await pilot.press("1")
        await until(pilot, lambda: isinstance(app.screen, SessionsScreen), "keys work")
        assert app.return_code in (None, 0)


async def test_the_list_of_sessions_fails_and_opens_again(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    async with opened(FakeClient(), log=log) as pilot:
        await pilot.press("1")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionsScreen), "sessions")
        with monkeypatch.context() as patch:
            patch.setattr(SessionsScreen, "draw", broken)
            pilot.app.redraw()
            await until(pilot, lambda: isinstance(pilot.app.screen, FailedScreen), "put aside")
            assert "escape" not in screen_text(pilot.app)
        await pilot.press("1")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionsScreen), "it opens again")
        await until(pilot, lambda: "night" in screen_text(pilot.app), "with its sessions")


async def test_what_cannot_be_folded_is_no_engine_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, log = FakeClient(), Log()
    async with opened(client, log=log) as pilot:
        client.die()
        await until(pilot, lambda: "engine gone" in screen_text(pilot.app), "the banner")
        with monkeypatch.context() as patch:
            patch.setattr(Watch, "_begin", broken)
            await pilot.press("r")
            said = "what came cannot be shown: ValueError: a bug; r tries again"
            await until(pilot, lambda: said in screen_text(pilot.app), "the sentence")
        assert [str(error) for error in log.kept] == ["a bug"]
        await pilot.press("r")
        await until(pilot, lambda: "cannot be shown" not in screen_text(pilot.app), "reconnected")


async def test_a_screen_below_is_replaced_once_it_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    async with opened(FakeClient(), log=log) as pilot:
        begin(pilot.app.screen_stack[0], broken_work)
        await until(pilot, lambda: log.kept, "it failed")
        assert isinstance(pilot.app.screen, LiveScreen), "who watches is not disturbed"
        await pilot.press("1")
        await until(pilot, lambda: isinstance(pilot.app.screen, FailedScreen), "put aside")


async def test_a_dialog_fails_and_its_screen_stays() -> None:
    log = Log()
    async with opened(FakeClient(), log=log) as pilot:
        dialog = ConfirmScreen("Sure?", "It is done.")
        pilot.app.push_screen(dialog)
        await pilot.pause()
        dialog.call_later(broken)
        await until(pilot, lambda: isinstance(pilot.app.screen, MessageScreen), "a message")
        await until(pilot, lambda: "a bug" in screen_text(pilot.app), "what it was")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, LiveScreen), "the screen below")


async def test_an_answer_for_a_screen_that_is_being_closed_is_no_failure() -> None:
    log = Log()
    async with opened(FakeClient(), log=log) as pilot:
        live = pilot.app.screen
        pilot.app.close_session()
        begin(live, broken_work)
        await until(pilot, lambda: log.kept, "the trace in the log")
        assert isinstance(pilot.app.screen, SessionsScreen)


async def test_work_of_the_application_fails_and_nothing_is_closed() -> None:
    log = Log()
    async with opened(FakeClient(), log=log) as pilot:
        pilot.app.tell(object(), "done", broken)  # type: ignore[arg-type]
        begin(pilot.app, broken_work)
        await until(pilot, lambda: isinstance(pilot.app.screen, MessageScreen), "a message")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionScreen), "the screen below")


async def test_a_screen_that_fails_each_time_can_be_left(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    monkeypatch.setattr(LiveScreen, "draw_middle", broken)
    async with opened(FakeClient(), log=log, screen="events") as pilot:
        for times in (1, 2):
            await pilot.press("4" if times == 1 else "enter")
            await until(pilot, lambda n=times: len(log.kept) == n, "it fails")
            await until(pilot, lambda: isinstance(pilot.app.screen, FailedScreen), "put aside")
            await pilot.pause()
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionsScreen), "sessions")


async def test_without_a_log_an_error_is_the_tests_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async def drawn() -> None:
        async with opened(FakeClient()) as pilot:
            monkeypatch.setattr(LiveScreen, "draw_middle", broken)
            pilot.app.opened.touch()
            for _ in range(50):
                await pilot.pause(0.05)

    with pytest.raises(ValueError, match="a bug"):
        await drawn()


async def test_nothing_lies_over_the_words_of_a_terminal_too_small() -> None:
    async with opened(FakeClient(), (40, 10), log=Log()) as pilot:
        pilot.app.say("A toast that nobody can read here.", "error")
        await pilot.pause(0.3)
        text = screen_text(pilot.app)
        assert "terminal too small" in text
        assert "toast" not in text


async def test_themes_without_colours_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(FakeClient()) as pilot:
        await pilot.press("t")
        await until(pilot, lambda: "NO_COLOR" in flashed(pilot.app), "a word")


async def test_the_tour_does_not_lie_there_either(tmp_path: Path) -> None:
    async with opened(FakeClient(), (40, 10), files=Files(memory=tmp_path / "memory")) as pilot:
        await pilot.press("1")
        await pilot.pause(0.3)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "night" in screen_text(pilot.app), "the sessions")
        await pilot.press("T")
        await until(pilot, lambda: "Tour" in screen_text(pilot.app), "the tour")
        await pilot.resize_terminal(40, 10)
        await until(pilot, lambda: "too small" in screen_text(pilot.app), "the sentence")
        await pilot.pause(0.2)
        assert "Tour" not in screen_text(pilot.app)
        assert "measuring" not in screen_text(pilot.app)
