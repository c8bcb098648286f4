"""The screen Watch: running functions whose KPI is told from counters."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from fake_link import SESSION, START, FakeClient, opened, redrawn, screen_text, story, until
from snapshots import check

from workbench.domain.function_watches import (
    FunctionLook,
    FunctionWatch,
    FunctionWatches,
    ListWatches,
    LookState,
    WatchedFunction,
    WatchNote,
    badge,
)
from workbench.domain.messages import Request
from workbench.tui.screens.dialogs import MessageScreen
from workbench.tui.screens.function_watch import watch_list, watch_rows
from workbench.tui.screens.function_watch.watch_screen import WatchScreen

NOW = START + 700.0
PLACE = "container vnf-shop-web-1"
WEB = WatchedFunction(
    SESSION, "haproxy", "p95_ms", PLACE, 7, "p95<=5ms", 5.0,
    ("on experiments that it had not seen it errs by 9.1% (mean), the interval holds 97%",),
)  # fmt: skip
OUTSIDE = "outside of what was learned: host pressure_cpu_s is 0.4, learned 0 to 0.002"


def looks(alarm: bool) -> tuple[FunctionLook, ...]:
    """Ten minutes; nothing is told in the fifth, and it is slower in the last."""
    found = []
    for second in range(600):
        at = NOW - 600.0 + second
        if 240 <= second < 300:
            found.append(FunctionLook(at, why=OUTSIDE, alarm=False))
            continue
        value = (8.0 if alarm and second >= 560 else 2.0) * math.exp(0.1 * math.sin(second / 9.0))
        found.append(FunctionLook(at, value, value / 1.5, value * 1.5, alarm=value > 5.0))
    return tuple(found)


def watch(alarm: bool = True) -> FunctionWatch:
    notes = (
        (WatchNote(NOW - 40.0, "alarm: haproxy is predicted to break p95<=5ms"),) if alarm else ()
    )
    return FunctionWatch(WEB, looks(alarm), notes, NOW - 0.5)


BESIDE = FunctionWatch(
    WatchedFunction(SESSION, "nat", "throughput_rps", "process 4711", 8),
    (FunctionLook(NOW - 1.0, why=OUTSIDE, contention=True,
                  sign="waiting for CPU 5.2 times what its traffic explains (0.02 s/s)"),),
    (), NOW - 0.5,
)  # fmt: skip


class WatchedClient(FakeClient):
    """Tells of these watches what is later than it is asked for."""

    watches: tuple[FunctionWatch, ...] = ()
    now = NOW

    async def ask(self, request: Request) -> Any:
        if not isinstance(request, ListWatches):
            return await super().ask(request)
        self.asked.append(request)
        news = (
            replace(w, looks=tuple(each for each in w.looks if each.at > request.since))
            for w in self.watches
        )
        return FunctionWatches(self.now, tuple(news))


def client(*watches: FunctionWatch) -> WatchedClient:
    made = WatchedClient(story())
    made.watches = watches
    return made


@pytest.mark.parametrize(
    ("size", "theme"), [((80, 24), "dark"), ((160, 50), "dark"), ((60, 18), "dark"),
                        ((80, 24), "mono")],
)  # fmt: skip
async def test_watches_as_they_stand(size: tuple[int, int], theme: str, tmp_path: Path) -> None:
    async with opened(client(watch(), BESIDE), size, screen="watch", theme=theme) as pilot:
        await until(pilot, lambda: "! predicted to break" in screen_text(pilot.app))
        assert "! others' load" in await redrawn(pilot)
        await check(pilot, "watch", tmp_path)
        await pilot.press("j")
        shown = await redrawn(pilot)
        assert "waiting for CPU 5.2 times" in shown
        why = ("no prediction", "host pressure_cpu_s", "⏎ tells the rest")
        assert any(words in shown for words in why)


async def test_only_what_is_new_is_asked_for_and_a_silent_watch_is_named() -> None:
    link = client(watch(alarm=False))
    async with opened(link, (100, 30), screen="watch") as pilot:
        await until(pilot, lambda: "✓ predicted to hold" in screen_text(pilot.app))
        link.now = NOW + 12.0
        await until(pilot, lambda: "silent 0:1" in screen_text(pilot.app))
        asked = [each.since for each in link.asked if isinstance(each, ListWatches)]
        assert asked[0] == 0.0
        assert asked[-1] == NOW - 1.0
        link.watches = (replace(watch(alarm=False), ended=True),)
        await until(pilot, lambda: "ended" in screen_text(pilot.app))


async def test_an_empty_screen_says_how_a_watch_is_begun() -> None:
    async with opened(WatchedClient(story("docker")), (80, 24), screen="watch") as pilot:
        assert f"workbench watch {SESSION} " in await redrawn(pilot)
    async with opened(client(), (80, 24), screen="watch") as pilot:
        assert "simulated, and has no counters to learn from" in await redrawn(pilot)


def test_an_ended_watch_does_not_make_all_looks_be_asked_for_again() -> None:
    old = replace(watch(), looks=(FunctionLook(NOW - 500.0),), ended=True)
    assert watch_rows.missing_since(FunctionWatches(NOW, (watch(), old))) == NOW - 1.0
    assert watch_rows.missing_since(FunctionWatches(NOW, (old,))) == NOW - watch_list.LATE_S
    assert watch_rows.missing_since(None) == 0.0


def test_looks_that_are_known_are_joined_with_those_that_came() -> None:
    first = FunctionWatches(NOW, (watch(),))
    assert watch_rows.missing_since(first) == NOW - 1.0
    later = replace(watch(), looks=(FunctionLook(NOW - 1.0, 3.0, 2.0, 4.0), FunctionLook(NOW)))
    (joined,) = watch_rows.merged(first, FunctionWatches(NOW + 100.0, (later,))).watches
    assert joined.looks[0].at == NOW - 500.0  # what is older than ten minutes went
    assert [each.at for each in joined.looks[-2:]] == [NOW - 1.0, NOW]
    assert len(joined.looks) == 501


def test_a_curve_has_a_gap_where_nothing_was_told() -> None:
    figure = watch_rows.figure(watch(), NOW)
    assert [len(curve.x) for curve in figure.curves] == [240, 300]
    assert figure.limit is not None
    assert (figure.limit.y, figure.x_range) == (5.0, (-600.0, 0.0))


def test_a_figure_over_the_sla_that_is_not_sure_is_neither_an_alarm_nor_fine() -> None:
    last = FunctionLook(NOW - 1.0, 6.0, 2.0, 18.0, alarm=False, breach=0.63)
    unsure = replace(watch(alarm=False), looks=(last,))
    assert watch_list.state_of(unsure, NOW) == ("≈ may break", "warn")
    told = "".join(words for row in watch_rows.detail_rows(unsure, 160, 9, "⏎") for words, _ in row)
    assert "may break the SLA, with a probability of 63%; an alarm takes 80 %" in told
    alarmed = replace(unsure, looks=(replace(last, alarm=True),))
    assert watch_list.state_of(alarmed, NOW) == ("! predicted to break", "bad")
    below = replace(unsure, looks=(replace(last, value=4.0, breach=0.35),))
    assert watch_list.state_of(below, NOW) == ("✓ predicted to hold", "good")


def test_every_state_is_told_in_the_same_words_everywhere() -> None:
    """On the list, in the legend, in text and in `--json`, whose words `cli.md` has."""
    documented = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    legend = watch_list.meanings()
    for state in get_args(LookState):
        assert any(line.startswith(f"{badge(state)}: ") for line in legend)
        assert f"`{state}`" in documented
        assert len(badge(state)) <= watch_list.STATE


def many(count: int = 14) -> list[FunctionWatch]:
    """Every third is predicted to break, every third has no figure, the others hold."""
    found = []
    for number in range(count):
        timed = number % 2 == 0
        kpi, sla = ("p95_ms", "p95<=10ms") if timed else ("throughput_rps", "throughput>=300/s")
        look = (
            FunctionLook(NOW - 1.0, 1250.0, 833.0, 1870.0, alarm=False, breach=0.1),
            FunctionLook(NOW - 1.0, why=OUTSIDE, alarm=False),
            FunctionLook(NOW - 1.0, 12.3, 8.25, 18.6, alarm=True, breach=0.9),
        )[number % 3]
        who = WatchedFunction(SESSION, f"function-{number}", kpi, PLACE, number, sla, 10.0)
        found.append(FunctionWatch(who, (look,), (), NOW - 0.5))
    return found


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_trouble_stands_first_nothing_is_cut_and_the_list_scrolls(
    size: tuple[int, int],
) -> None:
    async with opened(client(*many()), size, screen="watch") as pilot:
        await until(pilot, lambda: "! predicted to break" in screen_text(pilot.app))
        lines = screen_text(pilot.app).splitlines()
        first = next(i for i, line in enumerate(lines) if "KPI now [95 %]" in line)
        whole = (pilot.app.size.height - 6) // 3
        states = [line.partition("function-")[2] for line in lines[first + 1 : first + 6]]
        assert all("! predicted to break" in state for state in states[:4])
        assert "…" not in "".join(lines[first : first + whole])
        assert any("p95 12.3 ms [8.25–18.6]" in line and "<=10ms" in line for line in lines)
        await pilot.press("G")
        shown = await redrawn(pilot)
        if size == (80, 24):
            assert "1–6 of 14" in lines[first]
            assert "9–14 of 14" in shown
        assert "1.25k requests/s [833–1.87k]" in shown


async def test_the_cursor_stays_on_whom_it_was_put_and_until_then_on_the_worst() -> None:
    fine = [each for each in many() if not each.looks[0].alarm][:3]
    link = client(*fine)
    async with opened(link, (80, 24), screen="watch") as pilot:
        await until(pilot, lambda: "function-0" in screen_text(pilot.app))
        screen = pilot.app.screen
        assert isinstance(screen, WatchScreen)
        assert screen.here is not None
        assert screen.here.watched.function == "function-1", "it has no figure: worse than a good"
        alarmed = FunctionLook(NOW, 12.3, 8.25, 18.6, alarm=True, breach=0.9)
        broken = replace(fine[0], looks=(alarmed,))
        link.watches = (broken, *fine[1:])
        link.now = NOW + 1.0
        await until(pilot, lambda: screen.here is not None and screen.here.looks[-1] == alarmed)
        await pilot.press("j")
        chosen = screen.here
        held = FunctionLook(NOW + 1.0, 1.3, 1.2, 1.6, alarm=False, breach=0.1)
        link.watches = (replace(fine[0], looks=(held,)), *fine[1:])  # its alarm is over
        link.now = NOW + 2.0
        await until(pilot, lambda: "! predicted" not in screen_text(pilot.app))
        assert chosen is not None
        assert screen.here is not None
        assert screen.here.watched == chosen.watched
        assert screen.listing().cursor == 0, "its line went up"
        await pilot.press("enter")
        assert f"where: {PLACE}" in await redrawn(pilot)


async def test_a_frozen_list_opens_the_line_that_is_seen() -> None:
    first, second, *_ = (w for w in many() if not w.looks[0].why and not w.looks[0].alarm)
    link = client(first, second)
    async with opened(link, (80, 24), screen="watch") as pilot:
        await until(pilot, lambda: first.watched.function in screen_text(pilot.app))
        screen = pilot.app.screen
        assert isinstance(screen, WatchScreen)
        await pilot.press("f")
        alarmed = FunctionLook(NOW, 12.3, 8.25, 18.6, alarm=True, breach=0.9)
        link.watches, link.now = (first, replace(second, looks=(alarmed,))), NOW + 1.0
        await screen._ask()  # one that was under way
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, MessageScreen)
        assert pilot.app.screen.message.startswith(f"{first.watched.function}: ")
        await pilot.press("escape", "f")
        await until(pilot, lambda: "! predicted to break" in screen_text(pilot.app), "the alarm")
        assert screen.here is not None
        assert screen.here.watched == second.watched


def test_details_are_whole_sentences_and_what_has_no_room_is_named() -> None:
    told = " ".join(words for words, _ in watch_rows.told(watch()))
    rows = ["".join(w for w, _ in row) for row in watch_rows.detail_rows(watch(), 80, 2, "⏎")]
    assert rows == [" 14:24:20 alarm: haproxy is predicted to break p95<=5ms", " ⏎ tells the rest"]
    rows = ["".join(w for w, _ in row) for row in watch_rows.detail_rows(watch(), 80, 3, "⏎")]
    assert " ".join(" ".join(rows).split()) == told
    assert "holds 97%" in watch_rows.whole_text(watch(), NOW)


@pytest.mark.parametrize("width", [60, 80, 100, 160, 300])
def test_a_line_is_as_wide_as_the_screen_whatever_is_told(width: int) -> None:
    columns = watch_list.ListColumns.of(many(), width)
    rows = [watch_list.heading(columns), *(watch_list.watch_row(w, NOW, columns) for w in many())]
    for row in rows:
        assert len("".join(words for words, _ in row).rstrip()) <= width
        assert "…" not in "".join(words for words, _ in row)
    assert columns.intervals == (width >= 80)
    assert bool(columns.place) == (width >= 100)
