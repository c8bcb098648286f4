"""The pure parts of the chain benchmark: who is judged on what, and what counts as met."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from chain_science import report
from chain_science.canaries import Error, middle
from chain_science.grids import Grid, split
from chain_science.predicting import OURS, PAPER, PREDICTION, SIMPLE
from chain_science.recommending import Asked, Recommended
from chain_science.recordings import recorded
from chain_science.stored import kept

CHAIN, KPI = "tinyproxy-haproxy", "mean_ms"


@pytest.fixture(scope="module")
def grid() -> Grid:
    return recorded("science-open")


def test_canaries_are_of_the_first_pass_and_below_what_is_judged(grid: Grid) -> None:
    parted = split(grid, CHAIN, KPI)
    assert {s.point.repetition for s in parted.canary} == {0}
    assert {s.point.repetition for s in parted.upper} == {1}
    for configuration in {s.point.configuration for s in parted.upper}:
        canary = [s.point.wl for s in parted.canary if s.point.configuration == configuration]
        upper = [s.point.wl for s in parted.upper if s.point.configuration == configuration]
        assert max(canary) <= 0.5 * (min(canary) + max(upper)) < min(upper)
        assert len(canary) <= 10
    assert len(parted.noise) == len(parted.upper)


def test_a_chain_that_was_cut_short_is_not_judged(grid: Grid) -> None:
    assert [plan.target.name for plan in grid.chains] == [CHAIN]
    assert len(grid.campaign.targets) == 4


def test_a_bundle_of_a_chain_alone_takes_the_functions_of_another(grid: Grid) -> None:
    second = recorded("science-open-second")
    assert [plan.target.name for plan in second.chains] == ["haproxy-tinyproxy"]
    assert second.functions == grid.functions
    for plan in second.functions:
        assert second.of(plan.target.name, 0) == grid.of(plan.target.name, 0) != []


def test_what_was_measured_once_is_judged_by_its_upper_half_and_has_no_noise() -> None:
    once = recorded("chain-first")
    assert [plan.target.name for plan in once.chains] == ["haproxy-tinyproxy", CHAIN]
    parted = split(once, CHAIN, KPI)
    assert parted.canary
    assert parted.upper
    assert not set(map(id, parted.canary)) & set(map(id, parted.upper))
    assert not parted.noise
    assert {s.purpose for s in once.samples} == {"profile"}


def error(ours: float, simple: float, noise: float = 0.02) -> Error:
    errors = dict.fromkeys((PREDICTION, *SIMPLE, *PAPER), simple) | {OURS: ours}
    return Error("grid", 0, CHAIN, KPI, 10, 5, noise, errors)


@pytest.mark.parametrize(
    ("ours", "simple", "noise", "small", "halved"),
    [
        (0.09, 0.3, 0.02, True, True),
        (0.11, 0.3, 0.02, False, True),
        (0.11, 0.3, 0.08, True, True),
        (0.09, 0.15, 0.02, True, False),
        (0.09, 0.15, 0.08, True, None),
    ],
)
def test_targets_are_those_of_the_issue(
    ours: float, simple: float, noise: float, small: bool, halved: bool | None
) -> None:
    found = error(ours, simple, noise)
    assert (found.small, found.halved) == (small, halved)


def test_what_cannot_be_said_is_infinitely_wrong() -> None:
    assert middle(np.array([0.1, -0.3, math.nan])) == 0.3
    assert math.isinf(middle(np.array([0.1, math.nan, math.nan])))


def asked(
    chosen: tuple[int, ...] | None, true_kpi: float = 90.0, then: tuple[int, ...] | None = None
) -> Asked:
    """An SLA of at most 100, by the models alone and - where `then` is said - by the lab."""
    before = Recommended(chosen, true_kpi) if chosen else None
    after = Recommended(then, 90.0) if then else before
    return Asked(0, CHAIN, 50.0, 100.0, 1, (2, 1), 90.0, before, after, 2 if then else 1)


@pytest.mark.parametrize(
    ("chosen", "true_kpi", "steps", "missed"),
    [
        ((2, 1), 90.0, 0, False),
        ((3, 0), 80.0, 1, False),
        ((0, 1), 120.0, 2, True),
        (None, 0.0, None, False),
    ],
)
def test_a_recommendation_is_as_far_off_as_the_function_that_is_farthest(
    chosen: tuple[int, ...] | None, true_kpi: float, steps: int | None, missed: bool
) -> None:
    one = asked(chosen, true_kpi)
    assert one.steps(one.before) == steps
    assert one.missed(one.before) == missed


def test_the_table_counts_answers_of_all_and_misses_of_answers_with_their_intervals() -> None:
    text = report.recommendations([asked((2, 1)), asked((0, 1), 120.0, (1, 1)), asked(None)])
    before, after = text.splitlines()[-2:]
    half = "1 (50%, 9% to 91%)"
    told = f"| both, before | 1 | 3 | 2 (67%, 21% to 94%) | {half} | {half} | {half} | 0.0 (0)"
    assert before.startswith(told)
    all_near = "2 (100%, 34% to 100%) | 0 (0%, 0% to 66%)"
    assert after.startswith(
        f"| both, after | 1 | 3 | 2 (67%, 21% to 94%) | {half} | {all_near} | 1.5 (2)"
    )


def test_what_is_more_than_a_step_off_is_listed() -> None:
    text = report.recommendations([asked((2, 1)), asked((4, 1), 60.0, (4, 1))])
    told, head, row = (text.splitlines()[place] for place in (-7, -5, -3))
    assert told == (
        "<summary>The 1 that are more than one step off after the lab, by place and p95</summary>"
    )
    assert head.startswith("| chain, seed |")
    assert row == f"| {CHAIN}, seed 0 | 50 | 100 | 2 1: 90 | 4 1: 60 | 4 1: 90 | 2 |"


def test_errors_are_shown_by_median_over_seeds() -> None:
    text = report.canaries([error(0.05, 0.3), error(0.07, 0.3), error(0.2, 0.3)])
    row = text.splitlines()[-1]
    assert "| 7.0% | 2/3 | 2/3 |" in row


def test_what_was_made_before_is_not_made_again(tmp_path: Path) -> None:
    made = []

    def make() -> list[Asked]:
        made.append(1)
        return [asked((2, 1))]

    first = kept("slas", "0-a", list[Asked], make, tmp_path)
    assert kept("slas", "0-a", list[Asked], make, tmp_path) == first == [asked((2, 1))]
    kept("slas", "0-b", list[Asked], make, tmp_path)
    assert len(made) == 2


def test_what_was_never_reached_is_kept_as_it_is(tmp_path: Path) -> None:
    errors = {"ours": math.inf, "prediction": 0.1}
    for _ in range(2):
        assert kept("errors", "0", dict[str, float], lambda: errors, tmp_path) == errors
