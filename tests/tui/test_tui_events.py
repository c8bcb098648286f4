"""Screens of events and models, and what every screen of a session shares."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from fake_link import (
    SESSION,
    FakeClient,
    flashed,
    modelled,
    opened,
    redrawn,
    screen_text,
    story,
    toasts,
    until,
    written,
)

from workbench.domain.events import Event, LogWritten, Noted
from workbench.domain.logs import ComponentLog, WrittenLine
from workbench.domain.messages import PauseRun
from workbench.tui.app import WorkbenchApp
from workbench.tui.places import Files
from workbench.tui.plots.picture import write
from workbench.tui.screens import events
from workbench.tui.screens.jump import LETTERS, JumpScreen, labels
from workbench.tui.theme import THEMES, beginning, fitting


async def test_events_follow_until_the_cursor_moves() -> None:
    client = FakeClient()
    async with opened(client, screen="events") as pilot:
        assert "following" in screen_text(pilot.app)
        client.tell(*(Noted("info", f"note {i}") for i in range(30)))
        assert "note 29" in await redrawn(pilot)
        await pilot.press("k")
        assert "following" not in await redrawn(pilot)
        client.tell(*(Noted("info", f"later {i}") for i in range(30)))
        shown = await redrawn(pilot)
        assert "note 28" in shown
        assert "later 29" not in shown
        await pilot.press("g")
        assert "session created" in await redrawn(pilot)
        await pilot.press("F")
        assert "later 29" in await redrawn(pilot)


async def test_a_warning_that_is_said_again_stands_there_once() -> None:
    client = FakeClient(story(finished=True))
    async with opened(client, screen="events") as pilot:
        client.tell(*(Noted("warning", "the host is busy") for _ in range(12)))
        shown = await redrawn(pilot)
        assert shown.count("the host is busy") == 1
        assert "the host is busy" in shown
        assert "× 12 since " in shown
        client.tell(Noted("info", "goes on"), Noted("warning", "the host is busy"))
        assert (await redrawn(pilot)).count("the host is busy") == 2
        await pilot.press("h")
        assert "× 13 since " in await redrawn(pilot)


async def test_events_are_filtered_by_words_and_level() -> None:
    async with opened(FakeClient(story(finished=True)), screen="events") as pilot:
        await pilot.press("h")
        shown = await redrawn(pilot)
        assert "9 of 86" in shown
        assert "not valid: source" in shown
        await pilot.press("slash", *"50+25 tiny", "enter")
        shown = await redrawn(pilot)
        assert "1 of 86" in shown
        assert "tinyproxy-haproxy 50+25 % at 1600" in shown
        await pilot.press("escape")
        assert "86 events" in await redrawn(pilot)
        assert pilot.app.screen.NAME == "events"
        await pilot.press("escape")
        assert pilot.app.screen.NAME == "sessions"


async def test_what_functions_wrote_stands_between_the_events() -> None:
    client = FakeClient()
    client.tell(*written(), Noted("info", "afterwards"))
    async with opened(client, screen="events") as pilot:
        shown = await redrawn(pilot)
        assert shown.index(" at ") < shown.index("haproxy │ (more than 180 lines before")
        assert "! haproxy │ [WARNING]  (1) : Server web/s1 is DOWN" in shown
        assert "× sink │ ·]0;owned··[2J[error] 7#7: connect() failed [bold]x" in shown
        assert not any(c in shown for c in "\x1b\x07")
        assert shown.index("sink │") < shown.index("afterwards")
        await pilot.press("v")
        shown = await redrawn(pilot)
        assert "│ [WARNING]" not in shown
        assert "afterwards" in shown
        await pilot.press("v")
        shown = await redrawn(pilot)
        assert "4 of" in shown
        assert "logs · level all" in shown
        assert "afterwards" not in shown
        await pilot.press("h")
        assert "2 of" in await redrawn(pilot)
        await pilot.press("slash", *"haproxy down", "enter")
        assert "1 of" in await redrawn(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: pilot.app.screen.NAME == "live", "the line's sample")
        assert pilot.app.opened.choice.sample.startswith("tinyproxy")


async def test_nothing_written_is_a_state_of_its_own() -> None:
    async with opened(FakeClient(), screen="events") as pilot:
        await pilot.press("v", "v")
        assert "No line is like that" in await redrawn(pilot)
        await pilot.press("escape")
        assert "events and logs" in await redrawn(pilot)


async def test_older_lines_of_logs_come_with_the_events_around_them() -> None:
    client = FakeClient()
    for number in range(350):
        lines = tuple(WrittenLine(f"visit {number} line {i}") for i in range(5))
        client.tell(
            Noted("info", f"note {number}"),
            LogWritten("tinyproxy", ComponentLog("tinyproxy", lines)),
        )
    first = client.view().written_since
    assert first > 500, "the view has the last of them only"
    async with opened(client, screen="events") as pilot:
        assert f"{first - 1} older: H" in await redrawn(pilot)
        await pilot.press("v")
        assert "older" not in await redrawn(pilot), "the events are all there"
        await pilot.press("v", "H")
        await until(pilot, lambda: f"{first - 501} older" in screen_text(pilot.app), "a page")
        await pilot.press("v", "H")
        await until(pilot, lambda: "older" not in screen_text(pilot.app), "all")
        lines = [said.line for said in pilot.app.screen._listed]
        listed = [(line.seq, line.place) for line in lines]
        assert listed == sorted(set(listed))
        assert sum(line.component == "tinyproxy" for line in lines) == 1750
        assert sum(line.text.startswith("note") for line in lines) == 350


async def test_enter_goes_to_the_sample_of_a_line() -> None:
    async with opened(FakeClient(), screen="events") as pilot:
        await pilot.press("slash", *"haproxy 12.5 at 440", "enter", "enter")
        await until(pilot, lambda: pilot.app.screen.NAME == "live", "the live screen")
        shown = await redrawn(pilot)
        assert "haproxy 12.5 % · p95" in shown
        assert "┝●┥" in shown
        await pilot.press("z")
        assert "sample 3 of 8 load 440" in await redrawn(pilot)
        await pilot.press("F")
        assert "tinyproxy 25 % · p95" in await redrawn(pilot)


async def test_older_events_are_fetched_by_the_page() -> None:
    client = FakeClient()
    last = client.events[-1]
    client.events += [
        Event(last.seq + i, last.at + i, SESSION, Noted("info", f"note {i}")) for i in range(1, 700)
    ]
    async with opened(client, screen="events") as pilot:
        shown = await redrawn(pilot)
        assert "older: H" in shown
        await pilot.press("H")
        await until(pilot, lambda: "older: H" not in screen_text(pilot.app), "the first page")
        await pilot.press("g")
        shown = await redrawn(pilot)
        assert "session created: campaign demo" in shown
        await pilot.press("slash", *"note 7", "enter", "g")
        assert "note 70" in await redrawn(pilot)


async def test_older_events_stay_where_the_list_is_full_already(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They were let go of by the drawing that followed."""
    monkeypatch.setattr(events, "MOST_LINES", 100)
    monkeypatch.setattr(events, "PAGE", 40)
    client = FakeClient()
    client.tell(*(Noted("info", f"note {i}") for i in range(400)))
    async with opened(client, screen="events") as pilot:
        screen = pilot.app.screen

        def oldest() -> int:
            return screen._lines[0].seq

        await redrawn(pilot)
        first = oldest()
        assert len(screen._lines) == 100
        for pages in (1, 2):
            await pilot.press("H")
            await until(pilot, lambda pages=pages: oldest() <= first - 38 * pages, "a page")
        await pilot.press("H")
        await until(pilot, lambda: len(screen._lines) == 200, "as many again at most")
        client.tell(Noted("info", "news"))
        await until(pilot, lambda: client.events[-1].seq == screen._lines[-1].seq, "what came")
        await redrawn(pilot)
        assert oldest() <= first - 95, "what was fetched is there, and can be gone through"
        assert len(screen._lines) <= 200, "nor is there ever more"
        await pilot.press("H")
        assert "No more older lines are kept: F follows" in flashed(pilot.app)
        await pilot.press("F")
        await redrawn(pilot)
        assert len(screen._lines) == 100
        assert "older: H" in screen_text(pilot.app), "and they can be fetched again"


