"""Faults injected: blamed rightly every time, and never fitted."""

from __future__ import annotations

import pytest
from bench_truth.faults import FAULTS, Fault, played, visits
from bench_truth.truths import Known

SEEDS, CAMPAIGNS = 20, 2
FEW_SEEDS, FEW_CAMPAIGNS = 2, 1
"""Outside of `make accept`: of a fault that strikes seldom, further seeds until it has struck."""
MOST_SEEDS = 5


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_blamed_rightly_every_time_and_never_fitted(fault: Fault, full_length: bool) -> None:
    seeds, campaigns = (SEEDS, CAMPAIGNS) if full_length else (FEW_SEEDS, FEW_CAMPAIGNS)
    known = Known()
    verdicts = [visit for seed in range(1, seeds + 1) for visit in visits(fault, seed, known)]
    while seeds < MOST_SEEDS and not any(v.verdict == "blamed" for v in verdicts):
        seeds += 1
        verdicts += visits(fault, seeds, known)
    assert not [v for v in verdicts if v.verdict in ("wrong", "missed")]
    assert any(v.verdict == "blamed" for v in verdicts)
    for seed in range(1, campaigns + 1):
        for one in played(fault, seed):
            assert one.untouched, one
            assert one.allowed, one
