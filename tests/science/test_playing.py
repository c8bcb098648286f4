"""Plays, curves and the table of the science benchmark, on a surface cut small."""

import math
import shutil
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from science import __main__ as running
from science import (
    both_ways,
    checking,
    comparing,
    judging,
    overview,
    playing,
    plays,
    recordings,
    stored,
    svg,
    tables,
)
from science.comparing import Compared, Plan
from science.judging import Score
from science.playing import BUDGET, ITSELF, MET, Curve, Fitted, Goals, followed
from science.plays import Player
from science.stored import Store
from science.surfaces import BY_NAME, Surface


@pytest.fixture(scope="module")
def small() -> Iterator[Surface]:
    """32 configurations, 12 loads, under a name of its own."""
    whole = BY_NAME["firewall-law"]
    cut = tuple(replace(p, values=p.values[::3]) for p in whole.workload)
    surface = replace(whole, name="small", workload=cut, loads=12)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(BY_NAME, "small", surface)
        playing.problem.cache_clear()
        playing.judge.cache_clear()
        yield surface


BOTH = Plan("small", ("uniform", "bisection"), ("interpolation", "curve-fit"), 1, 384, 96)


@pytest.fixture(scope="module")
def compared(small: Surface, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Compared]:
    """The folder of what was played and fitted for `BOTH`, and what came of it."""
    folder = tmp_path_factory.mktemp("compared")
    return folder, comparing.measure(Store(folder, folder), BOTH, 1)


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


@pytest.mark.slow
def test_a_quick_comparison_prints_a_table(compared: tuple[Path, Compared]) -> None:
    folder, found = compared
    name, error = found.reference
    assert name in BOTH.models
    assert 0.1 < error < 1.0
    printed = comparing.printed(found)
    assert printed.count("\n| uniform |") == 1 == printed.count("\n| bisection |")
    # Nothing is played or fitted again: the store answers, and says the same.
    before = sorted(p.stat().st_mtime_ns for p in folder.rglob("*.jsonl"))
    assert before
    assert comparing.printed(comparing.measure(Store(folder, folder), BOTH, 1)) == printed
    assert sorted(p.stat().st_mtime_ns for p in folder.rglob("*.jsonl")) == before


@pytest.mark.slow
def test_what_is_stored_is_compared_however_few_its_seeds(
    compared: tuple[Path, Compared], tmp_path: Path
) -> None:
    folder, first = compared
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    store = Store(tmp_path, tmp_path)
    best, _ = first.reference
    other = "curve-fit" if best == "interpolation" else "interpolation"
    comparing.measure(store, replace(BOTH, seeds=2, models=(best,)), 1)
    before = sorted(p.read_bytes() for p in tmp_path.rglob("*.jsonl"))
    samplers = (*BOTH.samplers, "sobol")
    found = comparing.measure(
        store, replace(BOTH, samplers=samplers, seeds=20, only_stored=True), 1
    )
    assert sorted(p.read_bytes() for p in tmp_path.rglob("*.jsonl")) == before
    kept = {pair: [curve.seed for curve in curves] for pair, curves in found.curves.items()}
    assert kept["bisection", best] == kept["uniform", best] == [0, 1]
    assert kept["bisection", other] == [0]
    assert kept["sobol", best] == []
    rows = [line.split(" | ") for line in comparing.printed(found).splitlines()]
    seeds = {row[0].strip("| "): row[1] for row in rows if len(row) > 1}
    assert seeds["sobol"] == "0"


def test_the_best_model_of_all_is_the_reference_and_is_fitted_to_what_was_bought(
    small: Surface, tmp_path: Path
) -> None:
    store = Store(tmp_path, tmp_path)
    plan = Plan(small.name, ("bisection",), ("lasso1",), 1, 384, 36, ("interpolation",))
    found = comparing.measure(store, plan, 1)
    assert found.reference[0] == "interpolation"
    assert found.plan.models == ("lasso1", "interpolation")
    assert found.curves["bisection", "interpolation"]
    # Nothing is fitted for a comparison of what is stored: it says which models are missing.
    more = replace(plan, judged=("interpolation", "k-nearest"), only_stored=True)
    text = comparing.printed(comparing.measure(store, more, 1))
    assert "the best of 2 (interpolation" in text
    assert "not fitted to it yet: k-nearest" in text


