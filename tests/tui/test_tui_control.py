"""Who drives a run, as its screens show it: others see it and ask, the driver gives or keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fake_link import (
    SESSION,
    FakeClient,
    flashed,
    opened,
    progress_tick,
    screen_text,
    toasts,
    until,
)
from textual.pilot import Pilot

from workbench.domain.events import ControlLock, RunFinished
from workbench.domain.messages import (
    AnswerControl,
    AskControl,
    PauseRun,
    Request,
    ResumeSession,
    RunAccepted,
    StopRun,
)


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


class QueueingClient(FakeClient):
    """Its session was stopped; what is resumed waits for its turn."""

    def __init__(self) -> None:
        super().__init__()
        self.tell(RunFinished("stopped", 21, 2, 100.0, 105.0, ()))

    async def ask(self, request: Request) -> Any:
        if not isinstance(request, ResumeSession):
            return await super().ask(request)
        self.asked.append(request)
        return RunAccepted(SESSION, "night")


async def test_a_run_that_waits_for_its_turn_says_so_and_leaves_the_queue_by_a_key() -> None:
    link = QueueingClient()
    async with opened(link, (120, 34)) as pilot:
        await shows(pilot, " STOPPED ")
        await pilot.press("r")
        await until(pilot, lambda: "queued behind night" in toasts(pilot.app), "behind whom")
        link.tick(replace(progress_tick(), phase="queued", target="", wl=None))
        await shows(pilot, " QUEUED ")
        offered = {action.id for action in pilot.app.screen.offered()}
        assert "run.stop" in offered
        assert "run.resume" not in offered
        await pilot.press("r")
        assert flashed(pilot.app) == "It waits for its turn."
        await pilot.press("s")
        await shows(pilot, "Take it out of the queue?")
        await pilot.press("y")
        await until(pilot, lambda: StopRun(SESSION) in link.commands(), "the command")
        await shows(pilot, " STOPPED ")
        assert "run.resume" in {action.id for action in pilot.app.screen.offered()}
