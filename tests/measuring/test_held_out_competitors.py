"""`bench-counters` with a competitor held out of training: it answers within its interval, or says
that it was not taught this."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from counted_pages import HeldOut, UsualCoverage, competitor_table
from counted_sessions import held_out
from designed_stimuli import by_sample, designed, gridded, places_of
from kept_counters import KeptWindow, taken_from
from published_counters import LineModel
from session_making import measurement

from workbench.domain.errors import DataError
from workbench.domain.observations import Observation
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Measurement, Window
from workbench.measuring.histograms import build
from workbench.models.counter_models import OwnCounterModel

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


@pytest.mark.parametrize(
    "model", [LineModel, pytest.param(OwnCounterModel, marks=pytest.mark.long)]
)
def test_one_unlike_all_others_is_outside_of_what_was_learned(
    model: type[LineModel | OwnCounterModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.models.counter_watch.OwnCounterModel", model)
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
    usual = UsualCoverage(40, 36)
    told = competitor_table([HeldOut("cpu", 10, 0, 2, 4), HeldOut("memory", 8, 5, 3, 0)], usual)
    assert "| cpu | 10 | 2 | 0 | 50% | 40 points (at most 3) | 1.8% |" in told
    assert "| memory | 8 | 3 | 5 | none was answered | 0 points (at most 3) |  |" in told


def test_a_loss_is_told_from_chance_by_what_a_group_of_its_size_can_show() -> None:
    """Drawing 10 of 50 windows, of which one missed, draws that one once in five times."""
    usual = UsualCoverage(40, 40)
    assert usual.chance(9, 10) == pytest.approx(0.2)
    assert usual.chance(10, 10) == usual.chance(0, 0) == 1.0
    assert usual.chance(8, 10) == pytest.approx(10 * 9 / (50 * 49))
    assert (usual.told_from(10), usual.told_from(1)) == (2, 1)
    assert UsualCoverage(4, 2).told_from(2) == 3, "no number of misses shows anything"
    assert UsualCoverage(39, 38).told_from(10) == 3
    assert usual.joined(UsualCoverage(39, 38)) == UsualCoverage(79, 78)


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
