"""What is said stands in one line over the keys, equal messages as one; the rest is in a list."""

from __future__ import annotations

import pytest
from fake_link import SESSION, FakeClient, flashed, opened, redrawn, screen_text, story, until

from workbench.tui.app import WorkbenchApp
from workbench.tui.messages import Message, Messages

LONG = (
    "demo: the lab cannot be opened: no engine answers\nStart it, or choose --lab sim. " + "x " * 40
)


def test_equal_messages_in_a_row_are_one() -> None:
    messages = Messages()
    for text in ("gone", "gone", "gone", "back"):
        messages.add(text, "error", 0.0)
    first, second = messages
    assert (first.text, first.times) == ("gone", 3)
    assert first.line(40, "M") == "× gone (× 3)"
    assert second.times == 1
    assert messages.listed.index("back") < messages.listed.index("gone (× 3)")


def test_what_is_too_long_says_where_the_rest_is() -> None:
    line = Message(LONG, "warning", 0.0, 2).line(60, "M")
    assert len(line) <= 60
    assert line.startswith("! demo: the lab cannot be opened")
    assert line.endswith("… (× 2)  M all")


@pytest.mark.parametrize("size", [(80, 24), (60, 15), (160, 50)])
async def test_a_message_takes_room_of_the_keys_alone(size: tuple[int, int]) -> None:
    client = FakeClient(story(finished=True))

    async def connect() -> FakeClient:
        return client

    app = WorkbenchApp(connect, session=SESSION, theme="dark")
    async with app.run_test(size=size) as pilot:
        for screen in ("live", "models", "events", "sessions"):
            await until(pilot, lambda: app.opened.connected, "the session")
            app._show_said(())
            app.go(screen)
            await pilot.pause()
            before = (await redrawn(pilot)).splitlines()
            for _ in range(3):
                app.say(LONG, "error")
            app.say("Copied.")
            assert flashed(app) == "Copied."
            after = (await redrawn(pilot)).splitlines()
            assert after[-1].startswith(" Copied.  ")
            assert "? Help q Quit" in after[-1].replace("  ", " "), "keys stay that fit"
            assert after[:-1] == before[:-1]


async def test_all_that_was_said_is_read_by_a_key() -> None:
    async with opened(FakeClient()) as pilot:
        app = pilot.app
        assert isinstance(app, WorkbenchApp)
        app.say(LONG, "error")
        app.say(LONG, "error")
        await pilot.press("M")
        await redrawn(pilot)
        assert "Start it, or choose --lab sim." in screen_text(app)
