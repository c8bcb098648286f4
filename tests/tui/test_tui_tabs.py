"""The line of screens names every screen wherever it has a line of its own."""

from __future__ import annotations

import pytest
from fake_link import FakeClient, opened, redrawn, screen_text

from workbench.tui.commands.catalogue import SCREENS, Entry
from workbench.tui.screens.base import WorkbenchScreen


@pytest.mark.parametrize(
    ("width", "named"), [(160, "title"), (86, "title"), (80, "title"), (60, "short")]
)
async def test_every_tab_has_a_name(width: int, named: str) -> None:
    async with opened(FakeClient(), (width, 24)) as pilot:
        await redrawn(pilot)
        line = screen_text(pilot.app).splitlines()[0]
        at = [line.index(getattr(entry, named)) for entry in SCREENS if entry.tab]
        assert at == sorted(at)


@pytest.mark.parametrize("rare", [entry for entry in SCREENS if not entry.tab])
async def test_a_screen_without_a_tab_of_its_own_has_one_while_it_is_shown(rare: Entry) -> None:
    key = rare.key.replace("ctrl+", "^")
    for width in (160, 80):
        async with opened(FakeClient(), (width, 24)) as pilot:
            await redrawn(pilot)
            line = screen_text(pilot.app).splitlines()[0]
            assert rare.title not in line, width
            await pilot.press(rare.key)
            await redrawn(pilot)
            assert f"{key}{rare.short}" in screen_text(pilot.app).splitlines()[0].replace(
                f"{key} ", key
            )


async def test_a_name_in_the_narrow_line_is_clicked() -> None:
    async with opened(FakeClient(), (80, 24)) as pilot:
        await redrawn(pilot)
        line = screen_text(pilot.app).splitlines()[0]
        for title, name in (("9Events", "events"), ("1Sessions", "sessions")):
            await pilot.click("#tabs", offset=(line.index(title) + 3, 0))
            await pilot.pause()
            assert isinstance(pilot.app.screen, WorkbenchScreen)
            assert name == pilot.app.screen.NAME


async def test_a_low_terminal_has_the_keys_and_the_name_of_this_screen() -> None:
    async with opened(FakeClient(), (80, 18)) as pilot:
        await redrawn(pilot)
        line = screen_text(pilot.app).splitlines()[0]
        assert "4 Live" in line
        assert "Compare" not in line
