"""Replay: steps, seeking, the time line, and that a place is the same however one came there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_link import (
    SESSION,
    START,
    FakeClient,
    flashed,
    opened,
    redrawn,
    screen_text,
    story,
    toasts,
    until,
)
from snapshots import check
from textual.pilot import Pilot

from workbench.domain.errors import UsageError
from workbench.domain.events import RunPaused, SampleTaken
from workbench.domain.projection import SessionView
from workbench.domain.timeline import FindMoment, MarkKind, TimeLine, TimeMark
from workbench.tui import app as app_module
from workbench.tui.draw_throttle import DrawThrottle
from workbench.tui.plots.canvas import GLYPHS
from workbench.tui.replaying import replay as replay_module
from workbench.tui.replaying.replay import Replay
from workbench.tui.replaying.seeking import place_of
from workbench.tui.replaying.timeline_rows import timeline
from workbench.tui.screens.dialogs import NameScreen
from workbench.tui.screens.live.live import LiveScreen

SLOW = 0.1


def replay_of(pilot: Pilot[object]) -> Replay:
    replay = pilot.app.opened.replay  # type: ignore[attr-defined]
    assert isinstance(replay, Replay)
    return replay


def shown_view(pilot: Pilot[object]) -> SessionView:
    view = pilot.app.opened.live.view  # type: ignore[attr-defined]
    assert isinstance(view, SessionView)
    return view


def samples(pilot: Pilot[object]) -> int:
    return shown_view(pilot).samples_taken


def folded(client: FakeClient, upto: int) -> SessionView:
    view = SessionView(SESSION)
    for event in client.events[:upto]:
        view.apply(event)
    return view


async def at_sample(pilot: Pilot[object], count: int) -> None:
    await until(pilot, lambda: samples(pilot) == count, f"sample {count}")


async def test_a_step_shows_one_sample_and_what_was_concluded_from_it() -> None:
    client = FakeClient(story(finished=True))
    async with opened(client, replay_speed=SLOW) as pilot:
        await pilot.press("full_stop")
        await at_sample(pilot, 1)
        assert replay_of(pilot).paused
        await pilot.press("full_stop", "full_stop")
        await at_sample(pilot, 3)
        await until(pilot, lambda: shown_view(pilot).configurations[0].breakpoints, "its fit")
        await pilot.press("comma")
        await at_sample(pilot, 2)
        await until(pilot, lambda: not shown_view(pilot).configurations[0].breakpoints, "no fit")
        assert replay_of(pilot).paused
        await until(pilot, lambda: "sample 2 of 64" in screen_text(pilot.app), "the time line")


async def test_a_fast_replay_keeps_to_its_share_while_the_host_measures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replay_module, "BURST", 10)
    client, now = FakeClient(story(finished=True)), [100.0]
    client.share = 0.05
    pace = DrawThrottle(lambda: client.share, lambda: now[0], lambda: 3.0)
    replay = Replay(1000.0)
    seen: list[object] = []

    async def play() -> None:
        async for change in replay.changes(client, SESSION, pace=pace):
            seen.append(change)

    playing = asyncio.create_task(play())
    whole = len(client.events)

    async def comes(what: Callable[[], bool]) -> None:
        for _ in range(3000):
            if what():
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"{len(seen)} of {whole} came")

    try:
        await comes(lambda: len(seen) >= 20)  # the first burst is due, the second waits
        for _ in range(20):
            await asyncio.sleep(0.01)
        count = len(seen)
        assert count < 30 < whole
        replay.step(1)  # what is asked for does not wait
        await comes(lambda: len(seen) > count)
        client.share = None
        replay.play()
        await comes(lambda: replay.ended)
        assert replay.seq == whole
    finally:
        playing.cancel()


async def test_back_from_the_first_sample_is_the_begin_and_forward_from_there_the_first() -> None:
    async with opened(FakeClient(story(finished=True)), replay_speed=SLOW) as pilot:
        await pilot.press("full_stop")
        await at_sample(pilot, 1)
        await pilot.press("comma")
        await at_sample(pilot, 0)
        await pilot.press("full_stop")
        await at_sample(pilot, 1)


async def test_a_place_is_the_same_by_stepping_seeking_and_going_back() -> None:
    client = FakeClient(story(finished=True))
    async with opened(client, replay_speed=SLOW) as pilot:
        await pilot.press("ctrl+g", *"20", "enter")
        await at_sample(pilot, 20)
        replay_of(pilot).pause()
        await until(pilot, lambda: replay_of(pilot).seq == shown_view(pilot).seq, "shown")
        assert shown_view(pilot) == folded(client, shown_view(pilot).seq)
        for _ in range(5):
            await pilot.press("full_stop")
        await at_sample(pilot, 25)
        await pilot.press(*["comma"] * 5)
        await at_sample(pilot, 20)
        await until(pilot, lambda: shown_view(pilot) == folded(client, shown_view(pilot).seq), "")


async def test_an_end_that_is_known_late_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """That no event follows is the engine's answer, after the last event was drawn."""
    following = replay_module._Pages.next

    async def late(pages: replay_module._Pages) -> object:
        if (event := await following(pages)) is None:
            await asyncio.sleep(1.0)
        return event

    monkeypatch.setattr(replay_module._Pages, "next", late)
    async with opened(FakeClient(story(finished=True)), replay_speed=1000.0) as pilot:
        await until(pilot, lambda: replay_of(pilot).ended, "the end")
        await until(pilot, lambda: "REPLAY ended" in screen_text(pilot.app), "its sign")


