"""Who drives a run, as its screens show it: others see it and ask, the driver gives or keeps."""

from __future__ import annotations

from fake_link import SESSION, FakeClient, opened, screen_text, until
from textual.pilot import Pilot

from workbench.domain.events import ControlLock
from workbench.domain.messages import AnswerControl, AskControl, PauseRun


async def shows(pilot: Pilot[object], words: str) -> None:
    await until(pilot, lambda: words in screen_text(pilot.app))


async def test_another_drives_and_is_asked() -> None:
    link = FakeClient()
    async with opened(link, (120, 34)) as pilot:
        await pilot.press("w")  # nobody drives: there is nobody to ask
        link.tick(ControlLock(SESSION, "bob"))
        await shows(pilot, "bob drives")
        await pilot.press("w")
        await until(pilot, lambda: AskControl(SESSION) in link.commands())
        link.tick(ControlLock(SESSION, "ann"))
        await until(pilot, lambda: "drives" not in screen_text(pilot.app))
    assert link.commands().count(AskControl(SESSION)) == 1


async def test_the_driver_is_asked_and_keeps_or_gives_the_wheel() -> None:
    link = FakeClient()
    async with opened(link, (120, 34)) as pilot:
        link.tick(ControlLock(SESSION, "ann", "bob\x1b[2J", 2e9))
        await shows(pilot, "asks for control: w gives it, W keeps it")
        assert "\x1b" not in screen_text(pilot.app)
        await pilot.press("W")
        await until(pilot, lambda: AnswerControl(SESSION, give=False) in link.commands())
        await pilot.press("w")
        await until(pilot, lambda: AnswerControl(SESSION) in link.commands())


async def test_an_observer_is_told_so_and_has_no_commands() -> None:
    link = FakeClient()
    link.role = "observer"
    async with opened(link, (120, 34)) as pilot:
        await shows(pilot, "OBSERVER")
        await pilot.press("p", "w")
        link.tick(ControlLock(SESSION, "bob"))
        await shows(pilot, "OBSERVER, bob drives")
    assert PauseRun(SESSION) not in link.commands()
    assert not any(isinstance(command, AskControl) for command in link.commands())
