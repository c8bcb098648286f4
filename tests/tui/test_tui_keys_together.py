"""Keys that arrive together, as over a slow link, do what they do one after the other."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from fake_link import FakeClient, opened, screen_text, until
from pricing_link import PricingClient, campaigning, priced
from recommending_link import RecommendingClient
from textual.events import Key, Paste
from textual.pilot import Pilot

from workbench.domain.housekeeping import RenameSession
from workbench.domain.questions import Recommend
from workbench.tui import keyboard
from workbench.tui.widgets.field import Line

SLAS = ("p95<=200ms @ rate=300/s", "throughput>=295/s @ rate=300/s")


def arrive(pilot: Pilot[Any], *keys: str) -> None:
    """In one packet: all are there before the first is dealt with."""
    for key in keys:
        pilot.app.post_message(Key(key, key if len(key) == 1 else None))


async def test_a_form_is_opened_gone_through_and_sent_off() -> None:
    client = RecommendingClient()
    async with opened(client, screen="recommend") as pilot:
        first, second = SLAS
        arrive(pilot, "e", "down", "ctrl+u", *first, "down", *second, "ctrl+r")
        await until(pilot, lambda: any(isinstance(a, Recommend) for a in client.asked), "asked")
        (asked,) = (a for a in client.asked if isinstance(a, Recommend))
        assert asked.slas == SLAS


async def test_two_lines_of_a_draft_are_written(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        form = pilot.app.screen.form
        lines = [field for field in form.fields if field.display]
        here = next(i for i, field in enumerate(lines) if field.name == "line-0")
        steps = next(i for i, f in enumerate(lines[here + 1 :], 1) if isinstance(f.entry, Line))
        form.edit("line-0")
        rest = lines[here + steps].value
        arrive(pilot, "ctrl+u", *"25%", *["tab"] * steps, *"0", "escape")
        await until(pilot, lambda: pilot.app.draft.settled and not form.editing, "both written")
        await priced(pilot)
        assert [lines[here].value, lines[here + steps].value] == ["25%", f"{rest}0"]


async def test_what_is_pasted_stays_in_its_place_among_the_keys() -> None:
    async with opened(RecommendingClient(), screen="recommend") as pilot:
        arrive(pilot, "e", "down", "ctrl+u")
        pilot.app.post_message(Paste(SLAS[0]))
        arrive(pilot, "down")
        form = pilot.app.screen.form
        await until(pilot, lambda: form.field("sla-2").entry.has_focus, "the next line")
        assert form.values()["sla"] == SLAS[0]


async def test_what_follows_the_key_of_a_dialog_is_typed_into_it() -> None:
    client = FakeClient()
    async with opened(client) as pilot:
        await pilot.press("1")
        await until(pilot, lambda: "night" in screen_text(pilot.app), "the list")
        client.asked.clear()
        arrive(pilot, "g", "j", "e", "end", *"-2", "enter")
        await until(pilot, lambda: client.commands(), "the new name")
        (renamed,) = client.commands()
        assert isinstance(renamed, RenameSession)
        assert renamed.name == f"{renamed.session}-2"


async def test_what_nobody_asked_for_is_drawn_behind_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyboard, "LONGEST_S", 60.0)
    async with opened(FakeClient()) as pilot:
        dealt_with = asyncio.Event()

        async def deal_with(event: Key | Paste) -> None:
            del event
            await dealt_with.wait()

        monkeypatch.setattr(pilot.app.keyboard, "_hand_on", deal_with)
        arrive(pilot, "j")
        await until(pilot, lambda: pilot.app.keyboard.quiet_s == 0, "the key")
        waiting = asyncio.create_task(pilot.app.keyboard.painted())
        await pilot.pause(2 * keyboard.PAINTED_S)
        assert not waiting.done()
        dealt_with.set()
        await until(pilot, waiting.done, "its end")
        await pilot.app.keyboard.painted()  # nothing is waited for any more
