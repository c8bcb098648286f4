"""Keys that throw something away, where there is something: they ask first, or undo brings it back.

What asks does nothing until it is answered, and then exactly what it asked about.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from canary_story import CanaryClient, accepted, begun, modelled, taken, whole
from drafting import drafting, settled
from fake_link import FakeClient, opened, redrawn, screen_text, until
from recommending_link import RecommendingClient, held
from textual.pilot import Pilot
from why_link import WhyClient

from workbench.domain.housekeeping import DeleteSession, RestoreSession
from workbench.domain.messages import Request, SkipConfiguration, StopRun
from workbench.domain.questions import DecideProposal, RollBackModel, VerifyRecommendation
from workbench.domain.sample_review import DecideSample, RequestPoint
from workbench.tui.app import WorkbenchApp
from workbench.tui.commands.actions import ACTIONS
from workbench.tui.commands.meanings import MEANINGS, SHARED
from workbench.tui.screens.base import WorkbenchScreen

Place = Callable[[FakeClient], AbstractAsyncContextManager[Pilot[Any]]]


@asynccontextmanager
async def on_sample(client: FakeClient) -> AsyncIterator[Pilot[Any]]:
    async with opened(client) as pilot:
        await pilot.press("left")
        await until(pilot, lambda: pilot.app.opened.choice.sample, "a sample")
        yield pilot


@asynccontextmanager
async def on_version(client: FakeClient) -> AsyncIterator[Pilot[Any]]:
    async with opened(client, screen="models") as pilot:
        await pilot.press("tab", "j")
        await redrawn(pilot)
        yield pilot


@asynccontextmanager
async def verifying(client: RecommendingClient) -> AsyncIterator[Pilot[Any]]:
    client.gate.clear()
    async with opened(client, screen="recommend") as pilot:
        await pilot.press("f5", "y")
        await until(pilot, lambda: pilot.app.screen.asking.busy, "the verification")
        yield pilot
        client.gate.set()


@asynccontextmanager
async def on_answer(client: FakeClient) -> AsyncIterator[Pilot[Any]]:
    """Why a chain is slow, with what would tell."""
    async with opened(client, screen="why") as pilot:
        await until(pilot, lambda: "acknowledges late" in screen_text(pilot.app), "the answer")
        yield pilot


@dataclass(frozen=True)
class Asks:
    """An action that asks: where there is something to lose, what answers it, what it sends."""

    id: str
    make: Callable[[], FakeClient]
    place: Place
    answer: tuple[str, ...]
    sends: type[Request]


RUN: Callable[[], FakeClient] = FakeClient
CANARY = partial(CanaryClient, *begun(), *taken(1))
PROPOSAL = partial(CanaryClient, *whole())
ON_CANARY: Place = partial(opened, screen="canary")
YES, WHY = ("y",), (*"noise", "enter")

ASKING = (
    Asks("run.stop", RUN, opened, YES, StopRun),
    Asks("run.abort", RUN, opened, YES, StopRun),
    Asks("run.skip", RUN, opened, YES, SkipConfiguration),
    Asks("sample.reject", RUN, on_sample, WHY, DecideSample),
    Asks("canary.stop", CANARY, ON_CANARY, YES, StopRun),
    Asks("canary.abort", CANARY, ON_CANARY, YES, StopRun),
    Asks("canary.accept", PROPOSAL, ON_CANARY, WHY, DecideProposal),
    Asks("canary.reject", PROPOSAL, ON_CANARY, WHY, DecideProposal),
    Asks("models.roll_back", partial(CanaryClient, *modelled(), *whole(), accepted()),
         on_version, YES, RollBackModel),
    Asks("recommend.verify", partial(RecommendingClient, held()),
         partial(opened, screen="recommend"), YES, VerifyRecommendation),
    Asks("why.measure", WhyClient, on_answer, YES, RequestPoint),
    Asks("recommend.stop", partial(RecommendingClient, held()), verifying, YES, StopRun),
)  # fmt: skip
UNDONE = ("session.delete", "chain.remove", "chain.drop", "draft.discard")
ELSEWHERE = {"draft.mistake", "control.give", "control.keep", "draft.run", "sample.restore"}
"""They take nothing away, or are tested where a whole campaign is begun (`test_tui_grid`)."""


def keys(id: str) -> tuple[str, ...]:
    return next(action.keys for action in ACTIONS if action.id == id)


def sent(client: FakeClient, kind: type[Request]) -> list[Request]:
    return [request for request in client.asked if isinstance(request, kind)]


def is_asked(pilot: Pilot[Any]) -> bool:
    return not isinstance(pilot.app.screen, WorkbenchScreen)


@pytest.mark.parametrize(
    ("case", "key"), [pytest.param(c, k, id=f"{c.id} {k}") for c in ASKING for k in keys(c.id)]
)
async def test_it_asks_and_does_it_once_it_is_answered(case: Asks, key: str) -> None:
    client = case.make()
    async with case.place(client) as pilot:
        await redrawn(pilot)
        before = len(sent(client, case.sends))
        await pilot.press(key)
        await until(pilot, lambda: is_asked(pilot), f"{case.id} asks")
        assert len(sent(client, case.sends)) == before
        await pilot.press("escape")
        await until(pilot, lambda: not is_asked(pilot), "no")
        assert len(sent(client, case.sends)) == before, "whoever leaves it has said no"
        await pilot.press(key)
        await until(pilot, lambda: is_asked(pilot), f"{case.id} asks again")
        await pilot.press(*case.answer)
        await until(pilot, lambda: len(sent(client, case.sends)) == before + 1, "it is done")


@pytest.mark.parametrize("key", keys("session.delete"))
async def test_a_deleted_session_is_brought_back(key: str) -> None:
    client = FakeClient()

    async def connect() -> FakeClient:
        return client

    app = WorkbenchApp(connect, theme="dark")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "night" in screen_text(app), "the list")
        await pilot.press("down", key)
        await until(pilot, lambda: sent(client, DeleteSession), "it is sent")
        assert sent(client, DeleteSession) == [DeleteSession("night")]
        await until(pilot, lambda: "u Undo" in screen_text(app), "the way back")
        await pilot.press("u")
        await until(pilot, lambda: sent(client, RestoreSession), "it is brought back")


@pytest.mark.parametrize(
    ("id", "key"), [(id, key) for id in UNDONE if id != "session.delete" for key in keys(id)]
)
async def test_what_is_taken_from_a_draft_is_brought_back(
    id: str, key: str, tmp_path: Path
) -> None:
    async with drafting(tmp_path) as pilot:
        for name in ("tinyproxy", "haproxy"):
            await pilot.press("a")
            await until(pilot, lambda: is_asked(pilot), "the palette")
            await pilot.press(*name, "enter")
            await settled(pilot)
        before = pilot.app.draft.targets
        await pilot.press(key)
        await until(
            pilot, lambda: not pilot.app.draft.is_open or pilot.app.draft.targets != before, "gone"
        )
        await pilot.press("u")
        await until(
            pilot, lambda: pilot.app.draft.is_open and pilot.app.draft.targets == before, "back"
        )


def test_every_action_that_promises_so_is_tried() -> None:
    promised = {a.id for a in ACTIONS if "asks" in a.help.lower() or "undo" in a.help}
    tried = {case.id for case in ASKING} | set(UNDONE)
    assert promised - ELSEWHERE == tried
    of_meanings = {id for key, words in MEANINGS.items() if "asks" in words for id in SHARED[key]}
    assert of_meanings - ELSEWHERE <= tried, "a key that is said to ask does on every screen"