async def test_frozen_events_stay_while_others_come() -> None:
    client = FakeClient()
    async with opened(client, screen="events") as pilot:
        await pilot.press("f")
        client.tell(Noted("info", "afterwards"))
        await until(pilot, lambda: pilot.app.opened.live.view.log[-1].text == "afterwards", "it")
        await pilot.press("k")
        assert "afterwards" not in await redrawn(pilot)
        await pilot.press("4")
        assert "FROZEN" in await redrawn(pilot), "all screens of the session are frozen"
        await pilot.press("f", "9", "G")
        assert "afterwards" in await redrawn(pilot)


async def test_a_run_is_commanded_from_every_screen() -> None:
    client = FakeClient()
    async with opened(client, screen="models") as pilot:
        await pilot.press("p")
        await until(pilot, lambda: "PAUSED" in screen_text(pilot.app), "paused")
        assert client.commands() == [PauseRun(SESSION)]


async def test_models_show_versions_scores_and_influence() -> None:
    client = FakeClient(story(finished=True))
    client.tell(*modelled())
    async with opened(client, screen="models") as pilot:
        await until(pilot, lambda: "did not converge" in screen_text(pilot.app), "all scores")
        shown = screen_text(pilot.app)
        assert "✓       2  gaussian-process, 16 samples" in shown
        assert "log err" in shown
        assert "62 %" in shown
        await pilot.press("j")
        assert "›        1  neighbours, 8 samples" in await redrawn(pilot)


