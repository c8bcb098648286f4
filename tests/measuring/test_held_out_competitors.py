"""`bench-counters` with a competitor held out of training: it answers within its interval, or says
that it was not taught this."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from contention_alarms import (
    HERE,
    PAGE,
    PUBLISHED,
    Asked,
    Cost,
    Injection,
    Played,
    by_kind,
    earlier,
    keep,
    live_of,
    played_of,
    published,
    quiet_of,
    raised_of,
    report,
    summary,
)
from counted_pages import HeldOut, competitor_table
from counted_sessions import held_out
from designed_stimuli import by_sample, designed, gridded, places_of
from kept_counters import KeptWindow, taken_from
from published_counters import LineModel
from session_making import measurement

from workbench.domain.competitors import Competitor
from workbench.domain.errors import DataError
from workbench.domain.observations import Observation
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Measurement, Window
from workbench.measuring.histograms import build

NOTHING = build(np.zeros(0), np.zeros(0))


def taken(competitor: str, wl: float, block: int, waited_s: float) -> Measurement:
    """One window of two seconds, whose throughput is that of its load."""
    given = Configuration({"web.vcpu": 0.5}, {"competitor": competitor})
    made = measurement("web", given, wl)
    window = Window(1.0, 2.0, round(2.02 * wl), round(2 * wl), 0, 0, NOTHING, NOTHING)
    observed = (
        Observation(0, "web", "rx_packets", 2 * wl * (1 + 0.01 * (wl % 3))),
        Observation(0, "web", "cpu_wait_s", 2 * waited_s * wl),
    )
    return replace(
        made,
        sample=replace(made.sample, block=block, findings=(), valid=True),
        windows=(window,),
        observations=observed,
    )


def test_one_unlike_all_others_is_outside_of_what_was_learned() -> None:
    draw = np.random.default_rng(1)
    waits = {"none": 1e-4, "cpu": 2e-4, "memory": 5e-1}
    session = [
        taken(competitor, float(draw.uniform(100, 1000)), block, waited * draw.uniform(0.9, 1.1))
        for competitor, waited in waits.items()
        for block in range(3)
        for _ in range(4)
    ]
    kept = taken_from({"made": session}, "web")
    of = {one.competitor: one for one in held_out(kept.windows, "throughput_rps")}
    assert set(of) == {"cpu", "memory"}
    assert (of["memory"].windows, of["memory"].missing, of["memory"].outside) == (12, 0, 12)
    assert of["memory"].lost(0.95) == 0.0


def kept_window(beside: str, number: int, counted: dict[str, float]) -> KeptWindow:
    wl = 100.0 + 90.0 * number
    return KeptWindow(
        "made", number, 0, wl, f"web/{beside}/{number % 4}", beside, 2.0,
        {"throughput_rps": wl}, {"rx_packets": wl, **counted},
    )  # fmt: skip


def test_a_counter_that_hardly_counts_beside_one_is_looked_at_there_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thousands of context switches a second alone, one or two beside `memory`: that is outside of
    what was learned and no counter that is missing."""
    monkeypatch.setattr("workbench.models.counter_watch.OwnCounterModel", LineModel)
    windows = [
        kept_window(beside, number, {"involuntary_switches": switches * (100.0 + 90.0 * number)})
        for beside, switches in (("none", 3.0), ("cpu", 2.0), ("memory", 1e-3))
        for number in range(10)
    ]
    of = {one.competitor: one for one in held_out(windows, "throughput_rps")}
    assert of["memory"].missing == 0
    assert of["memory"].outside >= 9, "the lowest load has about as many alone"
    lost = [replace(w, counted={"rx_packets": w.wl}) if w.beside == "memory" else w
            for w in windows]  # fmt: skip
    of = {one.competitor: one for one in held_out(lost, "throughput_rps")}
    assert (of["memory"].missing, of["memory"].outside, of["memory"].answered) == (10, 0, 0)


