"""The cursor on Live's plot, and what is done with the sample under it."""

from __future__ import annotations

from typing import Any

import pytest
from fake_link import (
    SESSION,
    START,
    WLS,
    FakeClient,
    campaign,
    configurations,
    opened,
    redrawn,
    screen_text,
    story,
    toasts,
    until,
)
from textual.pilot import Pilot

from workbench.domain.errors import UsageError
from workbench.domain.events import RunFinished, SampleTaken
from workbench.domain.messages import Done, Request, ResumeSession, Viewed, ViewSession
from workbench.domain.sample_review import (
    BudgetExtended,
    DecideSample,
    ExtendBudget,
    GetSample,
    RequestPoint,
    SampleDecided,
    SampleDetail,
)
from workbench.domain.samples import LatencyHistogram, Window
from workbench.tui.sample_rows import closer
from workbench.tui.screens.dialogs import MessageScreen, NameScreen
from workbench.tui.screens.reason import ReasonScreen
from workbench.tui.watch import lab_time

HISTOGRAM = LatencyHistogram(1.01, (500,), (10,))


class CuratingClient(FakeClient):
    """Decides as an engine would."""

    async def ask(self, request: Request) -> Any:
        match request:
            case DecideSample(sample=id, verdict=verdict, why=why):
                self.asked.append(request)
                self.tell(SampleDecided(id, verdict, "ann", why))
            case ExtendBudget(more_s=more_s):
                self.asked.append(request)
                self.tell(BudgetExtended(1800.0 + more_s, "ann"))
            case RequestPoint():
                self.asked.append(request)
            case GetSample(sample=id):
                taken = next(
                    e.fact.sample
                    for e in self.events
                    if isinstance(e.fact, SampleTaken) and e.fact.sample.id == id
                )
                window = Window(3.0, 6.0, 500, 498, 1, 1, HISTOGRAM, HISTOGRAM)
                decided = SampleDecided(id, "pinned", "bob", "odd")
                return SampleDetail(taken, (window,), decided, START)
            case _:
                return await super().ask(request)
        return Done()


async def on_sample(pilot: Pilot[object], client: FakeClient) -> str:
    """The cursor on a valid sample of the configuration shown; its id."""
    await pilot.press("left")
    await until(pilot, lambda: pilot.app.opened.choice.sample, "a sample")  # type: ignore[attr-defined]
    del client
    return str(pilot.app.opened.choice.sample)  # type: ignore[attr-defined]


async def test_the_cursor_goes_over_the_samples_in_the_order_of_loads() -> None:
    async with opened(CuratingClient()) as pilot:
        await pilot.press("left")
        assert "sample 4 of 5 load 760" in await redrawn(pilot)
        await pilot.press("left")
        assert "load 440" in await redrawn(pilot)
        await pilot.press("left", "left", "left", "left")
        shown = await redrawn(pilot)
        assert "sample 1 of 5 load 10 " in shown
        assert "valid" in shown
        await pilot.press("right", "right", "right", "right")
        assert "load 1.6k" in await redrawn(pilot)
        assert "not valid: source_saturated" in screen_text(pilot.app)
        await pilot.press("F")
        assert "load 1.6k" not in await redrawn(pilot)


async def test_enter_tells_all_of_the_sample() -> None:
    async with opened(CuratingClient(), (100, 40)) as pilot:
        await pilot.press("left", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, MessageScreen), "the details")
        await pilot.pause()
        shown = screen_text(pilot.app)
        for words in ("p95 (ms)", "throttled", "1 windows", "498 of 500", "pinned by bob", "odd"):
            assert words in shown, words


async def test_details_that_are_longer_than_the_terminal_say_how_to_go_on() -> None:
    async with opened(CuratingClient(), (60, 18)) as pilot:
        await pilot.press("left", "enter")
        await until(pilot, lambda: "enter close   j k scroll" in screen_text(pilot.app), "keys")
        top = screen_text(pilot.app)
        await pilot.press(*"jjjjjj")
        await until(pilot, lambda: screen_text(pilot.app) != top, "further below")
        await pilot.press("enter")
        await until(pilot, lambda: not isinstance(pilot.app.screen, MessageScreen), "closed")


