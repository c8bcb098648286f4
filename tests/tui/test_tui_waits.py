"""What is waited for says for how long: scores, comparisons, plans, chains of a policy, exports."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from canary_story import CanaryClient, accepted, modelled, whole
from comparing_link import ComparingClient
from fake_link import SESSION, FakeClient, opened, screen_text, toasts, until
from recommending_link import RecommendingClient, held
from textual.pilot import Pilot

from workbench.domain.errors import EngineError
from workbench.domain.export_requests import PreviewRecommendation
from workbench.domain.messages import (
    CompareSessions,
    ExportRecommendation,
    ExportSession,
    GenerateChains,
    GetStatus,
    ListCampaigns,
    PlanCampaign,
    Request,
)
from workbench.domain.questions import ExplainModel
from workbench.tui.screens import asking
from workbench.tui.screens.chain.choosing import PolicyScreen
from workbench.tui.screens.dialogs import ChoiceScreen
from workbench.tui.screens.failed import FailedScreen
from workbench.tui.screens.sessions.launch import LaunchScreen
from workbench.tui.widgets import waiting
from workbench.tui.widgets.waiting import Busy


class Held:
    """Requests of these kinds wait until the gate opens."""

    keeps: tuple[type[Request], ...] = ()

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.gate = asyncio.Event()
        self.waited: list[Request] = []

    async def ask(self, request: Request) -> Any:
        if isinstance(request, self.keeps):
            self.waited.append(request)
            await self.gate.wait()
        return await super().ask(request)  # type: ignore[misc]


class HeldClient(Held, FakeClient):
    pass


class HeldCanary(Held, CanaryClient):
    pass


class HeldComparing(Held, ComparingClient):
    pass


class HeldRecommending(Held, RecommendingClient):
    pass


async def models(pilot: Pilot[Any]) -> None:
    await pilot.press("v")


async def another_session(pilot: Pilot[Any]) -> None:
    pilot.app.screen._compare_with("night")


async def launch(pilot: Pilot[Any]) -> None:
    pilot.app.push_screen(LaunchScreen())


async def policy(pilot: Pilot[Any]) -> None:
    pilot.app.push_screen(PolicyScreen(()))
    await until(pilot, lambda: isinstance(pilot.app.screen, PolicyScreen), "the dialog")
    await pilot.press(*"a & b", "enter")


async def preview(pilot: Pilot[Any]) -> None:
    await until(pilot, lambda: pilot.app.screen.options is not None, "what can be written")
    await pilot.press("x")


async def write_it(pilot: Pilot[Any]) -> None:
    await preview(pilot)
    await until(pilot, lambda: "line: 3" in screen_text(pilot.app), "the preview")
    await pilot.press("enter")


async def export(pilot: Pilot[Any]) -> None:
    await pilot.press("1")
    await until(pilot, lambda: pilot.app.screen.NAME == "sessions" and pilot.app.screen.loaded)
    await pilot.press("x")
    await until(pilot, lambda: isinstance(pilot.app.screen, ChoiceScreen), "the formats")
    await pilot.press("enter")


Begin = Callable[[Pilot[Any]], Awaitable[None]]
WAITS: dict[str, tuple[Callable[[], Any], str, Begin, type[Request], str]] = {
    "residuals": (
        lambda: HeldCanary(*modelled()), "models", models, ExplainModel,
        "predicting held-out samples",
    ),
    "another session": (
        HeldComparing, "compare", another_session, CompareSessions, "comparing with night"
    ),
    "campaigns": (HeldClient, "live", launch, ListCampaigns, "looking for campaigns"),
    "plan": (HeldClient, "live", launch, PlanCampaign, "planning"),
    "policy": (HeldClient, "live", policy, GenerateChains, "looking for chains that obey it"),
    "preview": (
        lambda: HeldRecommending(held()), "recommend", preview, PreviewRecommendation,
        "writing it as",
    ),
    "file": (
        lambda: HeldRecommending(held()), "recommend", write_it, ExportRecommendation,
        "writing it to its file",
    ),
    "session": (HeldClient, "live", export, ExportSession, f"exporting {SESSION} as"),
}  # fmt: skip


@pytest.mark.parametrize("wait", WAITS)
async def test_a_wait_says_for_how_long(wait: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, screen, begin, kind, words = WAITS[wait]
    clock = [1000.0]
    monkeypatch.setattr(waiting, "monotonic", lambda: clock[0])
    monkeypatch.setattr(asking, "LOOK_S", 0.02)
    client = make()
    client.keeps = (kind,)
    async with opened(client, (100, 30), screen=screen) as pilot:
        await begin(pilot)
        await until(pilot, lambda: words in screen_text(pilot.app), "what is waited for")
        clock[0] += 17.0
        await until(pilot, lambda: "17 s" in screen_text(pilot.app), "for how long")
        client.gate.set()
        await until(pilot, lambda: "17 s" not in screen_text(pilot.app), "its end")


async def test_a_second_export_waits_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    client = HeldClient()
    client.keeps = (ExportSession,)
    async with opened(client, (100, 30), screen="live") as pilot:
        await export(pilot)
        await until(pilot, lambda: "exporting" in screen_text(pilot.app), "the first")
        await pilot.press("x")
        assert "An export is being written" in screen_text(pilot.app)
        client.gate.set()
        await until(pilot, lambda: any("Wrote exports/" in said for said in toasts(pilot.app)))
        assert "exporting" not in screen_text(pilot.app)


async def test_an_explanation_that_is_waited_for_can_be_dropped() -> None:
    client = HeldCanary(*modelled())
    client.keeps = (ExplainModel,)
    async with opened(client, (100, 30), screen="models") as pilot:
        await pilot.press("v")
        await until(pilot, lambda: "esc cancels" in screen_text(pilot.app), "how it is dropped")
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen.pane == "scores", "the scores")
        assert pilot.app.screen.NAME == "models", "the key cancels, and does not leave the screen"
        assert not pilot.app.screen.unanswered
        await pilot.press("v")  # looked at again, it is asked again
        await until(pilot, lambda: len(client.waited) == 2, "the question once more")
        client.gate.set()
        await until(pilot, lambda: "held out" in screen_text(pilot.app), "its answer")


async def test_a_question_that_is_left_for_another_is_asked_again() -> None:
    """Residuals of one model, then of another while they are computed, then of the first again."""
    client = HeldCanary(*modelled(), *whole(), accepted())
    client.keeps = (ExplainModel,)
    async with opened(client, (100, 30), screen="models") as pilot:
        await pilot.press("v")
        for asked in (1, 2, 3):
            await until(pilot, lambda asked=asked: len(client.waited) == asked, "a question")
            if asked < 3:
                await pilot.press("tab")
        first, second, again = client.waited
        assert first == again != second
        client.gate.set()
        await until(pilot, lambda: "held out" in screen_text(pilot.app), "its answer")


async def test_what_fails_while_it_is_waited_for_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Exception] = []

    def log(error: Exception) -> str:
        kept.append(error)
        return "the log"

    def hear(busy: Busy, status: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(asking, "LOOK_S", 0.02)
    monkeypatch.setattr(Busy, "hear", hear)
    client = HeldCanary(*modelled())
    client.keeps = (ExplainModel,)
    async with opened(client, (100, 30), screen="models", log=log) as pilot:
        await pilot.press("v")
        await until(pilot, lambda: isinstance(pilot.app.screen, FailedScreen), "it is put aside")
        assert [str(error) for error in kept] == ["a bug"]


async def test_an_engine_that_says_nothing_of_itself_is_waited_for_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Mute(HeldCanary):
        mute, looks = False, 0

        async def ask(self, request: Request) -> Any:
            if self.mute and isinstance(request, GetStatus):
                self.looks += 1
                raise EngineError("not now")
            return await super().ask(request)

    clock = [1000.0]
    monkeypatch.setattr(waiting, "monotonic", lambda: clock[0])
    monkeypatch.setattr(asking, "LOOK_S", 0.02)
    client = Mute(*modelled())
    client.keeps = (ExplainModel,)
    async with opened(client, (100, 30), screen="models") as pilot:
        client.mute = True
        await pilot.press("v")
        await until(pilot, lambda: client.looks, "the engine is asked what it does")
        clock[0] += 33.0
        await until(pilot, lambda: "33 s" in screen_text(pilot.app), "time goes on")
        assert client.looks == 1, "and is left alone then"