async def test_played_to_the_end_it_is_what_the_engine_holds() -> None:
    client = FakeClient(story(finished=True))
    async with opened(client, replay_speed=1000.0) as pilot:
        await until(pilot, lambda: replay_of(pilot).ended, "the end")
        assert shown_view(pilot) == client.view()
        assert "REPLAY ended" in await redrawn(pilot)
        replay_of(pilot).speed = SLOW
        await pilot.press("p")
        await until(pilot, lambda: samples(pilot) == 0, "from the start again")


@pytest.mark.parametrize(
    ("written", "count"), [("50%", 32), ("#12", 2), ("tinyproxy 50", 25), ("-1h", 0)]
)
async def test_places_are_written_in_many_ways(written: str, count: int) -> None:
    client = FakeClient(story(finished=True))
    async with opened(client, replay_speed=SLOW) as pilot:
        await pilot.press("full_stop")
        await at_sample(pilot, 1)
        keys = {" ": "space", "%": "percent_sign", "#": "number_sign", "-": "minus"}
        await pilot.press("ctrl+g", *(keys.get(c, c) for c in written), "enter")
        await at_sample(pilot, count)
        assert replay_of(pilot).paused


async def test_a_place_that_is_none_is_a_sentence() -> None:
    async with opened(FakeClient(story(finished=True)), replay_speed=SLOW) as pilot:
        await pilot.press("ctrl+g", *"nonsense", "enter")
        await until(pilot, lambda: "no place in this session" in said(pilot), "the sentence")
        await pilot.press("ctrl+u", *"999", "enter")  # the dialog is there still
        await until(pilot, lambda: "samples 1 to 64" in said(pilot), "the other one")
        await pilot.press("ctrl+u", *"12", "enter")
        await until(pilot, lambda: not isinstance(pilot.app.screen, NameScreen), "it goes there")


def said(pilot: Pilot[Any]) -> str:
    return " ".join(screen_text(pilot.app).split())


async def test_what_a_mark_says_hides_neither_the_time_line_nor_the_next_dialog(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(app_module, "SHORT_S", 60.0)
    client = FakeClient(story(finished=True))

    async def connect() -> FakeClient:
        return client

    app = app_module.WorkbenchApp(connect, session=SESSION, replay_speed=SLOW, theme="dark")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and app.opened.connected)
        await until(pilot, lambda: replay_of(pilot).line, "the time line")
        before = (await redrawn(pilot)).splitlines()
        app.say_shortly("tinyproxy: model 1 of p95_ms, cpu and all the others")
        after = (await redrawn(pilot)).splitlines()
        assert after[-1].startswith(" tinyproxy: model 1 of p95_ms")
        assert after[:-1] == before[:-1]
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: "tinyproxy: model 1" not in flashed(app), "the next one")
        assert not toasts(app), "the time line has it"


async def test_marks_are_on_the_line_and_brackets_go_to_them() -> None:
    client = FakeClient(story(finished=True)[:-1])
    client.tell(RunPaused("ann"))
    paused_at = client.events[-1].seq
    async with opened(client, replay_speed=SLOW) as pilot:
        await pilot.press("right_square_bracket")  # begun
        await until(pilot, lambda: "began" in str(flashed(pilot.app)) or flashed(pilot.app), "said")
        await until(pilot, lambda: replay_of(pilot).seq == 3, "the begin of the run")
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: replay_of(pilot).seq == paused_at, "the pause")
        assert "PAUSED" in await redrawn(pilot)
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: replay_of(pilot).seq == 3, "back")
        line = str((await redrawn(pilot)).splitlines()[-2])
        assert "P" in line


async def test_a_line_of_events_opens_a_replay_from_there() -> None:
    client = FakeClient(story(finished=True))
    async with opened(client, screen="events") as pilot:
        await pilot.press("home", *["down"] * 5)
        seq = pilot.app.screen.here.seq  # type: ignore[attr-defined]
        await pilot.press("R")
        await until(pilot, lambda: isinstance(pilot.app.screen, LiveScreen), "the replay")
        await until(pilot, lambda: replay_of(pilot).seq >= seq, "there")
        assert replay_of(pilot).paused
        assert shown_view(pilot) == folded(client, shown_view(pilot).seq)


