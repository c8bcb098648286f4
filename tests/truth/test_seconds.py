"""A valid sample costs at most a fifth of a fixed protocol's, at equal interval width."""

from __future__ import annotations

from statistics import median

import pytest
from bench_truth.seconds import races
from bench_truth.truths import Known

SEEDS, FEW_SEEDS = 20, 8
"""The few outside of `make accept`."""


@pytest.mark.parametrize("noise", ["default", "student"])
def test_a_fifth_of_thirty_seconds(noise: str, full_length: bool) -> None:
    known = Known()
    seeds = SEEDS if full_length else FEW_SEEDS
    raced = [r for seed in range(1, seeds + 1) for r in races(noise, (30.0,), seed, known, (0.7,))]
    assert len(raced) >= 0.9 * seeds
    assert median(one.ratio for one in raced) <= 0.2