async def test_a_sample_is_rejected_with_a_reason_and_undo_takes_it_back() -> None:
    client = CuratingClient()
    async with opened(client) as pilot:
        id = await on_sample(pilot, client)
        await pilot.press("d")
        assert isinstance(pilot.app.screen, ReasonScreen)
        await pilot.press("enter")
        await until(
            pilot, lambda: "Give a reason" in screen_text(pilot.app), "not without a reason"
        )
        assert client.commands() == []
        await pilot.press(*"backup", "enter")
        await until(pilot, client.commands, "the command")
        assert client.commands() == [DecideSample(SESSION, id, "rejected", "backup")]
        await until(pilot, lambda: "not valid: rejected" in screen_text(pilot.app), "shown")
        offered = {one.id for one in pilot.app.screen.offered()}  # type: ignore[attr-defined]
        assert "sample.restore" in offered
        assert "sample.pin" not in offered, "a pin would take the rejection back"
        await until(pilot, lambda: "takes it back" in str(toasts(pilot.app)), "the toast")
        await pilot.press("u")
        await until(pilot, lambda: len(client.commands()) == 2, "undone")
        assert client.commands()[1] == DecideSample(SESSION, id, "open", "")
        await until(pilot, lambda: "not valid: rejected" not in screen_text(pilot.app), "")


async def test_a_pinned_sample_has_a_mark_of_its_own() -> None:
    client = CuratingClient()
    async with opened(client) as pilot:
        await on_sample(pilot, client)
        await pilot.press("m", "enter")  # no reason is needed
        await until(pilot, lambda: "★" in screen_text(pilot.app), "the mark")
        await until(pilot, lambda: "· pinned" in screen_text(pilot.app), "the word")
        await pilot.press("m")
        await until(pilot, lambda: "★" not in screen_text(pilot.app), "gone")


async def test_one_more_repetition_and_one_more_point() -> None:
    client = CuratingClient()
    name, configuration = configurations(campaign())[2]
    async with opened(client) as pilot:
        await on_sample(pilot, client)
        await pilot.press("A")
        await until(pilot, client.commands, "the command")
        await pilot.press("insert", *"555", "enter")
        await until(pilot, lambda: len(client.commands()) == 2, "the other")
        assert client.commands() == [
            RequestPoint(SESSION, name, configuration, wl, pace=20.0) for wl in (760.0, 555.0)
        ]
        await pilot.press("insert", *"x", "enter")
        await until(pilot, lambda: "! 'x' is no number" in screen_text(pilot.app), "said")
        assert isinstance(pilot.app.screen, NameScreen), "the dialog stays"
        assert len(client.commands()) == 2
        await pilot.press("backspace", *"700", "enter")
        await until(pilot, lambda: len(client.commands()) == 3, "the corrected one")
        await until(pilot, lambda: not isinstance(pilot.app.screen, NameScreen), "then it closes")


async def test_what_the_engine_refuses_keeps_the_dialog_open() -> None:
    client = CuratingClient()
    async with opened(client) as pilot:
        ask = client.ask

        async def refuse(request: Request) -> Any:
            if isinstance(request, RequestPoint):
                raise UsageError("1 is below the range", remedy="Ask from 10 on")
            return await ask(request)

        client.ask = refuse  # type: ignore[method-assign]
        await pilot.press("insert", "1", "enter")
        await until(pilot, lambda: "! 1 is below the range" in screen_text(pilot.app), "said")
        assert isinstance(pilot.app.screen, NameScreen)
        client.ask = ask  # type: ignore[method-assign]
        await pilot.press("0", "0", "enter")
        await until(pilot, lambda: not isinstance(pilot.app.screen, NameScreen), "it closes")


async def test_the_budget_of_a_run_is_extended() -> None:
    client = CuratingClient()
    async with opened(client) as pilot:
        await pilot.press("B")
        await until(pilot, lambda: isinstance(pilot.app.screen, NameScreen), "the dialog")
        assert "of lab time. Write it as" in screen_text(pilot.app)  # this session is simulated
        await pilot.press("enter")
        await until(pilot, client.commands, "the command")
        assert client.commands() == [ExtendBudget(SESSION, 1800.0)]
        await until(pilot, lambda: "of 1:00:00" in screen_text(pilot.app), "the budget")