async def test_speeds_go_from_a_tenth_to_a_thousand() -> None:
    async with opened(FakeClient(story(finished=True)), replay_speed=1.0) as pilot:
        for _ in range(20):
            await pilot.press("minus")
        assert replay_of(pilot).speed == 0.1
        for _ in range(20):
            await pilot.press("plus")
        assert replay_of(pilot).speed == 1000


async def test_a_log_that_went_back_says_only_what_had_happened() -> None:
    client = FakeClient(story(finished=True))
    async with opened(client, (120, 40), replay_speed=1000.0) as pilot:
        await until(pilot, lambda: replay_of(pilot).ended, "the end")
        await redrawn(pilot)
        await pilot.press("ctrl+g", "3", "enter")
        await at_sample(pilot, 3)
        assert "run done" not in await redrawn(pilot)


LINE = TimeLine(START, START + 100.0, 300, 64, ())


def marked(*marks: tuple[float, MarkKind]) -> TimeLine:
    """A minute of events, a night of two hours, and a minute: 123 s of a replay."""
    night_over = START + 60.0 + 7200.0
    played = ((START, 0.0), (START + 60, 60.0), (night_over, 63.0), (night_over + 60, 123.0))
    kept = (TimeMark(seq, START + at, kind, "") for seq, (at, kind) in enumerate(marks, 1))
    return TimeLine(START, night_over + 60, 300, 93, tuple(kept), played)


def drawn_line(line: TimeLine, at: float, width: int = 80, seq: int = 0) -> str:
    replay = Replay()
    replay.line, replay.at, replay.seq = line, START + at, seq
    row = timeline(replay, SessionView(SESSION), GLYPHS["braille"], width)
    return "".join(text for text, _ in row)


def test_a_night_has_no_room_on_the_time_line() -> None:
    bar = re.sub(r"[^━─┃]", "", drawn_line(marked(), 60.0))
    assert bar.index("┃") == pytest.approx(len(bar) * 60 / 123, abs=1)
    view = SessionView(SESSION)
    late = place_of("90%", marked(), START, view)
    assert late == FindMoment(SESSION, at=pytest.approx(START + 7260 + 47.7))
    early = place_of("25%", marked(), START, view)
    assert early == FindMoment(SESSION, at=pytest.approx(START + 30.75))


def test_marks_of_one_place_stand_side_by_side_in_their_order() -> None:
    line = marked((30.0, "proposed"), (30.1, "accepted"), (30.2, "recommended"), (90.0, "ended"))
    assert "CAR" in drawn_line(line, 0.0)


def test_marks_without_a_cell_are_counted_and_the_important_one_is_seen() -> None:
    many: list[tuple[float, MarkKind]] = [(30.0, "paused")] * 9
    drawn = drawn_line(marked(*many, (30.0, "accepted")), 0.0)
    assert "A" in drawn
    assert drawn.count("P") == 4
    assert " +5 " in drawn
    assert len(drawn) == 80


def test_a_narrow_time_line_still_says_how_far_it_is() -> None:
    drawn = drawn_line(marked(), 60.0, width=60, seq=12)
    assert "0/93 #12" in drawn
    assert len(drawn) == 60


def test_a_time_outside_the_session_is_refused() -> None:
    with pytest.raises(UsageError, match="lasted from"):
        place_of("01-02 03:04", LINE, START, SessionView(SESSION))


def test_relative_places_stay_within_the_session() -> None:
    view = SessionView(SESSION)
    assert place_of("+1d", LINE, START, view) == FindMoment(SESSION, at=START + 100.0)
    assert place_of("+90s", LINE, START, view) == FindMoment(SESSION, at=START + 90.0)
    assert place_of("-1", LINE, START, view) == 0
    assert place_of("#999", LINE, START, view) == 300


def test_samples_of_the_story() -> None:
    taken = [e for e in story(finished=True) if isinstance(e.fact, SampleTaken)]
    assert len(taken) == 64


@pytest.mark.parametrize(("size", "theme"), [((80, 24), "dark"), ((160, 50), "dark"),
                                             ((60, 18), "dark"), ((80, 24), "mono")])  # fmt: skip
async def test_snapshot_of_a_replay_that_is_held(
    size: tuple[int, int], theme: str, tmp_path: Path
) -> None:
    client = FakeClient(story(finished=True))
    async with opened(client, size, replay_speed=SLOW, theme=theme) as pilot:
        await pilot.press("ctrl+g", *"20", "enter", "p")
        await at_sample(pilot, 20)
        await check(pilot, "live-replay-held", tmp_path)
