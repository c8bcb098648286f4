"""How long it takes to judge a large drive: printed (`pytest -s`), never asserted."""

from time import perf_counter

import numpy as np
from drives import drive, judged, records, terms

REQUESTS = 60_000
SECONDS = 4.5


def test_sixty_thousand_records_are_judged():
    rng = np.random.default_rng(1)
    due = np.sort(rng.uniform(0, SECONDS, REQUESTS))
    end = due + rng.lognormal(-6.2, 0.5, REQUESTS)
    made = drive(records(due, due, np.where(end < SECONDS, end, np.nan)), SECONDS)
    rate = REQUESTS / SECONDS
    took = []
    for _ in range(5):
        begin = perf_counter()
        got = judged(made, rate, terms(floor=0.05))
        took.append(perf_counter() - begin)
    print(f"judging {REQUESTS} records: {min(took) * 1e3:.0f} ms (target 50 ms)")  # noqa: T201 - a benchmark speaks
    assert got.measurement.sample.valid
