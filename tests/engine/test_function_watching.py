"""What `watch` reports is remembered for minutes, within bounds, and told to screens."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from workbench.cli.context import settings
from workbench.cli.watch_reporting import LookReporter
from workbench.domain.function_watches import (
    FunctionLook,
    HeldOutRates,
    ListWatches,
    ReportLook,
    WatchedFunction,
    WatchNote,
)
from workbench.engine.function_watching import (
    ENDED_S,
    LONGEST_TEXT,
    LOOKS,
    MOST_WATCHES,
    NOTES,
    ReportedWatches,
)
from workbench.engine.process import serving
from workbench.engine.watch_metrics import watch_metrics
from workbench.link.local import LocalClient
from workbench.paths import Workspace

WEB = WatchedFunction("demo", "haproxy", "p95_ms", "container web", 7, "p95<=100ms", 100.0)


def look(at: float) -> FunctionLook:
    return FunctionLook(at, 2.0, 1.0, 4.0, alarm=False)


def test_the_last_minutes_are_remembered_and_no_more() -> None:
    known = ReportedWatches()
    for second in range(LOOKS + 10):
        notes = (WatchNote(second, f"alarm {second}"),)
        known.take(ReportLook(WEB, look(float(second)), notes), float(second))
    (watch,) = known.of("demo", 0.0, 700.0).watches
    assert [watch.looks[0].at, watch.looks[-1].at] == [10.0, LOOKS + 9.0]
    assert (len(watch.looks), len(watch.notes)) == (LOOKS, NOTES)
    (news,) = known.of("demo", LOOKS + 5.0, 700.0).watches
    assert [each.at for each in news.looks] == [LOOKS + 6.0, LOOKS + 7.0, LOOKS + 8.0, LOOKS + 9.0]
    assert known.of("other", 0.0, 700.0).watches == ()


def test_what_has_ended_stands_last_and_is_forgotten_after_a_while() -> None:
    known = ReportedWatches()
    again = replace(WEB, pid=8)
    known.take(ReportLook(WEB, look(1.0)), 1.0)
    known.take(ReportLook(WEB, None, ended=True), 2.0)
    known.take(ReportLook(again, look(3.0)), 3.0)
    assert [w.watched.pid for w in known.of("demo", 0.0, 3.0).watches] == [8, 7]
    known.take(ReportLook(again, look(4.0)), 3.0 + ENDED_S)
    assert [w.watched.pid for w in known.of("demo", 0.0, 3.0 + ENDED_S).watches] == [8]


def test_looks_after_a_clock_was_set_back_are_the_last_ones() -> None:
    known = ReportedWatches()
    known.take(ReportLook(WEB, look(1000.0)), 1000.0)
    known.take(ReportLook(WEB, look(700.0)), 700.0)
    (watch,) = known.of("demo", 999.0, 700.0).watches
    assert [each.at for each in watch.looks] == [700.0]


def test_words_and_watches_of_another_process_are_bounded() -> None:
    known = ReportedWatches()
    for pid in range(MOST_WATCHES + 3):
        watched = WatchedFunction("demo", "f" * 10_000, "p95_ms", "x", pid, accuracy=("y",) * 100)
        known.take(ReportLook(watched, FunctionLook(1.0, why="z" * 10_000)), float(pid))
    watches = known.of("demo", 0.0, 99.0).watches
    assert len(watches) == MOST_WATCHES
    assert watches[0].watched.pid == 3  # those that were silent for longest went
    assert len(watches[0].watched.function) == len(watches[0].looks[0].why) == LONGEST_TEXT
    assert len(watches[0].watched.accuracy) == 8


def test_metrics_are_those_of_watches_that_are_heard_of() -> None:
    known = ReportedWatches()
    rates = HeldOutRates(40, 2, 3, 10, 4, 28, 0, 12, 1)
    web = replace(WEB, rates=rates)
    known.take(ReportLook(web, replace(look(1.0), contention=True, breach=0.25)), 100.0)
    gone, silent = replace(WEB, place="container gone"), replace(WEB, place="container old")
    known.take(ReportLook(gone, look(1.0)), 100.0)
    known.take(ReportLook(gone, None, ended=True), 101.0)
    known.take(ReportLook(silent, look(1.0)), 80.0)
    figures = {
        sample.name: (sample.labels, sample.value)
        for metric in watch_metrics(known, 102.0)
        for sample in metric.samples
    }
    labels = {"session": "demo", "function": "haproxy", "kpi": "p95_ms", "place": "container web"}
    assert figures["workbench_watch_value"] == (labels, 2.0)
    assert figures["workbench_watch_contention"] == (labels, 1.0)
    assert figures["workbench_watch_alarm"] == (labels, 0.0)
    assert figures["workbench_watch_silent"] == (labels, 0.0)
    assert figures["workbench_watch_breach"] == (labels, 0.25)
    shares = {
        sample.labels["what"]: sample.value
        for metric in watch_metrics(known, 102.0)
        for sample in metric.samples
        if sample.name == "workbench_watch_held_out_share"
    }
    assert shares == {
        "silent": 0.05, "strayed": 0.075, "missed": 0.4, "false": 0.0,
        "contention_false": pytest.approx(1 / 12),
    }  # fmt: skip
    known.take(ReportLook(web, FunctionLook(2.0, why="outside")), 103.0)
    named = {metric.name for metric in watch_metrics(known, 104.0)}
    assert "workbench_watch_value" not in named
    assert "workbench_watch_silent" in named
    assert not [*watch_metrics(known, 120.0)]


async def test_who_watches_tells_an_engine_that_comes_later_and_may_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.cli.watch_reporting.AGAIN_S", 0.0)
    monkeypatch.setattr("workbench.cli.watch_reporting.LONGEST_S", 60.0)
    monkeypatch.setattr(settings, "workspace", tmp_path)  # commands of other tests may have set it
    web = replace(WEB, sla="p95<=0.5ms", limit=0.5)
    reporter = LookReporter(web)
    reporter.note("alarm: haproxy breaks p95<=100ms")
    await reporter.tell(look(1.0))  # nobody answers at that socket yet
    async with serving(Workspace(tmp_path)) as engine:
        here = LocalClient(engine, "ann")
        assert (await here.ask(ListWatches("demo"))).watches == ()
        await reporter.tell(look(2.0))
        (watch,) = (await here.ask(ListWatches("demo"))).watches
        assert (watch.watched, watch.looks, watch.ended) == (web, (look(2.0),), False)
        assert [note.text for note in watch.notes] == ["alarm: haproxy breaks p95<=100ms"]
        await reporter.close()
        (watch,) = (await here.ask(ListWatches("demo"))).watches
        assert watch.ended
        assert len(watch.notes) == 1  # told once
        await reporter.tell(look(3.0))
        assert len((await here.ask(ListWatches("demo", 2.5))).watches[0].looks) == 1
    async with asyncio.timeout(10):
        await reporter.tell(look(4.0))  # the engine has gone; the watch goes on


async def test_what_an_engine_refuses_of_a_watch_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("workbench.cli.watch_reporting.AGAIN_S", 0.0)
    monkeypatch.setattr("workbench.cli.watch_reporting.LONGEST_S", 60.0)
    monkeypatch.setattr(settings, "workspace", tmp_path)
    reporter = LookReporter(replace(WEB, session="s" * 5000))
    async with serving(Workspace(tmp_path)):
        for second in range(3):
            await reporter.tell(look(float(second)))
    said = capsys.readouterr().err
    assert said.count("no screen shows what is seen here") == 1
    assert "5000 letters" in said
