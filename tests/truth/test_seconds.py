"""A valid sample costs at most a fifth of a fixed protocol's, at equal interval width."""

from __future__ import annotations

from statistics import median

import pytest
from bench_truth.seconds import races
from bench_truth.truths import Known


@pytest.mark.parametrize("noise", ["default", "student"])
def test_a_fifth_of_thirty_seconds(noise: str) -> None:
    known = Known()
    raced = [one for seed in range(1, 21) for one in races(noise, (30.0,), seed, known, (0.7,))]
    assert len(raced) >= 18
    assert median(one.ratio for one in raced) <= 0.2
