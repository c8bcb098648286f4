"""Faults injected: blamed rightly every time, and never fitted."""

from __future__ import annotations

import pytest
from bench_truth.faults import FAULTS, Fault, played, visits
from bench_truth.truths import Known

SEEDS = range(1, 21)
CAMPAIGNS = range(1, 3)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_blamed_rightly_every_time_and_never_fitted(fault: Fault) -> None:
    known = Known()
    verdicts = [visit for seed in SEEDS for visit in visits(fault, seed, known)]
    assert not [v for v in verdicts if v.verdict in ("wrong", "missed")]
    assert any(v.verdict == "blamed" for v in verdicts)
    for seed in CAMPAIGNS:
        for one in played(fault, seed):
            assert one.untouched, one
            assert one.allowed, one
