"""A host's noise from simulated A/A runs, and what may be claimed of two sessions on it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from workbench.domain.errors import DataError
from workbench.domain.lab import HostNoise
from workbench.domain.samples import Estimate
from workbench.measuring import ab_test
from workbench.measuring.noise import components, null_claims

HOSTS = 400
BATCHES = 6
NOISES = {  # log-sd of window, restart, drift
    "METHOD": (0.05, 0.05, 0.08),
    "windows only": (0.05, 0.0, 0.0),
    "restarts mostly": (0.02, 0.06, 0.0),
    "drift mostly": (0.01, 0.0, 0.05),
}

Floats = NDArray[np.float64]


def visits(
    rng: np.random.Generator, sds: tuple[float, float, float], deployments: int, m: int = 2
) -> Floats:
    """Figures of an A/A run, or of a session per row: each deployment on a minute of its own."""
    window, restart, drift = sds
    started = rng.normal(0, restart, deployments) + rng.normal(0, drift, deployments)
    return np.exp(math.log(40.0) + started[:, None] + rng.normal(0, window, (deployments, m)))


def sampled(rng: np.random.Generator, value: float, window: float) -> Estimate:
    """A sample's own interval: t over batches, whose spread is the window's and nothing else."""
    half = 2.5706 * np.std(rng.normal(0, window * math.sqrt(BATCHES), BATCHES), ddof=1)
    half /= math.sqrt(BATCHES)
    return Estimate(value, value * math.exp(-half), value * math.exp(half))


@pytest.mark.parametrize("pairs", [4, 10])
@pytest.mark.parametrize("name", NOISES)
def test_null_pairs_are_claimed_in_one_of_twenty_and_twice_the_floor_in_most(
    name: str, pairs: int
) -> None:
    """A run per host, then two sessions on it: of the same, and of twice the floor apart."""
    sds = NOISES[name]
    rng = np.random.default_rng([pairs, *name.encode()])
    claimed = seen = 0
    for _ in range(HOSTS):
        floor = components(visits(rng, sds, pairs)).smallest_difference
        one, other = visits(rng, sds, 2, 1)[:, 0]
        first = sampled(rng, one, sds[0])
        null = ab_test.ratio(first, sampled(rng, other, sds[0]))
        claimed += ab_test.verdict(null, floor) != "no_visible_difference"
        slower = ab_test.ratio(first, sampled(rng, other * (1 + floor) ** 2, sds[0]))
        seen += ab_test.verdict(slower, floor) == "higher"
    assert claimed <= binom.ppf(0.999, HOSTS, 0.05), claimed / HOSTS
    assert seen >= 0.9 * HOSTS, seen / HOSTS


def test_intervals_alone_would_claim_what_is_only_a_restart() -> None:
    """Why there is a floor: the windows of a sample agree with each other, not with the next."""
    sds = NOISES["restarts mostly"]
    rng = np.random.default_rng(5)
    claimed = 0
    for _ in range(HOSTS):
        one, other = visits(rng, sds, 2, 1)[:, 0]
        null = ab_test.ratio(sampled(rng, one, sds[0]), sampled(rng, other, sds[0]))
        claimed += ab_test.verdict(null, 0.0) != "no_visible_difference"
    assert claimed > 0.3 * HOSTS


@pytest.mark.parametrize("name", ["METHOD", "windows only", "restarts mostly"])
def test_the_parts_are_found_and_add_up(name: str) -> None:
    """Over many deployments; a drift that is new at every deployment counts as a restart."""
    window, restart, drift = NOISES[name]
    found = components(visits(np.random.default_rng(3), NOISES[name], 4000))
    assert found.window_sd == pytest.approx(window, rel=0.05)
    assert math.hypot(found.restart_sd, found.drift_sd) == pytest.approx(
        math.hypot(restart, drift), rel=0.05, abs=0.008
    )
    assert found.total_sd == pytest.approx(math.hypot(*NOISES[name]), rel=0.05)


def test_a_slow_drift_is_told_from_restarts() -> None:
    rng = np.random.default_rng(2)
    slow = np.cumsum(rng.normal(0, 0.01, 200))
    drifting = np.exp(slow[:, None] + rng.normal(0, 0.01, (200, 2)))
    found = components(drifting)
    assert found.drift_sd > 2 * found.restart_sd
    assert found.drift_sd == pytest.approx(float(np.std(slow, ddof=1)), rel=0.1)


def test_windows_that_are_off_by_a_factor_look_like_windows_and_not_like_starts() -> None:
    random = np.random.default_rng(3)
    told = []
    for _ in range(200):
        visits = np.exp(random.normal(0.0, 0.02, (10, 1)) + random.normal(0.0, 0.04, (10, 2)))
        visits *= np.where(random.random((10, 2)) < 0.05, 2.0, 1.0)
        told.append(components(visits))
    assert np.mean([one.window_sd for one in told]) > 0.1
    assert np.quantile([one.restart_sd for one in told], 0.95) < 0.08


def test_a_start_that_is_slower_in_both_of_its_windows_is_no_outlier() -> None:
    random = np.random.default_rng(4)
    told = []
    for _ in range(200):
        visits = np.exp(random.normal(0.0, 0.02, (10, 2)))
        visits[3] *= 1.3
        told.append(components(visits))
    assert np.mean([math.hypot(one.restart_sd, one.drift_sd) for one in told]) > 0.07
    assert components(np.array([[1.0, 1.0], [1.5, 1.5], [1.0, 1.0], [1.0, 1.0]])).restart_sd > 0.1


def test_parts_are_cut_off_at_zero() -> None:
    """Two visits a tenth apart on every deployment, and deployments that agree."""
    found = components(np.tile([1.0, 1.1], (6, 1)))
    assert (found.restart_sd, found.drift_sd) == (0.0, 0.0)
    assert found.window_sd == pytest.approx(math.log(1.1) / math.sqrt(2))
    assert found.total_sd == pytest.approx(found.window_sd)


def test_few_deployments_ask_for_more() -> None:
    """The same scatter, seen three times and thirty times."""
    few = components(np.exp([[0.1, 0.1], [-0.1, -0.1], [0.1, 0.1]]))
    many = components(np.exp([[0.1, 0.1], [-0.1, -0.1], [0.1, 0.1]] * 10))
    assert few.degrees == pytest.approx(2)
    assert few.smallest_difference > 1.5 * many.smallest_difference


def test_without_noise_a_histogram_bucket_is_left() -> None:
    assert components(np.full((4, 2), 7.0)).smallest_difference == pytest.approx(0.01, rel=0.01)


@pytest.mark.parametrize(
    "figures", [np.ones((2, 2)), np.ones((5, 1)), np.ones(5), np.array([[1.0, 0.0]] * 3)]
)
def test_what_cannot_tell_noise_is_refused(figures: Floats) -> None:
    with pytest.raises(DataError):
        components(figures)


def test_null_claims_counts_pairs_of_different_deployments() -> None:
    assert null_claims(np.array([[1.0, 9.0], [1.0, 1.0], [1.2, 1.0]]), 0.1) == (3, 6)


# ------------------------------------------------------------------------------- contrasts


def noise(**smallest: float) -> HostNoise:
    return HostNoise("sim", "g", 0.0, 8, 4, {}, {}, {}, smallest, 0.0)


def test_the_ratio_keeps_the_wider_side() -> None:
    got = ab_test.ratio(Estimate(10, 9, 10), Estimate(20, 20, 30))
    assert got.value == pytest.approx(2)
    assert got.low == pytest.approx(2), "second is not lower, first is not higher than stated"
    assert got.high == pytest.approx(2 * math.exp(math.hypot(math.log(1.5), math.log(10 / 9))))


def test_repetitions_narrow_the_interval_by_their_root() -> None:
    one = Estimate(10.0, 10 / 1.1, 11.0)
    four = ab_test.pooled([one] * 4)
    assert four is not None
    assert math.log(four.high / four.value) == pytest.approx(math.log(1.1) / 2)
    assert ab_test.pooled([one, Estimate(0.0, 0.0, 1.0)]) is None
    assert ab_test.pooled([]) is None


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (Estimate(1.09, 1.08, 1.10), "no_visible_difference"),
        (Estimate(1.12, 1.11, 1.13), "higher"),
        (Estimate(1.30, 0.95, 1.80), "no_visible_difference"),
        (Estimate(0.92, 0.91, 0.93), "no_visible_difference"),
        (Estimate(0.90, 0.89, 0.91), "lower"),
        (Estimate(0.50, 0.20, 1.10), "no_visible_difference"),
    ],
)
def test_a_claim_needs_the_interval_and_the_floor(ratio: Estimate, verdict: str) -> None:
    assert ab_test.verdict(ratio, 0.10) == verdict


def test_the_floor_is_the_largest_of_both_sessions_and_general_where_none_was_measured() -> None:
    quiet, loud = noise(mean_ms=0.04), noise(mean_ms=0.30)
    assert ab_test.floor("mean_ms", (quiet, loud)) == 0.30
    assert ab_test.floor("mean_ms", (quiet, None)) == pytest.approx(0.345, abs=0.01)
    assert ab_test.floor("p95_ms", (quiet, quiet)) == pytest.approx(0.945, abs=0.01)
