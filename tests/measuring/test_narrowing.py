"""Windows until the interval is narrow: how many at least, when it ends, what cannot be reached."""

from dataclasses import replace

import numpy as np
import pytest
from drives import drive, judged, open_loop, records, terms

from workbench.domain.samples import Estimate
from workbench.measuring.floor import METHOD_FLOOR, VarianceFloor
from workbench.measuring.narrowing import FACTOR, MIN_WINDOWS, half_width, more_helps

FREE = VarianceFloor({}, {}, {})
WIDE, NARROW = Estimate(10.0, 8.0, 12.5), Estimate(10.0, 9.8, 10.2)


def visited(interval, timeout_s=60.0, floor=0.0, service=0.002, rate=300):
    """Drives of a visit until it settles."""
    given = terms(floor=floor, interval=interval, timeout_s=timeout_s)
    drives, begin, seconds = [], 0.0, 4.5
    while seconds:
        rows = open_loop(rate, service, seconds, seed=len(drives))
        drives.append(drive(rows, seconds, begin_s=begin))
        begin += seconds
        got = judged(drives, rate, given)
        seconds = got.next_s
    return got, drives


def test_a_visit_without_a_wanted_interval_ends_after_one_window():
    assert len(visited(0.0)[1]) == 1


def test_windows_are_added_until_the_interval_is_narrow():
    rough, fine = visited(0.5), visited(0.012, timeout_s=120.0)
    assert len(rough[1]) == MIN_WINDOWS, "one narrow window may be luck"
    assert len(fine[1]) > MIN_WINDOWS
    for got, most in ((rough[0], 0.5), (fine[0], 0.012)):
        sample = got.measurement.sample
        assert sample.valid
        assert half_width(sample.kpis["p95_ms"]) <= most
        assert sample.windows == len(got.measurement.windows)


def test_the_time_out_ends_it_and_the_sample_stays_valid():
    got, drives = visited(0.001, timeout_s=15.0)
    assert sum(d.stop_s - d.begin_s for d in drives) == pytest.approx(13.5)
    assert got.measurement.sample.valid
    assert half_width(got.measurement.sample.kpis["p95_ms"]) > 0.001


def test_a_visit_does_not_wait_for_what_only_other_visits_can_give():
    assert len(visited(0.10, timeout_s=60.0, floor=0.05)[1]) > MIN_WINDOWS
    assert len(visited(0.02, timeout_s=60.0, floor=0.05)[1]) == MIN_WINDOWS
    lasting = VarianceFloor({"p95_ms": 0.01}, {"p95_ms": 0.1}, {})
    assert not more_helps("p95_ms", WIDE, 0.1, MIN_WINDOWS, 100, lasting)
    assert more_helps("p95_ms", WIDE, 0.21, MIN_WINDOWS, 100, lasting)


def test_a_lower_bound_or_a_share_has_no_relative_width():
    assert len(visited(0.05, rate=900)[1]) == 1, "overloaded: p95 is a bound"
    assert not more_helps("loss_pct", WIDE, 0.01, 1, 5, FREE)
    assert not more_helps("p95_ms", Estimate(0.0, 0.0, 1.0), 0.01, 1, 5, FREE)
    assert not more_helps("p95_ms", WIDE, 0.01, 1, 0, FREE)
    assert more_helps("p95_ms", NARROW, 0.05, 1, 5, FREE)
    assert not more_helps("p95_ms", NARROW, 0.05, MIN_WINDOWS, 5, FREE)
    assert more_helps("p95_ms", WIDE, 0.05, MIN_WINDOWS, 5, METHOD_FLOOR) is False
    assert more_helps("p95_ms", WIDE, 0.2, MIN_WINDOWS, 5, METHOD_FLOOR)


def test_the_factor_widens_only_who_looks_again():
    due = np.arange(0.0, 4.5, 0.005)
    rows = records(due, due, due + 0.002 * np.random.default_rng(1).lognormal(0, 0.5, due.size))
    once = judged(drive(rows, 4.5), 200, terms()).measurement.sample.kpis["mean_ms"]
    again = judged(drive(rows, 4.5), 200, terms(interval=0.5)).measurement.sample.kpis["mean_ms"]
    ratio = np.log(again.value / again.low) / np.log(once.value / once.low)
    assert ratio == pytest.approx(FACTOR)
    wider = judged(drive(rows, 4.5), 200, replace(terms(interval=0.5), factor=2.0))
    third = wider.measurement.sample.kpis["mean_ms"]
    assert np.log(third.value / third.low) == pytest.approx(2 * np.log(once.value / once.low))
