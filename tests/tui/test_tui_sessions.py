"""The session picker: list, filter, empty state, start, resume, replay."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from fake_link import SESSION, FakeClient, redrawn, screen_text, story, until
from textual.pilot import Pilot
from textual.widgets import Static

from workbench.domain.errors import EngineError
from workbench.domain.messages import (
    CampaignChoice,
    PlanCampaign,
    Request,
    ResumeSession,
    RunCampaign,
)
from workbench.domain.sessions import SessionSummary
from workbench.tui.app import WorkbenchApp
from workbench.tui.screens.dialogs import ChoiceScreen, ConfirmScreen
from workbench.tui.screens.live.live import LiveScreen
from workbench.tui.screens.sessions.launch import LaunchScreen
from workbench.tui.screens.sessions.sessions import SessionsScreen


@asynccontextmanager
async def picker(
    client: FakeClient, size: tuple[int, int] = (80, 24), until_shown: str = "night"
) -> AsyncIterator[Pilot[None]]:
    async def connect() -> FakeClient:
        return client

    app = WorkbenchApp(connect, theme="dark")
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: until_shown in screen_text(app), until_shown)
        yield pilot


async def test_sessions_are_listed_newest_first() -> None:
    async with picker(FakeClient()) as pilot:
        shown = screen_text(pilot.app)
        assert "3 sessions, 1 running" in shown
        assert shown.index(SESSION) < shown.index("night") < shown.index("closed-loop")
        assert "interrupted" in shown
        assert "⏎ Open" in shown


async def test_columns_stay_apart_and_what_is_cut_says_so() -> None:
    client = FakeClient()
    client.listed[0] = replace(client.listed[0], name="a-name-of-more-than-twenty-letters")
    async with picker(client) as pilot:
        row = next(line for line in screen_text(pilot.app).splitlines() if "a-name" in line)
        assert row.startswith("a-name-of-more-than… running")
        assert row.rstrip().endswith("haproxy, ti…")
    async with picker(client, (120, 24)) as pilot:
        assert "haproxy, tinyproxy-haproxy" in screen_text(pilot.app)
        assert "a-name-of-more-than-twenty-letters running" in screen_text(pilot.app)


async def test_an_empty_workspace_names_the_next_key() -> None:
    async with picker(FakeClient(sessions=False), until_shown="No sessions here yet") as pilot:
        assert "Press n to start a campaign." in screen_text(pilot.app)
        await pilot.press("enter", "r", "R")
        assert isinstance(pilot.app.screen, SessionsScreen)


async def test_enter_opens_the_session_under_the_cursor() -> None:
    async with picker(FakeClient()) as pilot:
        await pilot.press("j", "k", "enter")
        await until(pilot, lambda: "tinyproxy 25 % · p95" in screen_text(pilot.app), "live")


async def test_only_what_was_interrupted_can_be_resumed() -> None:
    client = FakeClient()
    async with picker(client) as pilot:
        await pilot.press("r")
        assert isinstance(pilot.app.screen, SessionsScreen)
        await pilot.press("down")
        await redrawn(pilot)
        assert "session.resume" in {action.id for action in pilot.app.screen.offered()}
        await pilot.press("r")
        await until(pilot, client.commands, "the command")
        assert client.commands() == [ResumeSession("night", pace=20.0)]


async def test_the_filter_keeps_matching_sessions_and_escape_shows_all() -> None:
    async with picker(FakeClient()) as pilot:
        await pilot.press("slash", *"nig")
        await until(pilot, lambda: "closed-loop" not in screen_text(pilot.app), "filtered")
        assert "night" in screen_text(pilot.app)
        await pilot.press(*"zzz")
        await until(pilot, lambda: "No session has this text" in screen_text(pilot.app), "none")
        await pilot.press("escape")
        await until(pilot, lambda: "closed-loop" in screen_text(pilot.app), "all")


async def test_a_campaign_is_started_with_its_plan_in_view() -> None:
    client = FakeClient()
    async with picker(client) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: "at most 80 samples" in screen_text(pilot.app), "the plan")
        assert isinstance(pilot.app.screen, LaunchScreen)
        # The dialog grows for a plan's second line, which may take another round of the loop.
        await until(pilot, lambda: "two cores only" in screen_text(pilot.app), "its warning")
        await pilot.press("j", "l", "l")
        await until(pilot, lambda: "lab  sim" in screen_text(pilot.app), "the lab")
        await until(pilot, lambda: PlanCampaign("demo-closed", "sim") in client.asked, "its plan")
        await pilot.press("enter")
        await until(pilot, lambda: "Run demo-closed on the lab sim?" in screen_text(pilot.app), "?")
        assert client.commands() == [], "it asks, as a draft does"
        await pilot.press("n")
        assert isinstance(pilot.app.screen, LaunchScreen), "no leads back to the list"
        await pilot.press("enter", "y")
        await until(pilot, client.commands, "the command")
        assert client.commands() == [RunCampaign("demo-closed", lab="sim", pace=20.0)]
        await until(pilot, lambda: "RUNNING" in screen_text(pilot.app), "the run")


class PlanningClient(FakeClient):
    """Plans once `gate` is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def ask(self, request: Request) -> Any:
        if isinstance(request, PlanCampaign):
            await self.until(self.gate, request)
        return await super().ask(request)


