import numpy as np
import pytest

from workbench.measuring.intervals import (
    NORMAL,
    RESOLUTION,
    count_interval,
    exact_share_interval,
    log_interval,
    share_interval,
    t_quantile,
)


def test_t_quantiles():
    assert t_quantile(5) == pytest.approx(2.5706, abs=1e-4)
    assert t_quantile(4, 0.995) == pytest.approx(4.6041, abs=1e-4)


def test_log_interval_is_sectioning_on_logs():
    batches = np.array([9.0, 10.0, 11.0, 10.5, 9.5, 10.0])
    got = log_interval(10.2, batches, 0.0)
    deviation = np.log(batches / 10.2)
    half = 2.570582 * np.sqrt(np.sum(deviation**2) / 5 / 6)
    assert (got.low, got.high) == pytest.approx((10.2 * np.exp(-half), 10.2 * np.exp(half)))


def test_the_floor_rules_where_batches_agree_by_chance():
    same = np.full(6, 10.0)
    assert log_interval(10, same, 0.098).high == pytest.approx(10 * np.exp(0.098))
    assert log_interval(10, same, 0.0).high == pytest.approx(10 * np.exp(RESOLUTION))


def test_one_batch_has_no_spread_to_speak_of():
    assert log_interval(10, np.array([10.0, np.nan, np.nan]), 0.05) is None
    assert log_interval(0.0, np.zeros(6), 0.05) is None


def test_no_events_leave_the_upper_side_open():
    none = count_interval(0, np.zeros(6), 3.0)
    assert (none.value, none.low, none.high) == (0.0, 0.0, 1.0)


def test_few_events_are_at_least_poisson():
    few = count_interval(9, np.full(6, 3.0), 3.0)
    assert few.value == 3.0
    assert few.high - few.value == pytest.approx(NORMAL * np.sqrt(10) / 3)
    bursty = count_interval(9, np.array([9.0, 0, 0, 0, 0, 9]), 3.0)
    assert bursty.high > few.high


def test_a_share_of_none_or_all_is_not_certain():
    none = share_interval(0.0, 300, np.zeros(6))
    assert (none.value, none.low) == (0.0, 0.0)
    assert none.high == pytest.approx(0.0126, abs=1e-4)
    every = share_interval(1.0, 300, np.ones(6))
    assert (every.high, every.low) == (1.0, pytest.approx(1 - 0.0126, abs=1e-4))


def test_requests_that_fail_together_count_as_few():
    even = share_interval(0.1, 600, np.full(6, 0.1))
    together = share_interval(0.1, 600, np.array([0.6, 0, 0, 0, 0, 0]))
    assert even.high < 0.13
    assert together.high > 0.4
    assert together.low <= 0.1 <= together.high


def test_exact_intervals_are_those_of_the_binomial() -> None:
    from scipy.stats import binomtest

    for lost, packets in ((0, 300), (3, 300), (150, 300), (300, 300)):
        stated = exact_share_interval(lost / packets, packets, np.zeros(0))
        exact = binomtest(lost, packets).proportion_ci(method="exact")
        assert (stated.low, stated.high) == pytest.approx((exact.low, exact.high), abs=1e-9)
    none = exact_share_interval(0.0, 10_000, np.zeros(8))
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 10_000))
    together = exact_share_interval(0.1, 600, np.array([0.6, 0, 0, 0, 0, 0]))
    assert together.high > 0.3, "lost at one go, they are not 600 packets' word"