@pytest.mark.parametrize("name", ["[bold red]x[/]", "a\x1b]52;c;eA==\x07b", "ha‮proxy"])
async def test_events_from_outside_are_plain_text(name: str) -> None:
    client = FakeClient(story(lab_target=name))
    async with opened(client, (160, 50), screen="events") as pilot:
        client.tell(Noted("error", f"log of {name}"))
        shown = await redrawn(pilot)
        assert "".join(c if c.isprintable() else "·" for c in name) in shown
        assert not any(c in shown for c in "\x1b\x07‮")


# ------------------------------------------------------------------------------ habits


async def test_copy_goes_to_the_terminal_by_osc_52(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    written: list[str] = []
    async with opened(FakeClient()) as pilot:
        monkeypatch.setattr(pilot.app._driver, "write", written.append)
        await pilot.press("c")
        sequence = next(text for text in written if text.startswith("\x1b]52;c;"))
        table = base64.b64decode(sequence[7:-1]).decode().splitlines()
        assert table[0].split("\t")[:3] == ["wl", "repetition", "p95_ms"]
        assert len(table) == 6
        assert "Copied the samples of tinyproxy 25 %" in toasts(pilot.app)[-1]
        monkeypatch.setenv("TERM", "linux")
        await pilot.press("c")
        assert "Not copied" in toasts(pilot.app)[-1]


async def test_pictures_of_screen_and_plot_fetch_nothing(tmp_path: Path) -> None:
    async with opened(FakeClient(), files=Files(pictures=lambda: tmp_path)) as pilot:
        await pilot.press("E", "P")
        await until(pilot, lambda: len(toasts(pilot.app)) == 2, "both")
        screen, plot = (file.read_text() for file in sorted(tmp_path.iterdir()))
        assert "tinyproxy" in screen
        assert "Pause" in screen
        assert "capacity" in plot
        assert "Pause" not in plot
        assert "url(http" not in screen + plot


def test_a_picture_of_a_session_with_a_path_stays_in_its_folder(tmp_path: Path) -> None:
    path = write("<svg/>", tmp_path, "../../etc/x", "live")
    assert path.parent == tmp_path


async def test_without_a_folder_no_picture_is_offered() -> None:
    async with opened(FakeClient()) as pilot:
        assert "app.picture" not in {action.id for action in pilot.app.screen.offered()}
        await pilot.press("E", "P")
        assert toasts(pilot.app) == []


@pytest.mark.parametrize("theme", ["dark", "ansi", "mono"])
async def test_letters_stand_beside_what_they_choose(theme: str) -> None:
    async with opened(FakeClient(), theme=theme) as pilot:
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(pilot.app.screen, JumpScreen), "the letters")
        assert "l haproxy 12.5 %" in await redrawn(pilot)
        await pilot.press("2")
        assert not isinstance(pilot.app.screen, JumpScreen)


