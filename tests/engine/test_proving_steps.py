"""What is made of several samples of a deployment that is tried."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from session_making import measurement

from workbench.domain.parameters import Configuration, Sla
from workbench.domain.samples import Estimate, Sample
from workbench.engine.answers.proving_steps import (
    REPEATS,
    UNDECIDED_REPEATS,
    median_of,
    typical,
    worth_repeating,
)

LIMITS = (Sla("p95_ms", 110.0, "<=", 80.0),)
DEPLOYING_S = 1000.0


def windows(*p95: float) -> list[Sample]:
    """Samples of one deployment, a second each."""
    whole = measurement("haproxy", Configuration({"haproxy.vcpu": 0.5}, {}), 80.0).sample
    return [
        replace(whole, lab_s=1.0, kpis={**whole.kpis, "p95_ms": Estimate(value, value, value)})
        for value in p95
    ]


@pytest.mark.parametrize("n", [5, 7, 9, 11])
@pytest.mark.parametrize("law", ["normal", "student", "outliers"])
def test_the_interval_of_a_median_holds_under_any_law(n: int, law: str) -> None:
    random = np.random.default_rng(n)
    drawn = {
        "normal": lambda: random.normal(0.0, 0.1, n),
        "student": lambda: 0.1 * random.standard_t(3, n),
        "outliers": lambda: random.normal(0.0, 0.02, n) + 0.7 * (random.random(n) < 0.05),
    }[law]
    told = [median_of(list(100.0 * np.exp(drawn()))) for _ in range(2000)]
    inside = np.mean([one.low <= 100.0 <= one.high for one in told])
    assert 0.9 <= inside <= 0.98  # the kth from either end leaves out at most a tenth


def test_of_nine_one_outlier_is_no_end() -> None:
    steady = [98.0, 99.0, 100.0, 101.0, 102.0]
    assert median_of([*steady[:4], 200.0]).high > 190.0
    assert median_of([*steady, 99.5, 100.5, 101.5, 200.0]).high < 103.0


def test_two_regimes_are_told_as_both() -> None:
    told = median_of([87.0, 83.0, 0.7, 0.9, 1.0])
    assert told.value == 1.0
    assert told.low < 0.8
    assert told.high > 80.0


def test_nothing_lost_has_an_interval_too() -> None:
    assert median_of([0.0, 0.0, 0.0]) == Estimate(0.0, 0.0, 0.0)


def test_what_is_typical_scatters_as_its_samples_do() -> None:
    told = typical(windows(99.0, 100.0, 101.0, 100.5, 99.5), LIMITS).kpis["p95_ms"]
    assert told.value == 100.0
    assert 98.5 < told.low < 99.5
    assert 100.5 < told.high < 101.5


def test_samples_are_repeated_while_they_cost_less_than_deploying() -> None:
    assert worth_repeating(windows(100.0), LIMITS, DEPLOYING_S)
    assert not worth_repeating(windows(100.0), LIMITS, 0.5)
    assert worth_repeating(windows(100.0, 101.0), LIMITS, 0.5)  # two have no median


def test_five_that_agree_on_the_side_of_the_limit_are_enough() -> None:
    agreed = windows(99.0, 100.0, 101.0, 100.5, 99.5)
    assert len(agreed) == REPEATS
    assert not worth_repeating(agreed, LIMITS, DEPLOYING_S)


def test_five_with_the_limit_among_them_are_not_but_nine_are() -> None:
    one_off = windows(99.0, 100.0, 101.0, 100.5, 200.0)
    assert worth_repeating(one_off, LIMITS, DEPLOYING_S)
    assert not worth_repeating(windows(*[100.0, 120.0] * 4, 130.0), LIMITS, DEPLOYING_S)
    assert len(one_off) < UNDECIDED_REPEATS
