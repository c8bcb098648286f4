"""Plays, curves and the table of the science benchmark, on a surface cut small."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from science import comparing, judging, playing, recordings, stored, svg, tables
from science.comparing import Plan
from science.judging import Score
from science.playing import Curve, Goals, Player
from science.stored import Store
from science.surfaces import BY_NAME, Surface


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Surface:
    """32 configurations, 12 loads, under a name of its own."""
    whole = BY_NAME["firewall-law"]
    cut = tuple(replace(p, values=p.values[::3]) for p in whole.workload)
    surface = replace(whole, name="small", workload=cut, loads=12)
    monkeypatch.setitem(BY_NAME, "small", surface)
    playing.problem.cache_clear()
    playing.judge.cache_clear()
    return surface


def test_a_perfect_model_errs_by_the_noise_alone(small: Surface) -> None:
    judged = judging.judge_of(small)
    truth = np.concatenate(
        [small.truth(c, np.array(small.grid_loads())) for c in small.configurations]
    )
    score = judged.errors(np.log(truth))
    assert 0.03 < score.rmse < 0.3
    worse = judged.errors(np.log(truth) + 0.5 * (np.log(truth) > np.log(0.1)))
    assert worse.rmse > score.rmse
    assert not judged.errors(np.full(truth.size, np.nan)).sane


def test_a_quick_comparison_prints_a_table(small: Surface, tmp_path: Path) -> None:
    plan = Plan(small.name, ("uniform", "bisection"), ("interpolation", "curve-fit"), 1, 384, 96)
    found = comparing.measure(Store(tmp_path, tmp_path), plan, 1)
    name, error = found.reference
    assert name in plan.models
    assert 0.1 < error < 1.0
    printed = comparing.printed(found)
    assert printed.count("\n| uniform |") == 1 == printed.count("\n| bisection |")
    # Nothing is played or fitted again: the store answers, and says the same.
    before = sorted(p.stat().st_mtime_ns for p in tmp_path.rglob("*.jsonl"))
    assert comparing.printed(comparing.measure(Store(tmp_path, tmp_path), plan, 1)) == printed
    assert sorted(p.stat().st_mtime_ns for p in tmp_path.rglob("*.jsonl")) == before


def test_what_is_stored_is_compared_however_few_its_seeds(small: Surface, tmp_path: Path) -> None:
    store = Store(tmp_path, tmp_path)
    both = Plan(small.name, ("uniform", "bisection"), ("interpolation", "curve-fit"), 1, 384, 96)
    best, _ = comparing.measure(store, both, 1).reference
    other = "curve-fit" if best == "interpolation" else "interpolation"
    comparing.measure(store, replace(both, seeds=2, models=(best,)), 1)
    before = sorted(p.read_bytes() for p in tmp_path.rglob("*.jsonl"))
    samplers = (*both.samplers, "sobol")
    found = comparing.measure(
        store, replace(both, samplers=samplers, seeds=20, only_stored=True), 1
    )
    assert sorted(p.read_bytes() for p in tmp_path.rglob("*.jsonl")) == before
    kept = {pair: [curve.seed for curve in curves] for pair, curves in found.curves.items()}
    assert kept["bisection", best] == kept["uniform", best] == [0, 1]
    assert kept["bisection", other] == [0]
    assert kept["sobol", best] == []
    rows = [line.split(" | ") for line in comparing.printed(found).splitlines()]
    seeds = {row[0].strip("| "): row[1] for row in rows if len(row) > 1}
    assert seeds["sobol"] == "0"


def test_a_run_that_writes_nothing_reads_what_the_tree_has(tmp_path: Path) -> None:
    tree, cache = tmp_path / "tree", tmp_path / "cache"
    Store(cache, tree).add("curves/a", 1)
    before = (tree / "curves" / "a.jsonl").read_bytes()
    quick = Store(cache, tree, keep=False)
    quick.add("curves/a", 2)
    assert list(quick.lines("curves/a", int)) == [1, 2]
    assert (tree / "curves" / "a.jsonl").read_bytes() == before
    assert list(Store(cache, tree).lines("curves/a", int)) == [1, 2]


def test_a_play_goes_on_as_if_it_had_not_been_interrupted(small: Surface) -> None:
    whole, first = Player(small, "bisection", 3), Player(small, "bisection", 3)
    whole.upto(60)
    first.upto(25)
    resumed = Player(small, "bisection", 3, first.play)
    resumed.upto(60)
    assert resumed.asks == whole.asks


def test_lab_time_counts_visits_changes_and_deployments(small: Surface) -> None:
    one, other = small.configurations[:2]
    visits = [(one, 0), (one, 0), (other, 0), (other, 1)]
    costs = small.costs
    expected = np.cumsum(
        [costs.deploy_s + costs.sample_s, costs.sample_s, costs.change_s + costs.sample_s,
         costs.deploy_s + costs.sample_s]
    )  # fmt: skip
    assert playing.lab_seconds(small, visits) == pytest.approx(list(expected))


def curve(*errors: float) -> Curve:
    counts = [16 * 2**i for i in range(len(errors))]
    scores = [Score(e, e, e, 0.0) for e in errors]
    return Curve(0, counts, [float(n) for n in counts], scores)


def test_one_lucky_fit_is_not_reaching() -> None:
    assert curve(1.0, 0.1, 1.0, 0.2, 0.1).held(0.3) == 3
    assert curve(1.0, 0.1).held(0.3, 2) is None
    assert curve(1.0, 1.0).reaches(0.3) == (math.inf, math.inf)
    # In logs half way between 32 and 64 samples.
    assert curve(9.0, 1.0, 0.01, 0.01).reaches(0.1)[0] == pytest.approx(math.sqrt(32 * 64))
    assert curve(0.1, 0.1).reaches(0.3) == pytest.approx((16.0, 16.0))


def test_models_are_fitted_only_as_long_as_they_tell_something() -> None:
    goals = Goals(0.2, {"own": 0.5})
    going = {"free": curve(1.0), "own": curve(1.0)}
    assert set(goals.wanted(going)) == {"free", "own"}
    assert goals.wanted({"free": curve(0.1, 0.1), "own": curve(1.0)}) == ["own"]
    assert goals.wanted({"free": curve(0.1, 0.1), "own": curve(0.4, 0.4)}) == []
    assert goals.cover(Goals(0.3, {"own": 0.6}))
    assert not goals.cover(Goals(0.1, {"own": 0.6}))


def test_what_never_happened_is_not_averaged() -> None:
    assert tables.quartiles([1.0, 2.0, math.inf, math.inf]) == (1.0, 2.0, math.inf)
    assert tables.spread([math.inf] * 3) == "never"
    assert tables.ratio(math.inf, 5.0) == "never"


def test_another_text_is_another_digest() -> None:
    own = stored.digest("science.surfaces")
    assert own == stored.digest("science.surfaces")
    assert own != stored.digest("science.judging")
    assert "science.families" in stored._imports("science.surfaces")


def test_recordings_answer_with_the_nearest_recorded_sample() -> None:
    problems = recordings.problems_of("demo-real")
    assert {p.kpi for p in problems.values()} <= set(recordings.CEILINGS)
    for problem in problems.values():
        configuration = problem.configurations[0]
        known = problem.space(1).loads[configuration]
        for wl in (known[0] * 0.9, known[-1] * 1.1):
            assert problem.measure(configuration, wl, draw="train-1").point.wl in known
        test = problem.drawn("test")
        assert all(s.point.repetition == recordings.TEST for s in test)
        assert all(s.point.repetition == 0 for s in problem.drawn("train-0"))


def test_figures_are_well_formed_and_hold_their_points() -> None:
    import xml.etree.ElementTree as ET

    series = [svg.Series("a <b>", [1, 10, 100], [3.0, 2.0, math.inf], [2, 1, 1], [4, 3, 3])]
    drawn = svg.lines("t & t", "x", "y", series, limit=("limit", 2.5))
    root = ET.fromstring(drawn)
    circles = [e for e in root.iter() if e.tag.endswith("circle")]
    assert len(circles) == 3, "two points, one in the legend; infinity is not drawn"
    for one in circles:
        assert 0 <= float(one.get("cx", "-1")) <= svg.WIDTH
        assert 0 <= float(one.get("cy", "-1")) <= svg.HEIGHT
    ET.fromstring(svg.boxes("t", "y", {"a": [1.0, 2.0, 5.0], "b": [math.inf]}))
