"""What is made of several samples of a deployment that is tried."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from session_making import measurement

from workbench.domain.events import BypassMeasured, Event, Fact, SampleTaken, TargetDeployed
from workbench.domain.lab import BypassCurve
from workbench.domain.parameters import Configuration, Sla
from workbench.domain.projection import SessionView
from workbench.domain.samples import Estimate, Sample
from workbench.domain.trials import REPEATS, usual_s, usual_samples
from workbench.engine.answers.verification_steps import (
    UNDECIDED_REPEATS,
    median_of,
    typical,
    worth_repeating,
)
from workbench.engine.runs.trials import _TrialsProgress
from workbench.models.scales import NORMAL_95

LIMITS = (Sla("p95_ms", 110.0, "<=", 80.0),)
DEPLOYING_S = 1000.0
AGREED = (99.0, 100.0, 101.0, 100.5, 99.5)


def windows(*p95: float) -> list[Sample]:
    """Samples of one deployment, a second each."""
    whole = measurement("haproxy", Configuration({"haproxy.vcpu": 0.5}, {}), 80.0).sample
    return [
        replace(whole, lab_s=1.0, kpis={**whole.kpis, "p95_ms": Estimate(value, value, value)})
        for value in p95
    ]


def medians(*values: float, sd: float = 0.0) -> Estimate:
    ends = [math.exp(sign * NORMAL_95 * sd) for sign in (-1.0, 1.0)]
    return median_of("p95_ms", [Estimate(v, v * ends[0], v * ends[1]) for v in values])


@pytest.mark.parametrize("n", [5, 6, 7, 9, 11])
@pytest.mark.parametrize("law", ["normal", "student", "outliers"])
def test_the_interval_of_a_median_holds_under_any_law(n: int, law: str) -> None:
    random = np.random.default_rng(n)
    drawn = {
        "normal": lambda: random.normal(0.0, 0.1, n),
        "student": lambda: 0.1 * random.standard_t(3, n),
        "outliers": lambda: random.normal(0.0, 0.02, n) + 0.7 * (random.random(n) < 0.05),
    }[law]
    told = [medians(*(100.0 * np.exp(drawn()))) for _ in range(2000)]
    inside = np.mean([one.low <= 100.0 <= one.high for one in told])
    assert 0.9 <= inside <= 0.98  # the kth from either end leaves out at most a tenth


def test_of_nine_one_outlier_is_no_end() -> None:
    steady = [98.0, 99.0, 100.0, 101.0, 102.0]
    assert medians(*steady[:4], 200.0).high > 190.0
    assert medians(*steady, 99.5, 100.5, 101.5, 200.0).high < 103.0


def test_fewer_than_five_go_by_what_the_campaign_knows_of_a_sample() -> None:
    told = medians(100.0, 101.0, 102.0, sd=0.1)
    assert told.value == 101.0
    assert math.log(told.high / told.value) == pytest.approx(
        NORMAL_95 * 1.25 * 0.1 / math.sqrt(3.0)
    )
    assert medians(100.0, 200.0, sd=0.1).value == 150.0, "an odd one was lost"


def test_no_interval_is_finer_than_a_histogram() -> None:
    told = medians(*[100.0] * 5)
    assert told.low < 99.8
    assert told.high > 100.2


def test_two_regimes_are_told_as_both() -> None:
    told = medians(87.0, 83.0, 0.7, 0.9, 1.0)
    assert told.value == 1.0
    assert told.low < 0.8
    assert told.high > 80.0


def test_nothing_lost_has_an_interval_too() -> None:
    assert medians(0.0, 0.0, 0.0) == Estimate(0.0, 0.0, 0.0)


def test_what_is_typical_scatters_as_its_samples_do() -> None:
    told = typical(windows(99.0, 100.0, 101.0, 100.5, 99.5), LIMITS).kpis["p95_ms"]
    assert told.value == 100.0
    assert 98.5 < told.low < 99.5
    assert 100.5 < told.high < 101.5


def test_samples_are_repeated_while_they_cost_less_than_deploying() -> None:
    assert worth_repeating(windows(100.0), LIMITS, DEPLOYING_S)
    assert not worth_repeating(windows(100.0), LIMITS, 0.5)
    assert worth_repeating(windows(100.0, 101.0), LIMITS, 0.5)  # two have no median


def test_more_samples_make_no_figure_of_a_bound() -> None:
    bounded = [
        replace(one, labels=("censored",), kpis={"p95_ms": Estimate(90.0, 90.0, 200.0)})
        for one in windows(*[90.0] * 5)
    ]
    assert not worth_repeating(bounded, LIMITS, DEPLOYING_S)


def test_five_that_agree_on_the_side_of_the_limit_are_enough() -> None:
    agreed = windows(99.0, 100.0, 101.0, 100.5, 99.5)
    assert len(agreed) == REPEATS
    assert not worth_repeating(agreed, LIMITS, DEPLOYING_S)


def test_five_with_the_limit_among_them_are_not_but_thirteen_are() -> None:
    one_off = windows(99.0, 100.0, 101.0, 100.5, 200.0)
    assert worth_repeating(one_off, LIMITS, DEPLOYING_S)
    undecided = windows(*[100.0, 120.0] * 6, 130.0)
    assert len(undecided) == UNDECIDED_REPEATS
    assert worth_repeating(undecided[:-2], LIMITS, DEPLOYING_S)
    assert not worth_repeating(undecided, LIMITS, DEPLOYING_S)


def campaign_of(deploying_s: float, each_s: float) -> SessionView:
    """A session whose campaign deployed once, looked past the functions and took four samples."""
    view = SessionView("s")
    facts: list[Fact] = [TargetDeployed("haproxy", "simulated 1", True, "answers", deploying_s)]
    facts.append(BypassMeasured(BypassCurve("simulated 1", "open", True, {}, ()), 20.0))
    facts += [SampleTaken(replace(one, lab_s=each_s)) for one in windows(*AGREED[:4])]
    for seq, fact in enumerate(facts, 1):
        view.apply(Event(seq, 0.0, "s", fact))
    return view


@pytest.mark.parametrize("deploying_s", [0.0, 1.5, 2.5, 5.0, 25.0])
@pytest.mark.parametrize("each_s", [1.3, 3.0, 6.0, 18.0])
def test_what_is_tried_takes_as_many_samples_and_as_long_as_was_said(
    deploying_s: float, each_s: float
) -> None:
    """A dialog spoke of one sample of up to thirteen, and of a deployment with a bypass in it."""
    view, taken = campaign_of(deploying_s, each_s), 1
    samples = [replace(one, lab_s=each_s) for one in windows(*AGREED)]
    while worth_repeating(samples[:taken], LIMITS, deploying_s):
        taken += 1
    assert usual_samples(view) == taken
    assert usual_s(view) == pytest.approx(deploying_s + taken * each_s, rel=0.3)


def test_beyond_what_was_expected_another_sample_is_under_way() -> None:
    """It was "3/1 samples" and nothing to go for as long as the side of a limit stayed open."""
    trials: Any = SimpleNamespace(
        **{
            "_out": SimpleNamespace(view=campaign_of(5.0, 2.0)),
            "_order": SimpleNamespace(points=3),
        },
        samples=(),
        answering=True,
        lab_s=0.0,
    )
    progress = _TrialsProgress(trials)
    assert progress.tally() == (0, 3, pytest.approx(5.0 + 3 * 2.0))
    trials.lab_s = 5.0
    assert progress.tally() == (0, 3, pytest.approx(3 * 2.0))
    trials.samples = windows(*AGREED[:3])
    assert progress.tally() == (3, 4, 1.0)
    trials.answering = False
    assert progress.tally() == (3, 3, 0.0)


def test_two_outliers_leave_nine_undecided_and_eleven_not() -> None:
    agreed = [99.0, 100.0, 101.0, 100.5, 99.5, 100.2, 99.8]
    assert worth_repeating(windows(*agreed, 200.0, 190.0), LIMITS, DEPLOYING_S)
    eleven = windows(*agreed, 200.0, 190.0, 100.1, 99.9)
    assert not worth_repeating(eleven, LIMITS, DEPLOYING_S)
