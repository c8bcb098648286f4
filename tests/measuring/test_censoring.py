import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.measuring.censoring import Distribution
from workbench.measuring.histograms import build

repeatable = settings(derandomize=True, deadline=None)
latencies = st.lists(st.floats(1e-4, 10.0), min_size=1, max_size=40).map(np.array)
ONE_BUCKET = 0.0101


def of(finished, waited=()):
    return Distribution.of(build(np.array(finished, float), np.array(waited, float)))


def test_product_limit_of_a_textbook_example():
    # Remission of leukaemia under 6-MP: Freireich et al. 1963, as in Kalbfleisch & Prentice, 1.1;
    # survival is 0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448 after these weeks.
    ended = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    withdrawn = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    known = of(ended, withdrawn)
    steps = {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}
    for weeks, survival in steps.items():
        assert 1 - known.share_within(weeks * 1.02) == pytest.approx(survival, abs=5e-4)
    assert known.quantile(0.5) == pytest.approx(23, rel=ONE_BUCKET)
    assert known.quantile(0.6) is None, "beyond the last known share"
    assert known.mean() is None


@repeatable
@given(latencies, latencies, st.floats(0.05, 0.99))
def test_the_lower_bound_is_a_lower_bound(finished, waited, q):
    distribution = of(finished, waited)
    bound, value = distribution.quantile_floor(q), distribution.quantile(q)
    assert bound is not None
    assert value is None or bound <= value * (1 + 1e-9)


@repeatable
@given(latencies, st.floats(0.05, 0.95))
def test_without_censoring_the_mean_is_exact_and_shares_are_counts(finished, q):
    sums = np.bincount([0] * finished.size, weights=finished)
    exact = Distribution(np.array([float(finished.size)]), np.zeros(1), sums, np.zeros(1))
    assert exact.mean() == pytest.approx(finished.mean())
    limit = float(np.quantile(finished, q))
    share = of(finished).share_within(limit)
    assert np.mean(finished <= limit / 1.011) - 1e-9 <= share
    assert share <= np.mean(finished <= limit * 1.011) + 1e-9


def test_a_few_requests_still_in_flight_do_not_move_the_percentiles():
    rng = np.random.default_rng(1)
    finished = rng.lognormal(-5, 0.5, 2000)
    known = of(finished, rng.uniform(0, 0.005, 16))
    assert known.quantile(0.95) == pytest.approx(np.quantile(finished, 0.95), rel=0.03)
    assert known.mean() == pytest.approx(finished.mean(), rel=0.02)


def test_censoring_of_long_requests_is_corrected():
    # Requests begun evenly over a window that ends after 3 s; half of them take 1-3 s.
    rng = np.random.default_rng(2)
    takes, left = rng.uniform(0.0, 3.0, 4000), rng.uniform(0.0, 3.0, 4000)
    done = takes <= left
    known = of(takes[done], left[~done])
    assert known.quantile(0.5) == pytest.approx(1.5, rel=0.05)
    assert known.quantile_floor(0.5) < 1.0, "what a naive percentile would have said"


def test_one_stuck_request_leaves_the_mean_unknown_but_not_the_percentile():
    known = of([0.001] * 999, [3.0])
    assert known.quantile(0.99) == pytest.approx(0.001, rel=ONE_BUCKET)
    assert known.mean() is None
    assert known.mean_floor() == pytest.approx(0.004, rel=ONE_BUCKET)


def test_only_waiting_requests_give_bounds_and_nothing_else():
    waiting = of([], [0.5, 1.0, 2.0])
    assert waiting.quantile(0.5) is None
    assert waiting.mean() is None
    assert waiting.quantile_floor(0.5) == pytest.approx(1.0, rel=ONE_BUCKET)
    assert waiting.share_within(1.0) == 0.0
