"""What tests of the screen Campaign do by keys."""

from __future__ import annotations

from typing import Any

from pricing_link import priced
from textual.events import Paste
from textual.pilot import Pilot

from workbench.tui.screens.campaign.campaign_screen import CampaignScreen
from workbench.tui.widgets.field import Field


def screen_of(pilot: Pilot[Any]) -> CampaignScreen:
    screen = pilot.app.screen
    assert isinstance(screen, CampaignScreen)
    return screen


def line_of(pilot: Pilot[Any], name: str) -> Field:
    form = screen_of(pilot).form
    assert form is not None
    return form.field(name)


async def write(pilot: Pilot[Any], field: str, text: str) -> None:
    """Paste a line anew, and let the engine see it: each key that is typed draws the screen."""
    screen = screen_of(pilot)
    assert screen.form is not None
    assert screen.form.field(field).display, field
    screen.form.edit(field)
    await pilot.press("end", "ctrl+u")
    if text:
        pilot.app.post_message(Paste(text))
    await pilot.press("enter")
    await priced(pilot)


async def choose(pilot: Pilot[Any], field: str, value: str) -> None:
    """Go through a choice by its keys until it says so."""
    screen = screen_of(pilot)
    assert screen.form is not None
    screen.form.edit(field)
    await pilot.pause()
    for _ in range(30):
        if screen.form.field(field).value == value:
            break
        await pilot.press("right")
        await pilot.pause()
    assert screen.form.field(field).value == value
    await priced(pilot)


def shares(pilot: Pilot[Any]) -> list[list[Any]]:
    """The values of every resource parameter, target by target."""
    return [
        parameter["values"]
        for target in pilot.app.draft.targets
        for parameter in target.get("resource_parameters", [])
    ]
