"""One registry: unique ids, no key with two meanings at once, a handler for everything."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import pytest
from fake_link import FakeClient, opened, story

from workbench.domain.events import RunPaused
from workbench.tui.actions import ACTIONS, Place, actions_of
from workbench.tui.app import WorkbenchApp
from workbench.tui.screens.live import LiveScreen
from workbench.tui.screens.sessions import SessionsScreen

HEAVY = ("duckdb", "aiodocker", "sklearn", "scipy", "numpy", "pydantic", "aiohttp", "asyncssh")


def test_ids_are_unique() -> None:
    ids = [action.id for action in ACTIONS]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(("place", "screen"), [("live", LiveScreen), ("sessions", SessionsScreen)])
def test_every_action_has_a_handler(place: Place, screen: type) -> None:
    for action in actions_of(place):
        owner = WorkbenchApp if action.place == "anywhere" else screen
        assert hasattr(owner, f"action_{action.handler}"), action.id


@pytest.mark.parametrize("state", ["running", "paused", "finished", "lost", "replay", "frozen"])
async def test_no_key_means_two_things_at_once(state: str) -> None:
    client = FakeClient(story(finished=state == "finished"))
    arguments = {"replay_speed": 1.0} if state == "replay" else {}
    async with opened(client, **arguments) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, LiveScreen)
        if state == "paused":
            client.tell(RunPaused(""))
        if state == "frozen":
            await pilot.press("f")
        if state == "lost":
            client.die()
        await pilot.pause()
        for one, other in combinations(screen.offered(), 2):
            assert not set(one.keys) & set(other.keys), (one.id, other.id)


async def test_keys_can_be_bound_anew_by_id() -> None:
    async with opened(FakeClient()) as pilot:
        pilot.app.set_keymap({"view.freeze": "ctrl+f"})
        await pilot.press("ctrl+f")
        assert isinstance(pilot.app.screen, LiveScreen)
        assert pilot.app.screen.frozen is not None


def test_a_screen_pulls_in_nothing_heavy() -> None:
    code = (
        "import sys, workbench.tui.app\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
        "print([m for m in sys.modules if m.startswith('workbench.')"
        " and m.split('.')[1] not in ('tui', 'link', 'domain', 'paths')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:2] == ["[]", "[]"]
