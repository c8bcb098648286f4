"""Calibration: nominal 95 % intervals of mean and p95, against the truth within a run."""

import numpy as np
import pytest
from drives import drive, judged, records, terms
from scipy.special import ndtri

DRIVES = 300
RATE = 300.0
SECONDS = 4.5


def noisy_drive(rng: np.random.Generator, spread: float):
    """Half seconds that share a factor of log-sd 0.05, with Student's t4 as its shape."""
    due = np.arange(0.0, SECONDS, 1 / RATE)
    factors = np.exp(0.05 * rng.standard_t(4, 9) / np.sqrt(2))
    latency = 0.01 * factors[(due / 0.5).astype(int)] * rng.lognormal(0.0, spread, due.size)
    end = np.where(due + latency < SECONDS, due + latency, np.nan)
    return drive(records(due, due, end), SECONDS)


@pytest.mark.parametrize("spread", [0.3, 0.8])
def test_intervals_cover_the_truth(spread):
    rng = np.random.default_rng(20)
    truth = {
        "mean_ms": 10 * np.exp(spread**2 / 2),
        "p95_ms": 10 * np.exp(spread * ndtri(0.95)),
    }
    covered = dict.fromkeys(truth, 0)
    for _ in range(DRIVES):
        kpis = judged(noisy_drive(rng, spread), RATE, terms(floor=0.0)).measurement.sample.kpis
        for name, value in truth.items():
            covered[name] += kpis[name].low <= value <= kpis[name].high
    # Of 300 intervals that cover with 95 %, fewer than 276 do so with a probability of 1 %.
    assert min(covered.values()) >= 0.92 * DRIVES, covered