async def test_jump_mode_goes_to_a_configuration_and_to_a_screen() -> None:
    async with opened(FakeClient()) as pilot:
        await pilot.press("ctrl+o", "l")
        await pilot.pause()
        assert "haproxy 12.5 % · p95" in await redrawn(pilot)
        await pilot.press("ctrl+o", "k")
        await pilot.pause()
        assert pilot.app.screen.NAME == "events"
        await pilot.press("ctrl+o", "escape", "ctrl+o", "1", "b")
        assert pilot.app.screen.NAME == "events"


def test_labels_are_different_and_none_begins_another() -> None:
    for count in (1, len(LETTERS), len(LETTERS) + 1, 300):
        found = labels(count)
        assert len(set(found)) == count
        assert not any(a != b and b.startswith(a) for a in found for b in found)


async def test_themes_go_round_and_are_remembered(tmp_path: Path) -> None:
    files = Files(memory=tmp_path / "screen.json")
    async with opened(FakeClient(), files=files) as pilot:
        for name in [*list(THEMES)[1:], "dark", "light"]:
            await pilot.press("t")
            assert pilot.app.theme_name == name
            assert "capacity 750" in await redrawn(pilot)
            assert pilot.app.has_class("-mono") is (name == "mono")
        assert pilot.app.memory.theme == "light"


@pytest.mark.parametrize(
    ("environment", "theme"),
    [
        ({"NO_COLOR": "1", "COLORTERM": "truecolor"}, "mono"),
        ({"COLORTERM": "truecolor", "TERM": "xterm-256color"}, "dark"),
        ({"COLORTERM": "truecolor", "COLORFGBG": "0;15"}, "light"),
        ({"TERM": "xterm-256color"}, "dark"),
        ({"TERM": "linux"}, "ansi"),
        ({"TERM": "vt220"}, "ansi"),
        ({"NO_COLOR": "", "COLORTERM": "truecolor"}, "dark"),
    ],
)
def test_the_theme_suits_the_terminal(environment: dict[str, str], theme: str) -> None:
    assert fitting(environment) == theme


@pytest.mark.parametrize(
    ("environment", "chosen", "theme"),
    [
        ({"COLORTERM": "truecolor", "COLORFGBG": "0;15"}, "safe", "safe"),
        ({"COLORTERM": "truecolor", "COLORFGBG": "0;15"}, "dark", "dark"),
        ({"COLORTERM": "truecolor", "COLORFGBG": "0;15"}, "", "light"),
        ({"COLORTERM": "truecolor"}, "a theme of another release", "dark"),
        ({"TERM": "linux"}, "mono", "mono"),
        ({"TERM": "linux"}, "safe", "ansi"),
        ({"NO_COLOR": "1", "COLORTERM": "truecolor"}, "light", "mono"),
    ],
)
def test_a_chosen_theme_wins_where_the_terminal_can_show_it(
    environment: dict[str, str], chosen: str, theme: str
) -> None:
    assert beginning(environment, chosen) == theme


def test_the_next_screen_begins_with_the_chosen_theme_and_keeps_no_guess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("COLORFGBG", "0;15")
    monkeypatch.setenv("NO_COLOR", "")
    files = Files(memory=tmp_path / "screen.json")

    async def connect() -> FakeClient:
        return FakeClient()

    guessed = WorkbenchApp(connect, files=files)
    assert (guessed.theme_name, guessed.memory.theme) == ("light", "")
    assert not guessed.no_color
    guessed.memory.theme = "safe"
    assert WorkbenchApp(connect, files=files).theme_name == "safe"
