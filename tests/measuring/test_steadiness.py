import numpy as np
import pytest

from workbench.measuring.steadiness import growth, trend


def noise(count, size, sd, seed=1):
    return np.random.default_rng(seed).normal(0, sd, (count, size))


def test_a_ramp_and_a_step_are_trends():
    ramp = np.linspace(80, 120, 7)
    step = np.array([90.0, 90, 90, 110, 110, 110])
    for batches in (ramp, step):
        change = trend(batches + noise(1, batches.size, 0.5)[0], 0.10)
        assert change == pytest.approx(0.23, abs=0.05)
        assert trend(batches[::-1], 0.10) < -0.1


def test_a_small_change_is_none_however_clear():
    assert trend(np.linspace(98, 102, 7), 0.10) is None


def test_noise_is_hardly_ever_a_trend():
    found = [trend(100 + row, 0.10) is not None for row in noise(1000, 7, 5.0)]
    assert np.mean(found) < 0.02


def test_nothing_can_be_said_of_few_or_empty_batches():
    assert trend(np.array([1.0, 2.0, 3.0]), 0.1) is None
    assert trend(np.zeros(8), 0.1) is None
    assert trend(np.zeros(0), 0.1) is None


def test_growth_finds_the_slope_of_a_walk_and_covers_it():
    steps = 4.0 + noise(400, 40, 3.0)
    found = [growth(np.cumsum(row), 0.1) for row in steps]
    slopes, errors = np.array(found).T
    assert np.mean(slopes) == pytest.approx(40.0, rel=0.03)
    assert np.mean(np.abs(slopes - 40.0) < 2.0 * errors) > 0.9


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_a_level_that_wanders_is_not_called_growing(correlation):
    rows = noise(300, 235, 1.0)
    for i in range(1, rows.shape[1]):
        rows[:, i] += correlation * rows[:, i - 1]
    found = [growth(row[200:], 0.1) for row in rows]
    assert np.mean([slope > 2.0 * error for slope, error in found]) < 0.03


def test_growth_of_next_to_nothing():
    assert growth(np.array([1.0, 2.0]), 0.1) == (0.0, float("inf"))
    assert growth(np.full(20, 3.0), 0.1) == pytest.approx((0.0, 0.0), abs=1e-12)
