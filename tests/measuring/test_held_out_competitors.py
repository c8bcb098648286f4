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
    Asked,
    Cost,
    Injection,
    Played,
    earlier,
    keep,
    live_of,
    played_of,
    quiet_of,
    report,
    summary,
)
from counted_sessions import HeldOut, competitor_table, held_out
from designed_stimuli import designed, gridded, places_of
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
    of = {one.competitor: one for one in held_out(session, "web", "throughput_rps")}
    assert set(of) == {"cpu", "memory"}
    assert (of["memory"].windows, of["memory"].outside) == (12, 12)
    assert of["memory"].lost(0.95) == 0.0


def test_coverage_is_lost_where_answers_were_wrong() -> None:
    assert HeldOut("cpu", 10, 2, 4).lost(0.9) == 0.4
    assert HeldOut("cpu", 10, 2, 8).lost(0.9) == 0.0
    told = competitor_table([HeldOut("cpu", 10, 2, 4), HeldOut("memory", 8, 8, 0)], 0.9)
    assert "| cpu | 10 | 2 | 50% | 40 points (at most 3) |" in told
    assert "| memory | 8 | 8 | none was answered | 0 points (at most 3) |" in told


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
        {"at": epoch + second, "value": 10.0, "low": 8.0, "high": 12.0} for second in range(1, 28)
    ]
    looks[10] |= {"value": None}
    live = live_of(looks, [drive], 2.0)[0]  # type: ignore[list-item]  # what it reads of a drive
    # From the first second on, each of two seconds of its own; what lasted 30 ms was not within.
    assert live.windows == pytest.approx(12, abs=1)
    assert live.held == pytest.approx(6, abs=1)
    assert live.median_width == pytest.approx(1.5)
    assert live_of(looks, [], 2.0) == []


def test_the_docs_say_what_the_results_have() -> None:
    kept = json.loads((HERE / "results" / "alarms.json").read_text())
    told = (HERE.parent / "docs" / "counters.md").read_text()
    for line in report(played_of(kept)).splitlines():
        assert f"> {line}" in told


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
    places = places_of([taken(c, 100.0, 0, 1e-4) for c in ("none", "cpu", "cpu:50")])
    assert places[0].max() == 0.0
    assert np.linalg.norm(places[1] - places[0]) > np.linalg.norm(places[2] - places[1]) > 0.0
    assert (places_of([taken("cpu", 100.0, b, w) for b, w in ((0, 1e-4), (1, 9.0))]) == 0.0).all()
