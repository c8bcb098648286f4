"""`contention_alarms.py`: what it counts as an alarm in time, and what it keeps of each session."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from alarm_results import (
    PAGE,
    Asked,
    Cost,
    Injection,
    Live,
    Played,
    Quiet,
    by_kind,
    keep,
    live_lines,
    play_of,
    published,
    read_plays,
    report,
    summary,
)
from contention_alarms import live_of, quiet_of, raised_of

from workbench.domain.competitors import Competitor

LOW = 8.0, 6.0, 8.0
"""A figure and both ends of its interval, in ms."""


def test_alarms_are_counted_by_their_delays() -> None:
    found = [
        Injection(0.0, 2.5, False, 10, 0),
        Injection(20.0, 7.0, False, 10, 1),
        Injection(40.0, None, False, 10, 9),
        Injection(60.0, None, True, 10, 0),
    ]
    assert [one.in_time for one in found] == [True, False, False, False]
    assert summary(found) == (
        "1 of 4 alarmed within 5 s; 1 without an alarm, 1 alarmed before; "
        "delays 2.5 to 7.0 s, median 4.8 s"
    )


def test_an_alarm_that_was_there_before_is_none_of_what_came() -> None:
    found = [
        Injection(0.0, 2.5, False, 6, 0, 0.0, "cpu", 3.5, 2.5),
        Injection(20.0, None, True, 6, 0, 40.0, "cpu", 0.7, 2.7, ("alarm",)),
    ]
    assert by_kind(found).startswith(
        "in time: 1 of 2 beside cpu; of all, 2 by others' load, 1 by the SLA"
    )


def test_alarms_are_kept_with_their_time_and_who_was_there() -> None:
    def look(at: float, kind: str = "") -> dict[str, object]:
        on = {"alarm": kind == "alarm", "contention": kind == "contention"}
        return {"at": at, **on, "value": 2.0, "sign": "waiting for CPU 4.4 times"}

    looks = [look(100.0), look(163.0, "contention"), look(164.0, "contention"), look(170.0)]
    looks += [look(210.0), look(214.0, "alarm"), look(220.0, "alarm")]
    lonely, beside = raised_of(looks, [Injection(211.0, 3.0, False, 6, 0, 0.0, "cpu")])
    assert (lonely.kind, lonely.at_s, lonely.seconds, lonely.competitor) == (
        "contention",
        63.0,
        7.0,
        "",
    )
    assert (beside.kind, beside.seconds, beside.competitor, beside.sign) == (
        "alarm",
        6.0,
        "cpu",
        "2 ms",
    )
    assert raised_of([], []) == []
    told = report([Played(raised=[lonely, beside])])
    assert told == (
        "alarm of others' load with nobody there in minute 2, for 7 s: waiting for CPU 4.4 times"
    )


def test_an_alarm_while_nobody_competes_is_counted_where_it_is_raised() -> None:
    def look(alarm: bool, value: float | None = 1.0) -> dict[str, object]:
        return {"alarm": alarm, "contention": False, "value": value}

    looks = [look(False), look(True), look(True), look(False), look(True, None)]
    others = {"alarm": None, "contention": True, "value": 1.0}
    stretch = quiet_of([*looks, look(False), others], 7.0)
    assert (stretch.alarms, stretch.looks, stretch.silent) == (3, 7, 1)
    assert quiet_of([], 5.0).alarms == 0


def test_what_is_played_again_is_added_to_the_results_of_its_session(tmp_path: Path) -> None:
    results = tmp_path / "alarms.json"
    asked = Asked("web", (400.0,), 1, 60.0, (Competitor("cpu"),), 12.5)
    played = play_of(results, asked)
    played.injections.append(Injection(0.0, 2.5, False, 10, 4, 0.0, "cpu", None, 2.5))
    played.quiet.append(quiet_of([], 1800.0))
    played.costs.append(Cost(100.0, 0.5, 90))
    keep(results, asked, played)
    again = play_of(results, asked)
    assert again == played
    again.quiet.append(quiet_of([], 1800.0))
    # No event in T hours: at most -log(0.05) / T of them an hour.
    assert "no false alarms in 60.0 quiet minutes (at most 3.0 an hour, 95 %)" in report([again])
    assert "the watch took 0.50% of a core over 90 looks" in report([again])
    assert (
        "in time: 1 of 1 beside cpu; of all, 1 by others' load, 0 by the SLA; 4 of 10 looks beside "
        "them without a figure" in report([again])
    )
    for other in (replace(asked, limit=13.0), replace(asked, rates=(300.0,))):
        assert play_of(results, other) == Played(), "of another session, or another load"
    assert play_of(tmp_path / "none.json", asked) == play_of(None, asked) == Played()


def test_quiet_minutes_of_several_sessions_add_up(tmp_path: Path) -> None:
    results = tmp_path / "alarms.json"
    asked = Asked("web", (400.0,), 1, 60.0, (Competitor("cpu"),), 12.5)
    other = replace(asked, limit=13.0)
    keep(
        results,
        asked,
        Played(quiet=[Quiet(1800.0, 0, 1800, 9)], live=[[Live(5.0, 2.0, 9.0, *LOW)]]),
    )
    keep(
        results,
        other,
        Played(quiet=[Quiet(1800.0, 1, 1800, 0)], live=[[Live(5.0, 2.0, 7.0, *LOW)]]),
    )
    keep(
        results,
        asked,
        Played(quiet=[Quiet(3600.0, 0, 3600, 9)], live=[[Live(5.0, 2.0, 9.0, *LOW)]]),
    )
    plays = read_plays(results)
    assert [session for session, _ in plays] == [asked.session, other.session]
    told = report([played for _, played in plays])
    assert "1 false alarm in 90.0 quiet minutes" in told
    assert "9 of 5400 looks in them" in told
    assert "of 2 looks, each of seconds of its own, 1 had" in told
    assert "over 2 sessions" in told


def test_a_live_interval_is_held_against_the_requests_of_the_same_seconds() -> None:
    now_s, epoch = time.monotonic(), time.time()
    due_s = now_s + np.arange(0.0, 30.0, 0.01)
    took_s = np.where(due_s < now_s + 15.0, 0.010, 0.030)
    drive = SimpleNamespace(
        begin_s=now_s, stop_s=now_s + 30.0,
        records=SimpleNamespace(planned_s=due_s, end_s=due_s + took_s),
    )  # fmt: skip
    looks: list[dict[str, object]] = [
        {"at": epoch + second, "value": 10.0, "low": 8.0, "high": 12.0, "window_s": 3.5}
        for second in range(1, 33)
    ]
    looks[20] |= {"value": None, "window_s": None}
    live = live_of(looks, [drive])  # type: ignore[list-item]  # what it reads of a drive
    # Of a watch's 3.5 s, which is more than a look's second and the campaign's window, from the
    # first second on, until the load stopped; what lasted 30 ms was not within.
    begins = [one.at - one.over_s for one in live]
    assert begins[0] >= epoch + 1.0
    assert live[-1].at <= epoch + 30.0
    assert all(begin >= one.at for begin, one in zip(begins[1:], live, strict=False))
    assert live_lines([live, [], live[:2]]) == [
        "of 8 looks, each of seconds of its own, 5 had their measured p95 within the interval "
        "(62%), whose ends were 1.5 times apart; the figure was 0.0% off (medians)",
        "these looks are of 2 deployments, by which 50% to 100% were within (median 75%)",
    ]
    assert live_of(looks, []) == []
    later = SimpleNamespace(begin_s=now_s + 15.0, stop_s=now_s + 30.0, records=drive.records)
    assert live_of(looks, [later])[0].at >= epoch + 19.0, "none spans the begin"  # type: ignore[list-item]


def test_the_docs_say_what_the_results_have() -> None:
    told = PAGE.read_text(encoding="utf-8")
    assert published(told) == told, "contention_alarms.py --publish writes what they have"