async def test_a_run_that_spent_its_budget_goes_on_with_more() -> None:
    client = CuratingClient()
    async with opened(client) as pilot:
        client.tell(RunFinished("budget", 21, 3, 60.0, 1800.0, ()))
        await redrawn(pilot)
        view = pilot.app.opened.live.view  # type: ignore[attr-defined]
        view.lab, view.lab_s, view.ran_s = "docker", 600.0, 1800.0
        await pilot.press("B")
        await until(pilot, lambda: isinstance(pilot.app.screen, NameScreen), "the dialog")
        assert "spent 30:00 on the clock" in screen_text(pilot.app)
        await pilot.press(*"2h", "enter")
        await until(pilot, client.commands, "the command")
        assert client.commands() == [ResumeSession(SESSION, 7200.0, 20.0)]


async def test_closer_and_wider_keep_the_cursor_in_sight() -> None:
    async with opened(CuratingClient()) as pilot:
        await pilot.press("left", "greater_than_sign", "greater_than_sign")
        axis = next(line for line in (await redrawn(pilot)).splitlines() if " 500 " in line)
        assert " 20 " not in axis
        assert "┝" in screen_text(pilot.app)
        await pilot.press("less_than_sign", "less_than_sign")
        shown = await redrawn(pilot)
        assert "10 " in shown
        assert pilot.app.opened.choice.span is None  # type: ignore[attr-defined]


async def test_a_replay_decides_nothing() -> None:
    client = CuratingClient(story(finished=True))
    async with opened(client, replay_speed=1000.0) as pilot:
        await until(pilot, lambda: pilot.app.opened.replay.ended, "the end")  # type: ignore[attr-defined]
        await redrawn(pilot)
        await pilot.press("left", "d", "m", "A", "B")
        await pilot.pause()
        assert not isinstance(pilot.app.screen, NameScreen)
        assert client.commands() == []


class LongClient(CuratingClient):
    """Its feed begins with a view that leaves samples out."""

    def view(self) -> object:  # type: ignore[override]
        view = super().view()
        item = view.configurations[0]
        del item.samples[:-1]
        item.left_out = len(WLS) - 1
        return view

    async def ask(self, request: Request) -> Any:
        if isinstance(request, ViewSession):
            return Viewed(super().view())
        return await super().ask(request)


async def test_samples_that_are_left_out_are_fetched_when_they_are_looked_at() -> None:
    async with opened(LongClient(story(finished=True))) as pilot:
        await pilot.press("k", "k", "k", "j", "j", "j")
        view = pilot.app.opened.live.view  # type: ignore[attr-defined]
        item = view.configurations[0]
        key = pilot.app.screen.shown.selected(pilot.app.screen.choice).key  # type: ignore[attr-defined]
        while key != item.key:
            await pilot.press("j")
            key = pilot.app.screen.shown.selected(pilot.app.screen.choice).key  # type: ignore[attr-defined]
        await until(pilot, lambda: item.left_out == 0, "fetched")
        assert [s.wl for s in item.samples] == list(WLS)
        assert item.taken == len(WLS)


@pytest.mark.parametrize("log", [False, True])
def test_closer_stays_within_the_whole(log: bool) -> None:
    whole = (10.0, 1600.0)
    span = None
    for _ in range(20):
        span = closer(span, whole, 1590.0, 0.5, log)
        assert span is not None
        assert whole[0] <= span[0] < span[1] <= whole[1] * 1.000001
    for _ in range(20):
        span = closer(span, whole, 500.0, 2.0, log)
    assert span is None


async def test_a_sample_is_numbered_as_the_cursor_goes() -> None:
    """The first one taken is often that of the highest load."""
    async with opened(CuratingClient()) as pilot:
        await pilot.press("home", *("right",) * 9)
        assert "sample 8 of 8 load 1.6k" in await redrawn(pilot)


def test_slow_responses_may_take_a_plan_far_beyond_its_estimate() -> None:
    assert lab_time("docker", 200.0, 900.0) == "3.3 min of lab time"
    assert lab_time("docker", 200.0, 1200.0) == (
        "3.3 min of lab time; up to 20.0 min where responses are slow"
    )
    assert lab_time("sim:host_cores=16", 264.0, 5136.0) == (
        "4.4 min of simulated time, 13 s on the clock; up to 4.3 min where responses are slow"
    )