@asynccontextmanager
async def asked_to_start(client: PlanningClient) -> AsyncIterator[Pilot[None]]:
    """The question stands there, and the plan has not come."""
    async with picker(client) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: "planning" in screen_text(pilot.app), "the campaigns")
        await pilot.press("enter")
        await until(pilot, lambda: "cost is being computed" in screen_text(pilot.app), "?")
        yield pilot


async def test_the_question_says_what_the_plan_says_once_that_has_come() -> None:
    client = PlanningClient()
    async with asked_to_start(client) as pilot:
        client.gate.set()
        await until(pilot, lambda: "at most 80 samples" in _consequence(pilot), "the figures")
        await pilot.press("y")
        await until(pilot, client.commands, "the command")
        assert client.commands() == [RunCampaign("demo", pace=20.0)]


async def test_what_turns_out_to_be_refused_is_not_started_by_a_yes() -> None:
    client = PlanningClient()
    async with asked_to_start(client) as pilot:
        client.refuses = EngineError("the host has 2 cores, demo needs 2.5")
        client.gate.set()
        await until(pilot, lambda: "demo needs 2.5" in _consequence(pilot), "why it cannot be run")
        await pilot.press("y")
        assert isinstance(pilot.app.screen, LaunchScreen)
        assert client.commands() == []


def _consequence(pilot: Pilot[Any]) -> str:
    screen = pilot.app.screen
    assert isinstance(screen, ConfirmScreen)
    return str(screen.query_one("#consequence", Static).content)


async def test_the_plan_is_of_the_sampler_that_will_run_in_both_times() -> None:
    async with picker(FakeClient()) as pilot:
        await pilot.press("n", "l", "l")
        told = (
            "plan  0 configurations on sim; bisection takes about 31 samples, 3.3 min of "
            "simulated time, 10 s on the clock (at most 80 samples)"
        )
        await until(pilot, lambda: told in _plan(pilot), "what the sampler takes")
        await pilot.press("l")
        await until(pilot, lambda: "3.3 min of lab time (at most 80" in _plan(pilot), "on Docker")


def _plan(pilot: Pilot[Any]) -> str:
    screen = pilot.app.screen
    assert isinstance(screen, LaunchScreen)
    return str(screen.query_one("#plan", Static).content)


async def test_a_long_warning_of_a_plan_leaves_the_keys_in_sight() -> None:
    client = FakeClient()
    client.campaigns = tuple(CampaignChoice(f"c{n}", "", "") for n in range(12))
    client.warning = " ".join(["its functions need up to 3 cores, but this host has 2."] * 6)
    async with picker(client) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: "this host has 2" in screen_text(pilot.app), "the warning")
        assert "enter start" in await redrawn(pilot)


async def test_a_long_list_of_campaigns_is_filtered_by_what_is_typed() -> None:
    client = FakeClient()
    names = [*(f"night-{n}" for n in range(9)), "squid-alone"]
    client.campaigns = tuple(CampaignChoice(n, "of a test", "") for n in names)
    async with picker(client) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: "/ filter" in screen_text(pilot.app), "the campaigns")
        await pilot.press("s", *"quid")
        await until(pilot, lambda: "night-1" not in screen_text(pilot.app), "filtered")
        await until(pilot, lambda: PlanCampaign("squid-alone", None) in client.asked, "its plan")
        await pilot.press("escape")
        await until(pilot, lambda: "night-1" in screen_text(pilot.app), "all of them")
        assert isinstance(pilot.app.screen, LaunchScreen)
        await pilot.press("slash", *"night 7", "enter", "y")
        await until(pilot, client.commands, "the command")
        assert [c.campaign for c in client.commands()] == ["night-7"]


