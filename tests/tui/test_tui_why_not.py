"""A key that is of no use now says why, on every screen and in every state of its session."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from canary_story import CanaryClient, accepted, modelled, whole
from comparing_link import ComparingClient
from drafting import drafting, settled
from fake_link import (
    SESSION,
    FakeClient,
    flashed,
    opened,
    redrawn,
    screen_text,
    story,
    until,
)
from recommending_link import RecommendingClient, held

from workbench.domain.errors import SessionError
from workbench.domain.events import Event
from workbench.domain.fleets import FleetSeen
from workbench.domain.messages import ListSessions, Request
from workbench.tui.app import WorkbenchApp
from workbench.tui.commands.catalogue import SCREENS
from workbench.tui.screens.base import SILENT, WorkbenchScreen
from workbench.tui.screens.models import models

OF_SESSION = [screen.name for screen in SCREENS if screen.of_session]


def unexplained(screen: WorkbenchScreen) -> list[str]:
    """Keys that do nothing now without a sentence of their own."""
    explained, found = screen.explained(), []
    for key in sorted({key for action in explained for key in action.keys} - set(SILENT)):
        meant = [a for a in explained if key in a.keys and a.method != "go"]
        if any(screen._possible(action) for action in meant):
            continue
        if meant and not any(map(screen.reason, meant)):
            found.append(f"{key} on {screen.NAME}: {', '.join(a.id for a in meant)}")
    return found


async def of_every_screen(pilot: Any, screens: list[str]) -> list[str]:
    found = []
    for name in screens:
        pilot.app.go(name)
        await until(pilot, lambda name=name: name == pilot.app.screen.NAME, name)
        await redrawn(pilot)
        found += unexplained(pilot.app.screen)
    return found


STATES: dict[str, list[Event]] = {
    "planned": story()[:2],
    "running": story(),
    "finished": story(finished=True),
}


@pytest.mark.parametrize("state", STATES)
async def test_no_key_of_a_session_is_silent(state: str) -> None:
    client = FakeClient(STATES[state])
    async with opened(client, (100, 30), screen="live") as pilot:
        for role in ("operator", "observer"):
            client.role = pilot.app.opened.role = role
            assert await of_every_screen(pilot, OF_SESSION) == [], role


async def test_nor_in_a_replay_nor_where_no_engine_answers() -> None:
    client = FakeClient(story(finished=True))
    async with opened(client, (100, 30), screen="live", replay_speed=1000.0) as pilot:
        assert await of_every_screen(pilot, OF_SESSION) == []
    async with opened(FakeClient(story()), (100, 30), screen="live") as pilot:
        pilot.app.opened.lost, pilot.app.opened.loss = "it is gone", "engine"
        assert await of_every_screen(pilot, OF_SESSION) == []


async def test_nor_where_an_answer_is_shown() -> None:
    facts = (*modelled(), *whole(), accepted())
    async with opened(CanaryClient(*facts), (100, 30), screen="live") as pilot:
        assert await of_every_screen(pilot, ["canary", "models"]) == []
        for _ in models.PANES:
            await pilot.press("v")
            assert unexplained(pilot.app.screen) == []
    comparing = ComparingClient()
    comparing.let_go()
    async with opened(comparing, (100, 30), screen="compare") as pilot:
        await until(pilot, lambda: pilot.app.screen.asking.busy is None, "the comparison")
        for _ in range(4):
            assert unexplained(pilot.app.screen) == []
            await pilot.press("v")
    async with opened(RecommendingClient(held()), (100, 30), screen="recommend") as pilot:
        assert unexplained(pilot.app.screen) == []


async def test_no_key_of_a_draft_is_silent(tmp_path: Path) -> None:
    async with drafting(tmp_path, (100, 30)) as pilot:
        screens = ["sessions", "chain", "campaign"]
        assert await of_every_screen(pilot, screens) == []
        for name in ("tinyproxy", "tinyproxy-haproxy"):  # a function alone, a chain of the palette
            await pilot.app.draft.start()
            pilot.app.go("chain")
            await settled(pilot)
            assert await of_every_screen(pilot, screens) == [], "nothing is in it"
            pilot.app.go("chain")
            await pilot.press("a")
            await until(pilot, lambda: not isinstance(pilot.app.screen, WorkbenchScreen), "palette")
            await pilot.press(*name, "enter")
            await settled(pilot)
            assert await of_every_screen(pilot, screens) == []
        pilot.app.draft.write("Editing the text", "- no mapping")
        await settled(pilot)
        assert await of_every_screen(pilot, screens) == []


async def said(pilot: Any, key: str) -> str:
    await pilot.press(key)
    return flashed(pilot.app)


async def test_reasons_of_chain(tmp_path: Path) -> None:
    async with drafting(tmp_path) as pilot:
        await pilot.app.draft.start()
        await settled(pilot)
        assert await said(pilot, "d") == "There is no function yet: a adds one."
        assert await said(pilot, "D") == "There is no target yet: a adds a function."
        await pilot.press("a")
        await until(pilot, lambda: not isinstance(pilot.app.screen, WorkbenchScreen), "palette")
        await pilot.press(*"tinyproxy", "enter")
        await settled(pilot)
        assert await said(pilot, "right") == "There is no other part to choose."
        assert (
            await said(pilot, "f8") == "Only a chain of the palette is unpacked, and this is none."
        )
        assert (await said(pilot, "f7")).startswith("It is the only function")
        assert (await said(pilot, "shift+left")).startswith("Nothing comes before it")


@pytest.mark.parametrize(
    ("keys", "comes"),
    [(("enter", "enter"), "live"), (("enter", "escape"), "sessions"), ((), "sessions")],
)
async def test_keys_wait_until_the_engine_answers(keys: tuple[str, ...], comes: str) -> None:
    class Slow(FakeClient):
        async def ask(self, request: Request) -> Any:
            if isinstance(request, ListSessions):
                await gate.wait()
            return await super().ask(request)

    async def connect() -> FakeClient:
        return Slow()

    gate = asyncio.Event()
    app = WorkbenchApp(connect, theme="dark")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "connecting" in screen_text(app), "the empty list")
        for key in keys:
            words = await said(pilot, key)
            assert words.startswith("The engine has not answered yet: Open waits for that") or (
                key == "escape"
            )
        gate.set()
        await until(pilot, lambda: "night" in screen_text(app) or comes == "live", "the list")
        await until(pilot, lambda: comes == pilot.app.screen.NAME, "what was asked for")
        await pilot.pause()
        assert comes == pilot.app.screen.NAME


async def test_what_a_session_waits_for_is_told_apart() -> None:
    async with opened(FakeClient(story()[:2]), (100, 30), screen="live") as pilot:
        pilot.app.opened.connected = False
        assert pilot.app.screen.why_not("pause").startswith("The engine has not answered yet")
        pilot.app.opened.preparing = "demo-1: images"
        assert pilot.app.screen.why_not("pause") == "The lab is still being made ready."


async def test_reasons_of_models() -> None:
    async with opened(FakeClient(story()[:2]), (100, 30), screen="models") as pilot:
        assert await said(pilot, "ctrl+r") == "No valid sample was measured yet."
        assert await said(pilot, "v") == "No model is stored yet: ^r scores the methods."
    async with opened(CanaryClient(*modelled()), (100, 30), screen="models") as pilot:
        assert (await said(pilot, "U")).startswith("Only an accepted model of a chain")
        assert await said(pilot, "J") == "Residuals alone have two axes: v goes on to them."
        pilot.app.opened.role = "observer"
        assert await said(pilot, "U") == "Observers may watch, not change."


async def test_reasons_of_compare_and_recommend() -> None:
    async with opened(FakeClient(story()[:2]), (100, 30), screen="recommend") as pilot:
        assert await said(pilot, "x") == "There is no recommendation yet: e asks for one."
        assert await said(pilot, "f5") == "There is no recommendation yet: e asks for one."
        assert await said(pilot, "o") == "There is no other recommendation."
    comparing = ComparingClient()
    comparing.let_go()
    async with opened(comparing, (100, 30), screen="compare") as pilot:
        await until(pilot, lambda: pilot.app.screen.asking.busy is None, "the comparison")
        assert await said(pilot, "I") == "No profiles of another host were refused."
        await pilot.press("v")
        assert await said(pilot, "l") == "Errors have no such axis: v goes on to curves."
        pilot.app.screen.view = "sessions"
        await redrawn(pilot)
        assert (await said(pilot, "Q")).startswith("Two sessions are compared: v goes back")
        assert await said(pilot, "ctrl+r") == "No other session is chosen yet: o chooses one."


async def test_reasons_of_events_hosts_and_watch() -> None:
    async with opened(FakeClient(story()), (100, 30), screen="events") as pilot:
        assert await said(pilot, "F") == "The latest line is followed already."
        assert await said(pilot, "H") == "Nothing is older than the first line."
        await pilot.press("home")
        assert await said(pilot, "enter") == "This line is about no sample."
    begun = [*story()[:3], Event(4, story()[0].at + 60, "demo-1", FleetSeen((), 3, 0, 0, 180.0))]
    async with opened(FakeClient(begun), (100, 30), screen="hosts") as pilot:
        assert (await said(pilot, "p")).startswith("A fleet measures it: stop it")
    async with opened(FakeClient(story(finished=True)), (100, 30), screen="watch") as pilot:
        assert await said(pilot, "p") == "No run goes on: the session is finished."
        assert await said(pilot, "w") == "Nobody drives a run here."
        assert await said(pilot, "c") == "There is nothing here to copy."


async def test_reasons_of_a_session_that_is_gone_and_of_one_that_was_cut_off() -> None:
    client = FakeClient()
    async with opened(client, (100, 30), screen="live") as pilot:
        client.die(SessionError("was renamed or deleted", where=SESSION))
        await until(pilot, lambda: pilot.app.opened.lost, "it is gone")
        await redrawn(pilot)
        assert await said(pilot, "p") == f"{SESSION} was renamed or deleted."
    async with opened(CanaryClient(finished=False), (100, 30), screen="canary") as pilot:
        assert (await said(pilot, "n")).startswith("The lab measures for this session")
        pilot.app.opened.live.view.state = "interrupted"
        await redrawn(pilot)
        assert await said(pilot, "n") == "Its campaign has not ended: r goes on with it."
