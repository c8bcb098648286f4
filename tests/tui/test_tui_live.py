"""The live screen under Pilot: what it shows, what its keys send, what it survives."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from fake_link import (
    SESSION,
    FakeClient,
    campaign,
    configurations,
    fitted,
    flashed,
    opened,
    progress_tick,
    redrawn,
    sample,
    screen_text,
    story,
    toasts,
    until,
    usage_tick,
)
from textual.pilot import Pilot

from workbench.domain.errors import EngineError, SessionError, SessionUnknown
from workbench.domain.events import (
    Noted,
    PauseRequested,
    RunFinished,
    SampleTaken,
    SessionCreated,
)
from workbench.domain.messages import (
    ContinueRun,
    PauseRun,
    ResumeSession,
    RunCampaign,
    SkipConfiguration,
    StopRun,
)
from workbench.domain.parameters import OperatingPoint, Sla
from workbench.domain.profiles import Breakpoint
from workbench.domain.timeline import TimeLine, TimeMark
from workbench.tui import present, watch
from workbench.tui.app import WorkbenchApp
from workbench.tui.replaying.timeline_rows import marks_row
from workbench.tui.screens.dialogs import ConfirmScreen, HelpScreen, MessageScreen
from workbench.tui.screens.live import live_rows
from workbench.tui.screens.live.live import LiveScreen
from workbench.tui.screens.recommend.recommend import RecommendScreen
from workbench.tui.screens.sessions.sessions import SessionsScreen

SIZES = [(60, 18), (80, 24), (120, 34), (160, 50)]


def live(pilot: Pilot[object]) -> LiveScreen:
    assert isinstance(pilot.app.screen, LiveScreen)
    return pilot.app.screen


# ------------------------------------------------------------------------------ what it shows


@pytest.mark.parametrize("size", SIZES)
async def test_the_profile_is_shown_at_every_size(size: tuple[int, int]) -> None:
    async with opened(FakeClient(), size) as pilot:
        shown = screen_text(pilot.app)
        for part in ("●", "×", "░", "◇", "next", "SLA p95 ≤ 200 ms", "capacity 750", "┊"):
            assert part in shown, part
        assert "tinyproxy 25 % · p95 (ms) over rate (/s)" in shown
        assert "figures are not of your host" in shown
        assert "21/80" in shown
        assert "? Help" in shown
        assert "q Quit" in shown


async def test_80x24_shows_configurations_usage_breakpoints_and_events() -> None:
    async with opened(FakeClient()) as pilot:
        shown = screen_text(pilot.app)
        assert "simulated lab (chosen, or no Docker engine): figures are not of your host" in shown
        assert "configurations 2/8" in shown
        assert "✓ haproxy 12.5 %             8/10  1 468 ±5 %" in shown
        assert "›▶ tinyproxy 25 %             5/10  1" in shown
        assert "cpu at 760" not in shown.splitlines()[1]
        assert "breakpoints sla 936 [889–983] · capacity 750 [690–810] · cpu none in range" in shown
        assert "tinyproxy 25 % at 760: p95 2.72 ms" in shown
        assert "lab 1:45 of 30:00" in shown


def test_a_configuration_that_a_stop_cut_off_is_not_counted_as_done() -> None:
    view = FakeClient().view()
    for item in view.configurations[1:]:
        item.state = "stopped"
    ((title, _), *_) = live_rows.list_heading(present.Shown(view), 80)
    assert title.split() == ["configurations", "1/8"]


async def test_docker_is_not_called_simulated() -> None:
    async with opened(FakeClient(story(lab="docker"))) as pilot:
        assert "simulated" not in screen_text(pilot.app).splitlines()[1]


async def test_ticks_move_usage_and_progress() -> None:
    client = FakeClient()
    async with opened(client) as pilot:
        assert "cpu at 760" in screen_text(pilot.app)
        client.tick(usage_tick(tinyproxy=0.93, source=0.4, host=0.6))
        client.tick(progress_tick())
        shown = await redrawn(pilot)
        assert "cpu now" in shown
        assert "93 %! T21" in shown
        assert "measuring at 830" in shown
        assert "ETA 5:55" in shown


async def test_a_new_sample_appears_without_a_key() -> None:
    client = FakeClient()
    name, configuration = configurations(campaign())[2]
    async with opened(client) as pilot:
        client.tell(
            SampleTaken(sample(OperatingPoint(name, configuration, 830.0), 99)),
            fitted(name, configuration, 0.3, 6),
        )
        await until(pilot, lambda: "6/10" in screen_text(pilot.app), "the sample, by the timer")
        await until(pilot, lambda: "capacity 900" in screen_text(pilot.app), "and its fit")


async def test_selection_follows_until_the_user_picks_and_f_follows_again() -> None:
    client = FakeClient()
    cells = configurations(campaign())
    async with opened(client) as pilot:
        await pilot.press("k")
        assert "haproxy 25 % · p95" in await redrawn(pilot)
        name, configuration = cells[3]
        client.tell(SampleTaken(sample(OperatingPoint(name, configuration, 50.0), 99)))
        assert "haproxy 25 % · p95" in await redrawn(pilot)
        assert "F Follow" in screen_text(pilot.app)
        await pilot.press("F")
        assert "tinyproxy 50 % · p95" in await redrawn(pilot)
        assert "F Follow" not in screen_text(pilot.app)


@pytest.mark.parametrize(("keys", "index"), [("j", 3), ("k", 1), ("kkk", 7)])
async def test_next_and_previous_go_round(keys: str, index: int) -> None:
    async with opened(FakeClient()) as pilot:
        for key in keys:
            await pilot.press(key)
        selected = live(pilot).shown.selected(live(pilot).choice)
        assert selected is live(pilot).opened.live.view.configurations[index]


async def test_the_list_scrolls_to_the_selection() -> None:
    async with opened(FakeClient(), (60, 18)) as pilot:
        await pilot.press("k", "k", "k")
        assert "›· tinyproxy-haproxy 50+25 %" in await redrawn(pilot)


async def test_a_click_on_a_configuration_shows_it() -> None:
    async with opened(FakeClient()) as pilot:
        await pilot.click("#configurations", offset=(6, 1))
        assert "haproxy 12.5 % · p95" in await redrawn(pilot)


async def test_kpi_and_scales_are_chosen_by_keys() -> None:
    async with opened(FakeClient()) as pilot:
        await pilot.press("y")
        shown = await redrawn(pilot)
        assert "tinyproxy 25 % · p50 (ms)" in shown
        assert "SLA p95" not in shown
        await pilot.press("y", "y", "l")
        assert live(pilot).choice.log_y is False
        before = await redrawn(pilot)
        await pilot.press("L")
        assert await redrawn(pilot) != before


async def test_zoom_shows_one_panel_after_the_other() -> None:
    async with opened(FakeClient()) as pilot:
        await pilot.press("z")
        shown = await redrawn(pilot)
        assert "─ configurations" not in shown
        assert "last sample load 760" in shown
        await pilot.press("z")
        shown = await redrawn(pilot)
        assert "╭─" not in shown
        assert "tinyproxy-haproxy 50+25 %" in shown
        await pilot.press("z", "z")
        assert "tinyproxy 25 % started" in await redrawn(pilot)
        await pilot.press("home")
        await until(pilot, lambda: "run started" in screen_text(pilot.app), "the log's start")
        await pilot.press("escape")
        assert "╭─" in await redrawn(pilot)
        assert isinstance(pilot.app.screen, LiveScreen)


# ------------------------------------------------------------------------------ what keys send


async def test_a_pause_that_is_to_come_is_shown_until_the_sample_ends() -> None:
    client = FakeClient()
    async with opened(client) as pilot:
        client.tell(PauseRequested("bob"))  # by somebody else: a second screen learns of it, too
        await until(pilot, lambda: "PAUSING" in screen_text(pilot.app), "pausing")
        assert "pausing after this sample" in screen_text(pilot.app)
        await pilot.press("1")
        await until(pilot, lambda: "night" in screen_text(pilot.app), "the list")
        await pilot.press("4", "p")
        await until(pilot, lambda: "RUNNING" in screen_text(pilot.app), "taken back")
        assert client.commands() == [ContinueRun(SESSION)]


async def test_pause_and_continue() -> None:
    client = FakeClient()
    async with opened(client) as pilot:
        await pilot.press("p")
        await until(pilot, lambda: "PAUSED" in screen_text(pilot.app), "paused")
        await pilot.press("p")
        await until(pilot, lambda: "RUNNING" in screen_text(pilot.app), "running")
        assert client.commands() == [PauseRun(SESSION), ContinueRun(SESSION)]


@pytest.mark.parametrize(("key", "abort"), [("s", False), ("S", True)])
async def test_stop_and_abort_ask_first(key: str, abort: bool) -> None:
    client = FakeClient()
    async with opened(client) as pilot:
        await pilot.press(key)
        assert isinstance(pilot.app.screen, ConfirmScreen)
        for wrong in ("enter", "x", "s", "space"):
            await pilot.press(wrong)
        await pilot.press("n")
        assert client.commands() == []
        await pilot.press(key, "y")
        await until(pilot, client.commands, "the command")
        assert client.commands() == [StopRun(SESSION, abort=abort)]


async def test_skip_names_the_configuration_shown() -> None:
    client = FakeClient()
    name, configuration = configurations(campaign())[3]
    async with opened(client) as pilot:
        await pilot.press("j", "K")
        await pilot.pause()
        assert "Skip tinyproxy 50 %?" in screen_text(pilot.app)
        await pilot.press("y")
        await until(pilot, client.commands, "the command")
        assert client.commands() == [SkipConfiguration(SESSION, name, configuration)]
        await until(pilot, lambda: "» tinyproxy 50 %" in screen_text(pilot.app), "skipped")


async def test_keys_that_mean_nothing_do_nothing() -> None:
    client = FakeClient()
    async with opened(client) as pilot:
        for key in ("a", "w", "D", "f5", "r", "plus", "minus", "enter", "tab", "x", "n", "b"):
            await pilot.press(key)
        assert client.commands() == []
        assert isinstance(pilot.app.screen, LiveScreen)


async def test_a_finished_run_offers_no_command() -> None:
    client = FakeClient(story(finished=True))
    async with opened(client) as pilot:
        shown = screen_text(pilot.app)
        assert "FINISHED" in shown
        assert "p Pause" not in shown
        await pilot.press("p", "s", "S", "K")
        assert client.commands() == []


async def test_a_stopped_run_can_be_resumed() -> None:
    client = FakeClient()
    async with opened(client) as pilot:
        client.tell(RunFinished("stopped", 21, 3, 60.0, 105.0, ()))
        assert "r Resume" in await redrawn(pilot)
        await pilot.press("r")
        await until(pilot, client.commands, "the command")
        assert client.commands() == [ResumeSession(SESSION, pace=20.0)]


async def test_a_refused_command_is_a_sentence() -> None:
    client = FakeClient()
    async with opened(client) as pilot:
        client.refuses = EngineError("another run holds the lab", remedy="Wait for it")
        await pilot.press("p")
        await until(pilot, lambda: toasts(pilot.app), "the toast")
        assert toasts(pilot.app) == ["another run holds the lab. Wait for it."]


async def test_freeze_holds_the_drawing_while_measuring_goes_on() -> None:
    client = FakeClient()
    name, configuration = configurations(campaign())[2]
    async with opened(client) as pilot:
        await pilot.press("f")
        shown = await redrawn(pilot)
        assert "FROZEN" in shown
        assert "measuring goes on" in shown
        client.tell(
            SampleTaken(sample(OperatingPoint(name, configuration, 830.0), 99)),
            Noted("info", "a note"),
        )
        await until(pilot, lambda: live(pilot).opened.live.view.samples_taken == 22, "still folded")
        live(pilot).draw()
        assert "21/80" in screen_text(pilot.app)
        await pilot.press("j")
        await pilot.pause()
        assert "a note" not in screen_text(pilot.app)
        await pilot.press("f")
        shown = await redrawn(pilot)
        assert "FROZEN" not in shown
        assert "22/80" in shown
        assert "a note" in shown


def test_a_list_that_is_narrow_leaves_out_the_target_that_all_have() -> None:
    view = FakeClient().view()
    assert view.campaign is not None

    def named() -> str:
        item = view.configurations[0]
        row = live_rows.list_row(present.Shown(view), item, False, 35)
        return "".join(words for words, _ in row)[3:15]

    assert named() == "haproxy 12.…"
    view.campaign = replace(view.campaign, targets=view.campaign.targets[:1])
    assert named() == "12.5 %      "


async def test_help_lists_the_keys_and_explains_the_marks() -> None:
    async with opened(FakeClient(), (80, 160)) as pilot:
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(pilot.app.screen, HelpScreen)
        shown = screen_text(pilot.app)
        assert "Pause after this sample" in shown
        assert "valid sample" in shown
        assert "capacity  largest load" in shown
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, LiveScreen)


async def test_a_long_help_page_has_its_end_and_its_beginning_by_a_key() -> None:
    async with opened(FakeClient()) as pilot:
        await pilot.press("question_mark", "G")
        await pilot.pause()
        assert "covariance" in screen_text(pilot.app)
        await pilot.press("g")
        await pilot.pause()
        assert "The profile as it is measured" in screen_text(pilot.app)


async def test_the_palette_runs_what_can_be_done_now() -> None:
    client = FakeClient()
    async with opened(client) as pilot:
        await pilot.press("ctrl+p")
        await until(pilot, lambda: "run: pause (p)" in screen_text(pilot.app), "the palette")
        assert "run: continue" not in screen_text(pilot.app)
        await pilot.press(*"pause")
        await until(pilot, lambda: "run: stop" not in screen_text(pilot.app), "the search")
        await pilot.press("enter")
        await until(pilot, client.commands, "the command")
        assert client.commands() == [PauseRun(SESSION)]


async def test_escape_goes_to_the_sessions_and_back() -> None:
    async with opened(FakeClient()) as pilot:
        await pilot.press("escape")
        await until(pilot, lambda: "night" in screen_text(pilot.app), "the sessions")
        assert isinstance(pilot.app.screen, SessionsScreen)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, LiveScreen), "the live screen")


# ------------------------------------------------------------------------------ what it survives


async def test_it_paints_before_the_engine_answers() -> None:
    async def never() -> FakeClient:
        raise EngineError("no engine answered", remedy="Look at `workbench logs`")

    app = WorkbenchApp(never, session=SESSION)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, MessageScreen), "the message")
        assert "no engine answered. Look at `workbench logs`." in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: "engine gone: no engine answered" in screen_text(app), "banner")


async def test_a_session_that_was_renamed_elsewhere_is_said_to_be_and_the_engine_is_not() -> None:
    client = FakeClient()
    async with opened(client, (120, 40)) as pilot:
        client.die(SessionError("was renamed or deleted", where=SESSION))
        said = f"{SESSION} was renamed or deleted; 1 lists the sessions"
        await until(pilot, lambda: said in screen_text(pilot.app), "the banner")
        assert "no engine" not in screen_text(pilot.app)
        assert "link.reconnect" not in {action.id for action in pilot.app.screen.offered()}
        await pilot.press("8")
        await until(pilot, lambda: pilot.app.screen.NAME == "recommend", "the screen")
        shown = await redrawn(pilot)
        assert "writes an SLA" not in shown
        assert "Nobody answers now" in shown


async def test_a_session_that_is_not_there_is_not_called_a_lost_engine() -> None:
    client = FakeClient()
    client.refuses = SessionUnknown("there is no session 'demo-9'")

    async def connect() -> FakeClient:
        return client

    app = WorkbenchApp(connect, command=RunCampaign("demo"), session="demo-9")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, MessageScreen), "the message")
        await pilot.press("enter")
        await until(pilot, lambda: "1 lists the sessions" in screen_text(app), "the banner")
        assert "no session" in screen_text(app)
        assert "engine gone" not in screen_text(app)


async def test_a_recording_offers_nothing_that_would_change_it() -> None:
    client = FakeClient()
    client.listed[0] = replace(client.listed[0], kind="bundle")
    async with opened(client) as pilot:
        await until(pilot, lambda: pilot.app.opened.bundle, "the list")
        await pilot.press("escape")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, LiveScreen), "the session")
        await until(pilot, lambda: pilot.app.opened.connected, "connected")
        offered = pilot.app.screen.offered()
        assert not {action.id for action in offered if action.area == "run"}
        await pilot.press("p", "s", "r")
        assert client.commands() == []


async def test_a_lost_engine_leaves_a_banner_and_r_reconnects() -> None:
    client = FakeClient()
    async with opened(client) as pilot:
        client.die()
        await until(pilot, lambda: "engine gone" in screen_text(pilot.app), "the banner")
        shown = screen_text(pilot.app)
        assert "r to reconnect" in shown
        assert "capacity 750" in shown, "what was known stays on the screen"
        await pilot.press("p", "s", "K")
        assert client.commands() == []
        await pilot.press("r")
        await until(pilot, lambda: "engine gone" not in screen_text(pilot.app), "reconnected")
        assert "RUNNING" in await redrawn(pilot)
        assert client.closed


async def test_a_command_is_sent_once_the_engine_answers() -> None:
    client = FakeClient()
    async with opened(client, session=None, command=RunCampaign("demo")) as pilot:
        assert client.commands() == [RunCampaign("demo")]
        assert live(pilot).opened.session == SESSION


async def test_what_a_run_waits_for_is_told_until_it_begins() -> None:
    client = FakeClient()
    client.lab_opens.clear()
    client.status = replace(client.status, preparing="demo: oha: Compiling \x1b[31mtokio v1")

    async def connect() -> FakeClient:
        return client

    app = WorkbenchApp(connect, command=RunCampaign("demo"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: re.search(r" \(\d+ s\)", screen_text(app)), "how long")
        told = " demo  starting: oha: Compiling ·[31mtokio v1"
        await until(pilot, lambda: told in screen_text(app), "what it waits for")
        client.lab_opens.set()
        await until(pilot, lambda: "RUNNING" in screen_text(app), "the run")
        assert "starting" not in screen_text(app)


async def test_what_starts_has_one_name_and_one_state() -> None:
    starts = watch.Watch(command=RunCampaign("draft:untitled"))
    assert (starts.live.view.session, starts.awaited.partition(" (")[0]) == ("untitled", "starting")
    starts.preparing = "untitled: image 2 of 5"
    assert starts.awaited.startswith("starting: image 2 of 5 (")
    starts.preparing = "night: image 2 of 5"
    assert starts.awaited.startswith("starting: night: image 2 of 5 ("), "another one goes first"


async def test_a_run_is_given_up_before_it_begins() -> None:
    client = FakeClient()
    client.lab_opens.clear()
    client.status = replace(client.status, preparing="demo: image 2 of 5: tinyproxy")

    async def connect() -> FakeClient:
        return client

    app = WorkbenchApp(connect, command=RunCampaign("demo"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "image 2 of 5" in screen_text(app), "what it waits for")
        await pilot.press("p")
        assert flashed(app) == "The lab is still being made ready: S gives it up."
        await pilot.press("S", "y")
        await until(pilot, lambda: len(client.commands()) == 2, "it is told")
        assert client.commands() == [RunCampaign("demo"), StopRun("demo", abort=True)]


async def test_a_recording_is_shown_while_the_lab_is_made_ready_and_gives_way_to_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "PREVIEW_AFTER_S", 0.0)
    monkeypatch.setattr(watch, "PREVIEW_SPEED", 1000.0)
    client = FakeClient()
    client.lab_opens.clear()
    client.status = replace(client.status, preparing="demo: image 2 of 5: tinyproxy")

    async def connect() -> FakeClient:
        return client

    app = WorkbenchApp(connect, command=RunCampaign("demo"))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "at 760" in screen_text(app), "the recording")
        shown = screen_text(app)
        assert "PREVIEW: the recording chain-real, while the lab is made ready" in shown
        assert " preview  starting: image 2 of 5: tinyproxy" in shown
        await pilot.press("p", "s")
        assert client.commands() == [RunCampaign("demo")], "there is nothing to be paused yet"
        client.lab_opens.set()
        await until(pilot, lambda: "RUNNING" in screen_text(app), "the run")
        assert "PREVIEW" not in screen_text(app)
        assert app.opened.session == SESSION


async def test_the_form_of_recommend_is_not_filled_from_the_recording_that_is_shown_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "PREVIEW_AFTER_S", 0.0)
    monkeypatch.setattr(watch, "PREVIEW_SPEED", 1000.0)
    client = FakeClient()
    client.lab_opens.clear()
    created, own = client.events[0].fact, client.events
    assert isinstance(created, SessionCreated)
    others = Sla("p95_ms", 50.0, wl=100.0, text="p95<=50ms @ rate=100/s")
    recorded = replace(created, campaign=replace(created.campaign, sla=others))
    client.events = [replace(own[0], fact=recorded), *own[1:]]

    async def connect() -> FakeClient:
        return client

    app = WorkbenchApp(connect, command=RunCampaign("demo"))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "at 760" in screen_text(app), "the recording")
        app.go("recommend")
        said = "The lab is still being made ready"
        await until(pilot, lambda: said in screen_text(app), "that the lab is made ready")
        client.events = own
        client.lab_opens.set()
        await until(pilot, lambda: app.opened.session == SESSION, "the run")
        await redrawn(pilot)
        screen = app.screen
        assert isinstance(screen, RecommendScreen)
        await until(pilot, lambda: screen.form.values()["sla"], "the form")
        assert screen.form.values()["sla"].startswith("p95<=200ms @ rate=300/s")


async def test_a_terminal_that_is_too_small_says_so_and_grows_again() -> None:
    client = FakeClient()
    async with opened(client, (20, 5)) as pilot:
        shown = screen_text(pilot.app)
        assert "terminal too small:" in shown
        assert "needs 60x15" in shown
        await pilot.press("j", "y", "z", "z", "z", "z", "z", "f", "f")
        client.tick(usage_tick(tinyproxy=0.5))
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "configurations 2/8" in screen_text(pilot.app), "all of it")
        assert "too small" not in screen_text(pilot.app)
        await pilot.resize_terminal(59, 40)
        await until(pilot, lambda: "too small" in screen_text(pilot.app), "too narrow")


@pytest.mark.parametrize("name", ["[bold red]x[/]", "a\x1b[31mb\r\nc", "ha‮proxy", "[/"])
async def test_names_from_outside_are_plain_text(name: str) -> None:
    client = FakeClient(story(lab_target=name))
    async with opened(client, (160, 50)) as pilot:
        client.tell(Noted("warning", f"about {name}"))
        await pilot.press("k")
        shown = await redrawn(pilot)
        assert "".join(c if c.isprintable() else "·" for c in name) in shown
        assert not any(c in shown for c in "\x1b\r‮")
        await pilot.press("K")
        await pilot.pause()
        assert "Skip " in screen_text(pilot.app)


async def test_no_color_draws_the_same_without_any_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(FakeClient()) as pilot:
        await redrawn(pilot)
        app = pilot.app
        assert "● valid  × not valid" in screen_text(app)
        for strip in app.screen._compositor.render_strips():
            for filter in app._filters:
                if filter.enabled:
                    strip = strip.apply_filter(filter, app.screen.background_colors[1])
            for segment in strip:
                style = segment.style
                assert style is None or style.color is None or style.color.is_default
                assert style is None or style.bgcolor is None or style.bgcolor.is_default


async def test_a_modal_question_does_not_stop_the_folding() -> None:
    client = FakeClient()
    name, configuration = configurations(campaign())[2]
    async with opened(client) as pilot:
        screen = live(pilot)
        await pilot.press("s")
        client.tell(SampleTaken(sample(OperatingPoint(name, configuration, 830.0), 99)))
        await until(pilot, lambda: screen.opened.live.view.samples_taken == 22, "folded")
        await pilot.press("n")
        assert "22/80" in await redrawn(pilot)


async def test_zooming_says_where_one_is_and_what_comes_next() -> None:
    async with opened(FakeClient(story(finished=True))) as pilot:
        said = []
        for _ in range(5):
            await pilot.press("z")
            await redrawn(pilot)
            said.append(flashed(pilot.app))
        assert said == [
            "plot alone (1 of 4); z: configurations alone",
            "configurations alone (2 of 4); z: usage alone",
            "usage alone (3 of 4); z: log alone",
            "log alone (4 of 4); z: all panels",
            "all panels; z: plot alone",
        ]


async def test_usage_names_its_configuration_and_decodes_its_marks() -> None:
    client = FakeClient(story(finished=True))
    async with opened(client) as pilot:
        shown = await redrawn(pilot)
        assert " cpu at 830 · 50+25 %" in shown
        assert " T37 %" in shown
    async with opened(client, (160, 50)) as pilot:
        shown = await redrawn(pilot)
        assert " cpu at 830 · tinyproxy-haproxy 50+25 %" in shown


def test_letters_of_the_time_line_are_said_as_far_as_there_is_room() -> None:
    kinds = ("modelled", "canary", "accepted", "recommended", "verified", "begun")
    marks = tuple(TimeMark(seq, float(seq), kind, "") for seq, kind in enumerate(kinds, 1))  # type: ignore[arg-type]
    line = TimeLine(0.0, 9.0, 9, 9, marks)
    whole = "".join(words for words, _ in marks_row(line, 100))
    assert whole.split() == ("A accepted V verified R recommended C canary M modelled".split())
    assert "".join(words for words, _ in marks_row(line, 25)) == "A accepted  V verified  "
    assert marks_row(None, 100) == ()


@pytest.mark.parametrize(("wl", "half"), [(815.0, 2209.0), (1250.0, 3388.0), (468.0, 23.0)])
def test_a_breakpoint_keeps_the_gap_before_its_width(wl: float, half: float) -> None:
    view = FakeClient().view()
    item = view.configurations[0]
    rule = live_rows.headline_rule(view)
    found = Breakpoint(
        item.target, item.configuration, rule, "p95_ms", "found", wl, wl - half, wl + half
    )
    item.breakpoints = (found,)
    text = live_rows._headline(view, item, False)
    assert " ±" in text
    assert len(text) <= 10


async def test_what_happens_is_drawn_under_a_dialog_too() -> None:
    client = FakeClient()
    async with opened(client) as pilot:
        await pilot.press("s")
        await until(pilot, lambda: "Stop the run?" in screen_text(pilot.app), "the question")
        assert " RUNNING " in screen_text(pilot.app)
        client.tell(RunFinished("done", 40, 0, 9.0, 60.0, ()))
        await until(pilot, lambda: " FINISHED " in screen_text(pilot.app), "the end of the run")
        assert "Stop the run?" in screen_text(pilot.app)