async def test_few_choices_need_no_filter_and_many_are_chosen_by_their_words() -> None:
    async with picker(FakeClient()) as pilot:
        chosen: list[str | None] = []
        few = ChoiceScreen("Which", [("a", "first"), ("b", "second")])
        pilot.app.push_screen(few, chosen.append)
        assert "filter" not in await redrawn(pilot)
        await pilot.press("slash", "s", "j", "enter")
        await until(pilot, lambda: chosen == ["b"], "the second")
        many = ChoiceScreen("Which", [(str(n), f"line {n}") for n in range(12)])
        pilot.app.push_screen(many, chosen.append)
        await pilot.press("slash", *"1 line", "down", "enter")  # 1, 10 and 11
        await until(pilot, lambda: chosen == ["b", "10"], "the second of those")


async def test_escape_starts_nothing() -> None:
    client = FakeClient()
    async with picker(client) as pilot:
        await pilot.press("n", "escape")
        assert isinstance(pilot.app.screen, SessionsScreen)
        assert client.commands() == []


async def test_a_refused_start_is_a_sentence_and_leads_back() -> None:
    client = FakeClient()
    async with picker(client) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: "at most 80 samples" in screen_text(pilot.app), "the plan")
        client.refuses = EngineError("the host has 2 cores, demo needs 2.5")
        await pilot.press("enter", "y")
        await until(pilot, lambda: "demo needs 2.5." in screen_text(pilot.app), "the sentence")
        client.refuses = None
        await pilot.press("enter", "escape")
        await until(pilot, lambda: "night" in screen_text(pilot.app), "the list")


async def test_no_engine_is_a_banner_and_r_looks_again() -> None:
    client = FakeClient()
    client.refuses = EngineError("no engine answered")
    async with picker(client, until_shown="No engine answers") as pilot:
        assert "r to reconnect: no engine answered." in screen_text(pilot.app)
        client.refuses = None
        await pilot.press("r")
        await until(pilot, lambda: "night" in screen_text(pilot.app), "the list")


async def test_replay_plays_the_events_to_the_same_screen() -> None:
    client = FakeClient(story(finished=True))
    async with picker(client) as pilot:
        await pilot.press("R")
        await until(pilot, lambda: "REPLAY" in screen_text(pilot.app), "replaying")
        screen = pilot.app.screen
        assert isinstance(screen, LiveScreen)
        await pilot.press("p")
        assert "REPLAY held" in await redrawn(pilot)
        assert "p Play" in screen_text(pilot.app)
        for _ in range(8):
            await pilot.press("plus")
        assert screen.opened.replay is not None
        assert screen.opened.replay.speed == 256
        await pilot.press("minus")
        assert screen.opened.replay.speed == 128
        await pilot.press("plus", "p")
        await until(pilot, lambda: "REPLAY ended" in screen_text(pilot.app), "the end")
        assert screen.opened.live.view == client.view()
        assert "FINISHED" in await redrawn(pilot)
        assert client.commands() == []


async def test_20x5_says_too_small() -> None:
    async with picker(FakeClient(), (20, 5), "needs 60x15") as pilot:
        await pilot.press("n", "escape", "slash", "escape")
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "night" in screen_text(pilot.app), "the list")


def recordings() -> tuple[SessionSummary, ...]:
    names = ("science-open", "chain-real", "demo-real")
    made = (replace(FakeClient().listed[0], name=n, kind="bundle", state="finished") for n in names)
    return tuple(replace(s, changed_at=s.changed_at - k) for k, s in enumerate(made))


async def test_the_first_run_says_where_to_start() -> None:
    client = FakeClient()
    client.listed[:] = recordings()
    async with picker(client, until_shown="Start here") as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, SessionsScreen)
        assert screen.here is not None
        assert screen.here.name == "chain-real"
        shown = screen_text(pilot.app)
        assert "Start here: chain-real – haproxy, tinyproxy and both" in shown
        assert "R replays it, ⏎ opens it." in shown
        for name, word in (("chain-real", "start here"), ("science-open", "open loop"),
                           ("demo-real", "the demo")):  # fmt: skip
            assert re.search(rf"^{name} +{word} ", shown, re.MULTILINE), name
        await pilot.press("up")
        await until(pilot, lambda: "requests at a fixed rate" in screen_text(pilot.app), "another")
        assert "Start here" not in screen_text(pilot.app)


async def test_whoever_has_measured_is_told_nothing() -> None:
    client = FakeClient()
    client.listed.extend(recordings())
    async with picker(client) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, SessionsScreen)
        assert screen.here is not None
        assert screen.here.name == SESSION
        assert "Start here" not in screen_text(pilot.app)
