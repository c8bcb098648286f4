"""The devices that breakpoint searches are raced on, and the protocol of the race."""

import math

import pytest
from science import ours, racing, searches
from science.devices import GOAL, KINDS, NOISES, Device, device, truth_ratio
from science.stored import Store

LONG_S = 4_000.0


def knees(noise: int, count: int) -> list[Device]:
    return [device("hard knee", NOISES[noise], seed) for seed in range(count)]


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "drift"])
@pytest.mark.parametrize("noise", NOISES, ids=lambda n: n.name)
def test_the_truth_is_where_the_long_run_loss_is_the_goal(kind, noise) -> None:
    one = Device(kind, noise, 10_000.0, seed=3)
    lost = []
    for factor in (0.99, 1.01):
        sent, answered = one.trial(one.truth * factor, LONG_S)
        lost.append((sent - answered) / sent)
    assert lost[0] < GOAL < lost[1]


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "drift"])
@pytest.mark.parametrize("noise", NOISES, ids=lambda n: n.name)
def test_half_of_the_trials_pass_where_it_is_said(kind, noise) -> None:
    one = Device(kind, noise, 10_000.0, seed=3)
    shares = []
    for factor in (0.995, 1.005):
        trials = [one.trial(one.passing_half(1.0) * factor, 1.0) for _ in range(600)]
        shares.append(sum((sent - ok) / sent <= GOAL for sent, ok in trials) / len(trials))
    assert shares[0] > 0.5 > shares[1]


def test_both_questions_differ_where_luck_is_not_symmetric() -> None:
    """One second of a collapse that scatters by 3 % passes at loads that lose too much."""
    one = Device("collapse", NOISES[2], 10_000.0, seed=3)
    assert 1.02 < one.passing_half(1.0) / one.truth < 1.06
    assert one.passing_half(30.0) == pytest.approx(one.truth, rel=0.005)


def test_a_drifting_device_drifts_by_what_it_says() -> None:
    one = Device("drift", NOISES[0], 10_000.0, seed=1)
    before = one.truth
    one.trial(1_000.0, 600.0)
    assert abs(math.log(one.truth / before)) == pytest.approx(0.05)


def test_a_capped_generator_sends_less_and_says_so() -> None:
    one = device("hard knee", NOISES[0], 2, fault="generator cap")
    sent, answered = one.trial(5.0 * one.capacity, 1.0)
    assert sent == answered == round(0.7 * one.capacity)


def test_trials_cost_their_overhead() -> None:
    one = device("hard knee", NOISES[0], 2, overhead_s=15.0)
    one.trial(1_000.0, 2.0)
    one.trial(1_000.0, 1.0)
    assert (one.trials, one.load_s, one.wall_s) == (2, 3.0, 33.0)


@pytest.mark.parametrize("name", ["MLRsearch A", "MLRsearch E", "bisection 1 s"])
def test_baselines_find_a_noiseless_knee(name: str) -> None:
    found = searches.cell(searches.SEARCHES[name], knees(0, 5), 0.05)
    assert found.fair
    assert found.coverage == 1.0


def test_mlrsearch_costs_what_its_authors_package_costs() -> None:
    """28 trials and seconds in the package's own run of research/peers.md, the warm-up included."""
    found = searches.cell(searches.MLR_A, knees(0, 10), 0.05)
    assert 26 <= found.spent() <= 29
    assert found.spent("trials") == found.spent()


def test_a_method_that_misses_the_quality_has_no_time() -> None:
    found = searches.cell(searches.bisection(1.0), knees(2, 10), 0.05)
    assert not found.fair
    row = searches.table_rows([("hard knee", "3 %", [found])])[0]
    assert row[2].startswith("- ·")


def test_a_refusal_is_an_infinite_error() -> None:
    found = searches.searched(lambda *_: None, device("quota", NOISES[0], 1), 0.05)
    assert math.isinf(found.error)
    assert not found.covered


def test_truth_of_a_soft_knee_lies_below_the_capacity() -> None:
    assert truth_ratio("soft knee", 0.0)[0] < 0.95 < truth_ratio("hard knee", 0.0)[0]


def test_mlrsearch_takes_a_neighbours_range_below_its_own_default() -> None:
    """Its package checks a range against 9,001/s until told otherwise."""
    devices = searches.neighbours(1, NOISES[0])
    found = searches.warm_mlrsearch(devices, 0.05)
    assert len(found) == len(devices)
    assert all(found)


def test_our_search_is_learns_from_neighbours_on_a_grid() -> None:
    found = searches.grid_cell(ours.warm_ours, NOISES[1], 0.05, 1)
    assert found.coverage == 1.0
    assert found.spent() <= 8.0


def test_a_refusal_is_kept_and_not_searched_again(tmp_path, monkeypatch) -> None:
    job = racing.Job("cell", "ours", repetitions=1)
    refused = searches.Searched(math.inf, False, 3, 4.0, 5.0)
    monkeypatch.setattr(racing, "do", lambda job: racing.Done(job, [refused]))
    racing.kept(Store(tmp_path), job)
    monkeypatch.delattr(racing, "do")
    assert racing.kept(Store(tmp_path), job).found == [refused]


def test_rows_where_a_search_takes_minutes_have_fewer_devices() -> None:
    jobs = racing.jobs(50, 6)
    assert len(jobs) == len(set(jobs))
    cells = [job for job in jobs if job.what == "cell"]
    assert {job.repetitions for job in cells if job.width == 0.005} == {20}