def test_a_failed_reference_is_kept_and_is_not_the_best(tmp_path: Path) -> None:
    store = Store(tmp_path, tmp_path)
    failed = Score(math.inf, math.inf, math.inf, 0.0, "ValueError: no")
    name = "references/small/lasso1/1"
    store.add(name, failed)
    assert list(store.lines(name, Score)) == [failed]
    store.pack()
    assert list(store.lines(name, Score)) == [failed]


def test_a_quick_run_plays_all_surfaces_anew_and_leaves_recordings_out_when_time_is_over(
    small: Surface, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stores: list[Path] = []

    def seen(folder: Path, kept: Path) -> Store:
        stores.extend((folder, kept))
        return Store(folder, kept)

    monkeypatch.setattr(running, "Store", seen)
    monkeypatch.setattr(running, "QUICK_S", 0.0)
    given = Namespace(samplers="uniform,sobol", models="interpolation", workers=1)
    running.quick(given, ["science-open:tinyproxy:mean_ms", small.name])
    said = capsys.readouterr().out
    assert "### small: " in said
    assert "| sobol | 1 | interpolation |" in said
    assert said.count("left out: 0 s are over") == 1
    assert len(stores) == 2
    assert not any(path.exists() for path in stores)
    assert stored.KEPT not in stores
    assert stored.CACHE not in stores


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
    assert plays.lab_seconds(small, visits) == pytest.approx(list(expected))


def curve(*errors: float, end: str = "", last: int = 0) -> Curve:
    counts = [16 * 2**i for i in range(len(errors))]
    counts[-1:] = [last or counts[-1]]
    scores = [Score(e, e, e, 0.0) for e in errors]
    return Curve(0, counts, [float(n) for n in counts], scores, end)


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
    assert goals.wanted({"own": curve(0.4, 0.4)}) == ["own"], "nobody has met the reference"


STEPS = [16, 32, 64, 128]


def fits(errors: dict[str, list[float]], asked: list[tuple[int, str]], over: int = 9):
    """Stands in for a play: errors by model and budget; ended by the sampler at place `over`."""

    def further(place: int, models: list[str]) -> playing.Fitted | str:
        if place == over:
            return ITSELF
        asked.extend((place, model) for model in models)
        scores = {m: Score(errors[m][place], 1.0, 1.0, 0.0) for m in models}
        return STEPS[place], float(STEPS[place]), scores

    return further


def test_a_curve_that_was_cut_because_another_model_met_the_goal_goes_on_without_it() -> None:
    errors = {"first": [0.1] * 4, "second": [1.0, 1.0, 0.1, 0.1]}
    goals, asked = Goals(0.2, {}), []
    both = followed(0, list(errors), goals, STEPS, {}, fits(errors, asked))
    assert [c.end for c in both.values()] == [MET, MET]
    assert both["second"].reaches(0.2) == (math.inf, math.inf)
    asked.clear()
    alone = followed(0, ["second"], goals, STEPS, both, fits(errors, asked))["second"]
    assert asked == [(2, "second"), (3, "second")], "what was fitted is not fitted again"
    assert alone.samples == STEPS
    assert 32 < alone.reaches(0.2)[0] <= 64
    # The same, whatever was stored: further curves do not change what a plan shows.
    again = followed(0, list(errors), goals, STEPS, {"second": alone}, fits(errors, []))
    assert again == both


def test_goals_met_with_the_last_sample_of_a_play_are_not_asked_for_again() -> None:
    """Its last budget is not reached: the play was over, and the curve says that goals were met."""
    met = curve(1.0, 0.1, 0.1, end=MET, last=40)
    asked: list[tuple[int, str]] = []
    wanted = [16, 32, 64, 128]
    found = followed(0, ["one"], Goals(0.2, {}), wanted, {"one": met}, fits({"one": []}, asked))
    assert found == {"one": met}
    assert asked == []


def test_a_play_that_ends_between_the_last_two_budgets_ended_by_itself() -> None:
    """Its last error may meet the goal, and counts: it is not taken for unplayed."""
    plain = fits({"one": [1.0, 1.0, 1.0, 0.1]}, [])

    def short(place: int, models: list[str]) -> Fitted | str:
        more = ITSELF if place == len(STEPS) else plain(place, models)
        return more if isinstance(more, str) or place < 3 else (STEPS[3] - 1, *more[1:])

    ended = followed(0, ["one"], Goals(0.2, {}), STEPS, {}, short)["one"]
    assert (ended.end, ended.samples[-1]) == (ITSELF, STEPS[3] - 1)
    assert ended.reaches(0.2)[0] < STEPS[3]
    asked: list[tuple[int, str]] = []
    again = followed(0, ["one"], Goals(0.2, {}), STEPS, {"one": ended}, fits({"one": []}, asked))
    assert (again, asked) == ({"one": ended}, [])


def test_a_curve_says_who_ended_it() -> None:
    errors = {"one": [1.0] * 4}
    spent = followed(0, ["one"], Goals(0.2, {}), STEPS, {}, fits(errors, []))["one"]
    ended = followed(0, ["one"], Goals(0.2, {}), STEPS, {}, fits(errors, [], over=2))["one"]
    assert (spent.end, ended.end) == (BUDGET, ITSELF)
    assert not spent.over
    assert ended.over
    # A play that is over is not asked again.
    asked: list[tuple[int, str]] = []
    assert followed(0, ["one"], Goals(0.2, {}), STEPS, {"one": ended}, fits(errors, asked)) == {
        "one": ended
    }
    assert asked == []


def test_a_table_says_where_a_sampler_ended_its_play() -> None:
    plan = Plan("small", ("uniform", "heuristic"), ("one",), 3, 384, 96)
    reference = {"one": Score(0.1, 0.1, 0.1, 0.0)}
    met, spent = curve(0.1, 0.1, end=MET), curve(1.0, 1.0, end=BUDGET)
    short = [curve(1.0, 1.0, end=ITSELF, last=n) for n in (29, 31, 40)]

    def said(*curves: Curve) -> str:
        found = Compared(plan, reference, {("heuristic", "one"): list(curves)})
        return found.needed("heuristic", "one", 0.1)

    assert said(*short) == "never (ends at 31)"
    assert said(spent, spent, spent) == "never"
    assert said(met, short[0], short[1]) == "never (16-never, ends at 29)"
    assert said(curve(1.0, end="ValueError: no", last=20)) == "never (stopped at 20)"
    assert said(curve(1.0, 1.0, end=MET)) == "never (1 cut)", "it is not known"


def test_variants_of_the_papers_samplers_have_no_end_of_their_own() -> None:
    given = recordings.by_name("science-open:tinyproxy:throughput_rps")
    for name, registered in plays.VARIANTS.items():
        ended, endless = Player(given, registered, 0), Player(given, name, 0)
        assert ended.upto(96) < 40, "the paper's rule ends it"
        assert endless.upto(96) == 96, "every recorded load of every configuration"
        assert not endless.trouble


def test_what_no_longer_comes_out_as_stored_is_named(small: Surface, tmp_path: Path) -> None:
    store = Store(tmp_path, tmp_path)
    models = ["interpolation", "lasso1"]
    playing.curves_kept(store, small.name, "sobol", 0, models, Goals(0.0, {}), 36)
    other = store.path(playing.key(small.name, "sobol", "lasso1"))
    other.write_text(other.read_text().replace('"rmse":', '"rmse":1'))
    assert checking.same_beginning(store, small.name, "sobol", "interpolation")
    assert checking.same_beginning(store, small.name, "bisection", "lasso1") is None
    text = checking.report(store, [small.name], 1)
    assert "| sobol | interpolation | 1 | none |" in text
    assert "| sobol | lasso1 | 1 | small |" in text


def test_what_never_happened_is_not_averaged() -> None:
    assert tables.quartiles([1.0, 2.0, math.inf, math.inf]) == (1.0, 2.0, math.inf)
    assert tables.spread([math.inf] * 3) == "never"
    assert tables.ratio(math.inf, 5.0) == "never"


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


def test_a_twin_is_taught_by_the_second_pass_and_judged_by_the_first(tmp_path: Path) -> None:
    name = "science-closed:haproxy:mean_ms"
    twin = f"{name}{recordings.SWAPPED}"
    assert twin in recordings.twins()
    assert twin not in recordings.names()
    one, other = recordings.by_name(name), recordings.by_name(twin)
    assert {s.point.repetition for s in other.drawn("train-0")} == {recordings.TEST}
    assert {s.point.repetition for s in other.drawn("test")} == {recordings.TRAINING}
    assert set(other.configurations) <= set(one.configurations)
    store = Store(tmp_path, tmp_path)
    here, there = (playing.reference_kept(store, n, "k-nearest") for n in (name, twin))
    assert here.rmse != there.rmse
    assert playing.reference_stored(store, name, "k-nearest") == here


def test_both_ways_tell_the_ratio_of_each_and_count_what_is_over_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only seeds that were played both ways are compared."""
    name = "science-closed:haproxy:mean_ms"
    never = math.inf
    samples = {
        name: {
            "uniform": {0: 40.0},
            "pooled": {0: 20.0, 1: 99.0},
            "sobol": {0: 50.0},
            "heuristic": {0: never},
        },
        f"{name}{recordings.SWAPPED}": {
            "uniform": {0: 30.0, 1: 90.0},
            "pooled": {0: never},
            "sobol": {0: 30.0},
            "heuristic": {0: never},
        },
    }
    monkeypatch.setattr(recordings, "names", lambda: (name,))
    nothing: dict[str, dict[int, float]] = {sampler: {} for sampler in both_ways.SHOWN}
    monkeypatch.setattr(comparing, "stored", lambda _store, one, *_: nothing | samples[one])
    text = both_ways.report(Store(tmp_path, tmp_path), 5)
    row = (
        f"| {name} | 40 | 0.500 | never | - | 1.250 | 30 | never | never | - | 1.000 | 1/1/1/0/1 |"
    )
    assert row in text
    assert "`pooled`: of 2 at which uniform sampling comes there it does on 1, with 0.50" in text
    assert "`sobol`: of 2 at which uniform sampling comes there it does on 2, with 1.12" in text
    assert "`heuristic`: of 2 at which uniform sampling comes there it does on none; with" in text
    assert "or never, on 2." in text
    assert "`heuristic-endless`: not played both ways." in text


def test_what_is_stored_is_told_without_a_fit(tmp_path: Path) -> None:
    store = Store(tmp_path, tmp_path)
    samplers = ("uniform", *both_ways.SHOWN)
    counts = comparing.stored(store, "science-closed:haproxy:mean_ms", samplers, 2)
    assert counts == {sampler: {} for sampler in samplers}
    assert not list(tmp_path.rglob("*.jsonl"))


def test_the_overview_says_where_a_target_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = {one: {0: 900.0} for one in ("heuristic", "heuristic-endless", "bisection-endless")}
    told = {
        "firewall-law": {"uniform": {0: 4000.0}, "pooled": {0: 190.0, 1: 200.0, 2: 800.0}},
        "streaming-law": {"uniform": {0: 4000.0}, "pooled": {0: 201.0}},
        "firewall-expiry": {"uniform": {0: 4000.0}, "pooled": {0: math.inf}},
    }
    nothing: dict[str, dict[int, float]] = {"uniform": {}, "pooled": {}, "sobol": {}}
    monkeypatch.setattr(
        comparing, "stored", lambda _store, one, *_: plain | nothing | told.get(one, {})
    )
    rows = overview.report(Store(tmp_path, tmp_path), 3).splitlines()
    found = {row.split(" | ")[0].strip("|` "): row.split(" | ")[1:] for row in rows[2:]}
    assert found["firewall-law"][1:4] == ["200 (190-800)", "0.050", "0.05"]
    assert found["streaming-law"][2:4] == ["0.050", "0.05: missed"]
    assert found["firewall-expiry"][1:4] == ["never", "never", "0.20: missed"]
    assert found["streaming-steps"][1:4] == ["-", "-", "-"], "nothing was played"
    assert found["firewall-law"][4:8] == ["900", "900", "900", "-"]
    assert found["firewall-law"][8] == "1/3/1/1/1/0 |"