def test_coverage_is_lost_where_answers_were_wrong() -> None:
    assert HeldOut("cpu", 10, 1, 1, 4).lost(0.9) == 0.4
    assert HeldOut("cpu", 10, 0, 2, 8).lost(0.9) == 0.0
    told = competitor_table([HeldOut("cpu", 10, 0, 2, 4), HeldOut("memory", 8, 5, 3, 0)], 0.9)
    assert "| cpu | 10 | 2 | 0 | 50% | 40 points (at most 3) |" in told
    assert "| memory | 8 | 3 | 5 | none was answered | 0 points (at most 3) |" in told


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
    told = report(Played(raised=[lonely, beside]))
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
    results, asked = (
        tmp_path / "alarms.json",
        Asked("web", (400.0,), 1, 60.0, (Competitor("cpu"),), 12.5),
    )
    played = earlier(results, 12.5, [400.0])
    played.injections.append(Injection(0.0, 2.5, False, 10, 4, 0.0, "cpu", None, 2.5))
    played.quiet.append(quiet_of([], 1800.0))
    played.costs.append(Cost(100.0, 0.5, 90))
    keep(results, asked, played)
    again = earlier(results, 12.5, [400.0])
    assert again == played
    again.quiet.append(quiet_of([], 1800.0))
    # No event in T hours: at most -log(0.05) / T of them an hour.
    assert "no false alarms in 60.0 quiet minutes (at most 3.0 an hour, 95 %)" in report(again)
    assert "the watch took 0.50% of a core over 90 looks" in report(again)
    assert (
        "in time: 1 of 1 beside cpu; of all, 1 by others' load, 0 by the SLA; 4 of 10 looks beside "
        "them without a figure" in report(again)
    )
    for limit, rate in ((13.0, 400.0), (12.5, 300.0)):  # of another session: left as they are
        with pytest.raises(SystemExit, match="of another session"):
            earlier(results, limit, [rate])
    assert (
        earlier(tmp_path / "none.json", 13.0, [400.0]) == earlier(None, 13.0, [400.0]) == Played()
    )


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
    live = live_of(looks, [drive])[0]  # type: ignore[list-item]  # what it reads of a drive
    # Of a watch's 3.5 s, which is more than a look's second and the campaign's window, from the
    # first second on, until the load stopped; what lasted 30 ms was not within.
    begins = [at - over_s for at, over_s, *_ in live.compared]
    assert begins[0] >= epoch + 1.0
    assert live.compared[-1][0] <= epoch + 30.0
    assert all(begin >= one[0] for begin, one in zip(begins[1:], live.compared, strict=False))
    assert (live.windows, live.held) == (6, 3)
    assert live.median_width == pytest.approx(1.5)
    assert live_of(looks, []) == []
    later = SimpleNamespace(begin_s=now_s + 15.0, stop_s=now_s + 30.0, records=drive.records)
    assert live_of(looks, [later])[0].compared[0][0] >= epoch + 19.0, "none spans the begin"  # type: ignore[list-item]


def test_the_docs_say_what_the_results_have() -> None:
    told = PAGE.read_text(encoding="utf-8")
    assert published(told) == told, "contention_alarms.py --publish writes what they have"
    for name in PUBLISHED:
        kept = json.loads((HERE / "results" / f"{name}.json").read_text())
        assert report(played_of(kept)).splitlines() == kept["report"], name


def test_a_design_takes_what_is_furthest_from_what_it_has() -> None:
    line = np.array([[0.0], [0.1], [0.5], [1.0]])
    assert designed(line, 3, 0) == [0, 3, 2]
    assert sorted(designed(line, 4, 1)) == [0, 1, 2, 3]


def test_steps_of_load_are_the_same_under_each_competitor() -> None:
    places = np.array([[load, kind] for kind in (0.0, 1.0) for load in np.linspace(0.0, 1.0, 11)])
    chosen = gridded(places, 6, np.random.default_rng(0))
    alone, beside = (sorted(places[c, 0] for c in chosen if places[c, 1] == k) for k in (0.0, 1.0))
    assert alone == beside
    assert len(set(chosen)) == 6
    assert np.diff(alone) == pytest.approx([1 / 3, 1 / 3], abs=0.11)
    with pytest.raises(DataError, match="split evenly"):
        gridded(places[:12], 6, np.random.default_rng(0))


def test_a_stimulus_is_load_and_competitor_and_nothing_measured() -> None:
    def windows(made: list[Measurement]) -> tuple[KeptWindow, ...]:
        return taken_from({"made": made}, "web").windows

    places = places_of(windows([taken(c, 100.0, 0, 1e-4) for c in ("none", "cpu", "cpu:50")]))
    assert places[0].max() == 0.0
    assert np.linalg.norm(places[1] - places[0]) > np.linalg.norm(places[2] - places[1]) > 0.0
    alike = windows([taken("cpu", 100.0, b, w) for b, w in ((0, 1e-4), (1, 9.0))])
    assert (places_of(alike) == 0.0).all()


def test_a_sample_that_lacks_a_counter_is_no_row_of_a_design() -> None:
    windows = [kept_window("none", number, {"cpu_cores": 0.1 * number}) for number in range(40)]
    windows[7] = replace(windows[7], counted={"rx_packets": windows[7].wl})
    rows, of = by_sample(windows, "throughput_rps")
    assert [one.sample for one in of] == [n for n in range(40) if n != 7]
    assert rows.y.tolist() == [one.wl for one in of]
    twice = [*windows, replace(windows[0], number=1)]
    with pytest.raises(DataError, match="1 windows are of samples that have another"):
        by_sample(twice, "throughput_rps")
