"""Throughput may fall under overload: the pooled law learns from what did not, and says both."""

import numpy as np
import pytest

from workbench.models.falls import fall_of
from workbench.models.pooled import Pooled

SHARES = (0.125, 0.25, 0.5)
CLIENTS = np.array([1, 2, 4, 8, 16, 32, 64, 128, 233])
COLLAPSED = np.log(18.0)
NOISE = 0.03


def profiles(rng, passes=1, *, falls=True):
    """Closed loop, throughput of three shares; at half a vCPU and 233 clients it collapses."""
    rows, y = [], []
    for _ in range(passes):
        for share in SHARES:
            log_x = np.log(np.minimum(25.0 * CLIENTS, 160.0 * share))
            log_x = log_x + NOISE * rng.standard_normal(CLIENTS.size)
            if falls and share == 0.5:
                log_x[-1] = COLLAPSED + NOISE * rng.standard_normal()
            rows += [(share, w) for w in np.log(CLIENTS)]
            y += list(log_x)
    return np.array(rows), np.array(y)


@pytest.mark.parametrize("passes", [1, 2])
def test_a_collapse_is_forecast_where_it_was_measured(passes):
    X, y = profiles(np.random.default_rng(1), passes)
    again, truth = profiles(np.random.default_rng(2))
    model = Pooled().fit(X, y, np.full(len(y), NOISE))
    error = model.predict(again) - truth
    assert np.sqrt(np.mean(error**2)) < 0.15
    at = np.array([[0.5, np.log(233.0)]])
    assert model.predict(at)[0] == pytest.approx(COLLAPSED, abs=0.1)
    low, high = model.predict_band(at)
    assert low[0] < COLLAPSED < high[0]
    # Between the last load that was carried and the first that fell it may be either.
    between = np.array([[0.5, np.log(170.0)]])
    low, high = model.predict_band(between)
    assert np.exp(low[0]) < 30
    assert np.exp(high[0]) > 70
    # Others do not fall with it.
    other = model.predict(np.array([[0.25, np.log(233.0)]]))[0]
    assert np.exp(other) == pytest.approx(40, rel=0.15)


def test_without_a_fall_nothing_changes():
    X, y = profiles(np.random.default_rng(1), falls=False)
    model = Pooled().fit(X, y, np.full(len(y), NOISE))
    assert not model.falls_.found
    assert model.falls_.coefficients.size == 0


def test_response_times_that_fall_are_no_collapse():
    X, y = profiles(np.random.default_rng(1))
    model = Pooled().fit(X, -y + X[:, 1], np.full(len(y), NOISE))
    assert not model.falls_.found


def test_one_sample_is_believed_only_where_it_is_far_below():
    x, sd = np.log([1, 10, 100, 1000.0]), np.full(4, 0.03)
    half = fall_of(x, np.log([10, 60, 60, 30.0]), sd)
    assert half is not None
    assert not half.believed
    tenth = fall_of(x, np.log([10, 60, 60, 6.0]), sd)
    assert tenth.believed
    assert not tenth.repeated
    assert tenth.depth[0] == pytest.approx(0.1)
    twice = fall_of(np.append(x, x[-1]), np.log([10, 60, 60, 30.0, 31.0]), np.full(5, 0.03))
    assert twice.repeated
    assert fall_of([], [], np.zeros(0)) is None, "nothing was valid"
    wide = fall_of(x, np.log([10, 60, 60, 6.0]), np.full(4, 0.6))
    assert wide is None
