"""One registry: unique ids, no key with two meanings at once, a handler for everything."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import combinations

import pytest
from fake_link import (
    SESSION,
    FakeClient,
    flashed,
    opened,
    redrawn,
    screen_text,
    story,
    toasts,
    until,
)

from workbench.domain.events import RunPaused
from workbench.tui.app import WorkbenchApp
from workbench.tui.commands.actions import ACTIONS, PLACES, in_places
from workbench.tui.commands.catalogue import SCREENS
from workbench.tui.screens.base import WorkbenchScreen, made
from workbench.tui.screens.dialogs import HelpScreen
from workbench.tui.screens.function_watch.watch_screen import WatchScreen
from workbench.tui.shell_commands import shell_commands

HEAVY = ("duckdb", "aiodocker", "sklearn", "scipy", "numpy", "pydantic", "aiohttp", "asyncssh")
NAMES = [screen.name for screen in SCREENS]


def test_ids_are_unique_and_places_exist() -> None:
    ids = [action.id for action in ACTIONS]
    assert len(set(ids)) == len(ids)
    assert {action.place for action in ACTIONS} <= set(PLACES)


def test_screens_have_different_names_keys_and_titles() -> None:
    for field in ("name", "key", "title", "summary"):
        values = [getattr(screen, field) for screen in SCREENS]
        assert len(set(values)) == len(values), field


async def test_every_action_has_a_handler_and_every_screen_its_name() -> None:
    async with opened(FakeClient()):
        for entry in SCREENS:
            screen = made(entry)
            assert entry.name == screen.NAME
            for action in in_places(entry.places):
                owner = WorkbenchApp if action.place == "anywhere" else type(screen)
                assert hasattr(owner, f"action_{action.method}"), (entry.name, action.id)


@pytest.mark.parametrize("state", ["running", "paused", "finished", "lost", "replay", "frozen"])
async def test_no_key_means_two_things_at_once(state: str) -> None:
    client = FakeClient(story(finished=state == "finished"))
    arguments = {"replay_speed": 1000.0} if state == "replay" else {}
    async with opened(client, **arguments) as pilot:
        if state == "paused":
            client.tell(RunPaused(""))
        if state == "frozen":
            await pilot.press("f")
        if state == "lost":
            client.die()
        await pilot.pause()
        for name in NAMES:
            await pilot.press(next(s.key for s in SCREENS if s.name == name))
            await redrawn(pilot)
            screen = pilot.app.screen
            assert isinstance(screen, WorkbenchScreen)
            assert name == screen.NAME
            for one, other in combinations(screen.offered(), 2):
                assert not set(one.keys) & set(other.keys), (name, one.id, other.id)


async def test_every_screen_is_reached_by_key_and_mouse() -> None:
    async with opened(FakeClient(), (120, 40)) as pilot:  # every tab has its title
        for way in ("key", "mouse"):
            for entry in reversed([e for e in SCREENS if way == "key" or e.tab]):
                if way == "key":
                    await pilot.press(entry.key)
                else:
                    column = screen_text(pilot.app).splitlines()[0].index(entry.title)
                    await pilot.click("#tabs", offset=(column, 0))
                await pilot.pause()
                assert isinstance(pilot.app.screen, WorkbenchScreen), (way, entry.name)
                assert entry.name == pilot.app.screen.NAME, way
                others = {f"go.{s.name}" for s in SCREENS} - {f"go.{entry.name}"}
                assert others <= {action.id for action in pilot.app.screen.offered()}


async def test_screens_are_in_the_palette() -> None:
    async with opened(FakeClient()) as pilot:
        await pilot.press("ctrl+p", *"go: ev")
        await until(pilot, lambda: "go: events (9)" in screen_text(pilot.app), "the entry")
        await pilot.press("enter")
        await until(
            pilot, lambda: pilot.app.screen.is_current and not pilot.app.screen.is_modal, ""
        )
        assert pilot.app.screen.NAME == "events"


async def test_what_another_screen_does_is_found_and_gone_to() -> None:
    async with opened(FakeClient(), (120, 40)) as pilot:
        await pilot.press("ctrl+p", *"export")
        await until(pilot, lambda: "session: export (x)" in screen_text(pilot.app), "the entry")
        shown = " ".join(screen_text(pilot.app).split())
        assert "recommend: export (x)" in shown
        assert "on Sessions (1)" in shown
        await pilot.press(*["backspace"] * 6, *"session: export", "enter")
        await until(pilot, lambda: pilot.app.screen.NAME == "sessions", "the screen that has it")


async def test_who_looks_for_counters_finds_watch_and_the_commands_without_a_session() -> None:
    """On Sessions, where none is open: Watch is that of the one under the cursor."""
    client = FakeClient()
    client.listed = [replace(session, state="finished") for session in client.listed]

    async def connect() -> FakeClient:
        return client

    app = WorkbenchApp(connect, theme="dark")
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: SESSION in screen_text(app), "the list")
        await pilot.press("ctrl+p", *"counter")
        await until(pilot, lambda: "go: watch (^l)" in screen_text(app), "the entry")
        shown = screen_text(app)
        assert "in a terminal: workbench counters" in shown
        assert "Running functions: KPI from counters, alarms (opens " in shown
        await pilot.press(*["backspace"] * 7, *"go: watch")
        await until(pilot, lambda: "workbench counters" not in screen_text(app), "only Watch")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, WatchScreen), "the screen")


async def test_a_command_without_a_screen_is_copied_with_the_names_of_the_session() -> None:
    assert shell_commands(None)[0].line.startswith("workbench counters --session SESSION ")
    (of_simulated,) = shell_commands(FakeClient().view())
    assert of_simulated.name == "workbench counters", "a simulation has no counters to watch by"
    async with opened(FakeClient(story("docker")), screen="watch") as pilot:
        assert isinstance(pilot.app, WorkbenchApp)
        counters, watch = shell_commands(pilot.app.opened.live.view)
        assert counters.line.startswith(f"workbench counters --session {SESSION} --")
        assert watch.line.startswith(f"workbench watch {SESSION} ")
        assert "FUNCTION" not in counters.line + watch.line
        await pilot.press("ctrl+p", *"workbench counters")
        found = "in a terminal: workbench counters"
        await until(pilot, lambda: found in screen_text(pilot.app), "the entry")
        await pilot.press("enter")
        await until(pilot, lambda: "the command" in " ".join(toasts(pilot.app)), "it is copied")


async def test_a_screen_needs_an_open_session_and_says_so() -> None:
    client = FakeClient()
    client.listed = [replace(session, state="finished") for session in client.listed]

    async def connect() -> FakeClient:
        return client

    app = WorkbenchApp(connect, theme="dark")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("9")
        assert app.screen.NAME == "sessions"
        await until(pilot, lambda: toasts(app), "the toast of the key")
        assert toasts(app) == ["Open a session first: ⏎ on its line."]
        assert "go.events" not in {action.id for action in app.screen.offered()}
        app.messages._kept.clear()
        await pilot.pause()
        column = screen_text(app).splitlines()[0].index("Live")
        await pilot.click("#tabs", offset=(column, 0))
        await until(pilot, lambda: toasts(app), "the toast")
        assert toasts(app) == ["Open a session first: ⏎ on its line."]


async def test_help_of_every_screen_tells_what_it_is_for_and_lists_its_keys() -> None:
    async with opened(FakeClient()) as pilot:
        for entry in SCREENS:
            await pilot.press(entry.key, "question_mark")
            await pilot.pause()
            help = pilot.app.screen
            assert isinstance(help, HelpScreen)
            told = " ".join(help._text().split())
            for action in in_places(entry.places):
                assert action.help in told or action.area == "replay", (entry.name, action.id)
            assert entry.about in told
            assert entry.summary in screen_text(pilot.app)
            await pilot.press("escape")


def test_a_screen_pulls_in_nothing_heavy() -> None:
    code = (
        "import sys, workbench.tui.app\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
        "print([m for m in sys.modules if m.startswith('workbench.')"
        " and m.split('.')[1] not in ('tui', 'link', 'domain', 'paths', 'files')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:2] == ["[]", "[]"]


@pytest.mark.parametrize("key", ["question_mark", "f1"])
async def test_help_comes_over_a_dialog_and_leaves_it_as_it_was(key: str) -> None:
    async with opened(FakeClient()) as pilot:
        await pilot.press("s")
        assert "y yes" in await redrawn(pilot)
        await pilot.press(key)
        assert "The plot shows one configuration" in await redrawn(pilot)
        await pilot.press("escape")
        assert "y yes" in await redrawn(pilot)


async def test_names_of_keys_stay_in_their_column_of_the_help() -> None:
    async with opened(FakeClient(), (120, 60)) as pilot:
        await pilot.press("question_mark")
        assert isinstance(pilot.app.screen, HelpScreen)
        lines = pilot.app.screen._text().splitlines()
        line = next(line for line in lines if "Side by side" in line)
        assert line.index("A plot for each target") == lines_column(lines, "Freeze what is shown")


def lines_column(lines: list[str], words: str) -> int:
    return next(line.index(words) for line in lines if words in line)


@pytest.mark.parametrize(
    ("screen", "key", "said"),
    [
        ("sessions", "d", "is being measured: stop its run first"),
        ("sessions", "r", "there is nothing to go on with"),
        ("live", "d", "No sample is under the cursor"),
        ("live", "r", "There is nothing to go on with: the session is running"),
        ("canary", "Y", "No proposal waits for a decision"),
        ("chain", "d", "No engine answers now"),  # the fake one keeps no drafts
    ],
)
async def test_a_key_that_is_of_no_use_now_says_why(screen: str, key: str, said: str) -> None:
    async with opened(FakeClient(), (160, 50)) as pilot:
        await pilot.press(next(s.key for s in SCREENS if s.name == screen))
        await until(pilot, lambda: screen == pilot.app.screen.NAME, "the screen")
        await redrawn(pilot)
        if screen == "sessions":
            await until(pilot, lambda: pilot.app.screen.here is not None, "the list")
        await pilot.press(key)
        await until(pilot, lambda: said in flashed(pilot.app), said)


async def test_first_and_last_configuration_on_live() -> None:
    async with opened(FakeClient()) as pilot:
        names = [c.key for c in pilot.app.opened.live.view.configurations]
        for key, at in (("G", -1), ("g", 0), ("end", -1), ("home", 0)):
            await pilot.press(key)
            assert pilot.app.opened.choice.key == names[at]


async def test_the_only_run_that_goes_on_is_meant_where_no_session_is_open() -> None:
    async def connect() -> FakeClient:
        return client

    client = FakeClient()
    app = WorkbenchApp(connect, theme="dark")
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.known_sessions, "the list")
        running = replace(app.known_sessions[0], state="running")
        app.known_sessions = (running, replace(running, name="other"))
        await pilot.press("4")
        assert not app.is_open, "which of two is not guessed"
        app.known_sessions = (running, replace(running, name="other", state="finished"))
        await pilot.press("4")
        assert app.opened.session == running.name
        await until(pilot, lambda: app.screen.NAME == "live", "the screen that was asked for")
