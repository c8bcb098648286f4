"""The breakpoint search: coverage and seconds on simulated devices, ends of the range, faults."""

import math

import numpy as np
import pytest

from workbench.domain.errors import DataError
from workbench.sampling.search import BreakpointSearch, search_all

GOAL = 0.005


class Device:
    """A hard knee whose capacity jitters by `sd` every second."""

    def __init__(self, capacity, sd, seed, source=math.inf):
        self.capacity, self.sd, self.source = capacity, sd, source
        self.rng = np.random.default_rng(seed)

    def trial(self, load, seconds):
        slices = max(math.ceil(seconds), 1)
        jitter = self.sd * self.rng.standard_normal(slices) * math.sqrt(slices / seconds)
        sent = min(load, self.source)
        served = np.minimum(sent, self.capacity * (1.0 + jitter)).mean()
        return sent * seconds, max(served, 0.0) * seconds

    def truth(self):
        loads = self.capacity * np.linspace(0.9, 1.1, 2001)
        jitter = self.sd * np.random.default_rng(0).standard_normal(4000)
        served = np.minimum(1.0, self.capacity * (1.0 + jitter) / loads[:, None]).mean(axis=1)
        return float(loads[np.argmax(1.0 - served >= GOAL)])


def run(search, device):
    while (ask := search.ask()) is not None:
        assert search.ask() == ask, "asking again changes nothing"
        load, seconds = ask
        assert search.low <= load <= search.high
        search.tell(load, seconds, *device.trial(load, seconds))
    return search.found


def test_five_per_cent_costs_half_of_what_mlrsearch_takes_and_covers():
    """Its own figures there: 29 trials, 29 s, 97 % (peers.md, section 4)."""
    seconds, held = [], []
    for seed in range(20):
        capacity = math.exp(np.random.default_rng(seed).uniform(math.log(2e3), math.log(4e4)))
        device = Device(capacity, 0.01, seed)
        found = run(BreakpointSearch(137.0, 91_000.0, width=0.05, goal=GOAL), device)
        assert found.outcome == "found"
        assert found.high / found.low == pytest.approx(1.05)
        seconds.append(found.seconds)
        held.append(found.low <= device.truth() <= found.high)
    assert np.median(seconds) <= 14.5
    assert np.mean(held) >= 0.95


def test_a_neighbours_result_saves_seconds_and_a_wrong_one_does_no_harm():
    def seconds(prior):
        device = Device(9_000.0, 0.01, 5)
        found = run(BreakpointSearch(137.0, 91_000.0, goal=GOAL, prior=prior), device)
        assert found.low <= device.truth() <= found.high
        return found.seconds

    assert seconds((9_300.0, 0.1)) < seconds(None)
    assert seconds((30_000.0, 0.1)) < 3.0 * seconds(None)


def test_ends_of_the_range_and_the_sources_limit_are_answers():
    above = run(BreakpointSearch(100.0, 1_000.0), Device(5_000.0, 0.01, 0))
    assert above.outcome == "above range"
    assert above.low == pytest.approx(1_000.0)
    below = run(BreakpointSearch(1_000.0, 9_000.0), Device(200.0, 0.01, 0))
    assert below.outcome == "below range"
    limited = run(BreakpointSearch(100.0, 91_000.0), Device(10_000.0, 0.0, 0, source=7_000.0))
    assert limited.outcome == "source limited"
    assert limited.low == pytest.approx(7_000.0, rel=0.01)


def test_a_budget_ends_it_unresolved():
    found = run(BreakpointSearch(100.0, 9e4, width=0.001, budget_s=30.0), Device(9e3, 0.03, 0))
    assert found.outcome == "unresolved"
    assert found.seconds >= 30.0


def test_a_lost_search_is_rebuilt_from_its_trials():
    live, device = BreakpointSearch(137.0, 91_000.0), Device(9_000.0, 0.01, 1)
    for _ in range(3):
        load, seconds = live.ask()
        live.tell(load, seconds, *device.trial(load, seconds))
    assert search_all(BreakpointSearch(137.0, 91_000.0), live.trials).ask() == live.ask()


@pytest.mark.parametrize("wrong", [{"low": 0.0}, {"high": 50.0}, {"width": 0.0}, {"goal": 0.6}])
def test_what_cannot_be_searched_is_named(wrong):
    given = {"low": 100.0, "high": 900.0, **wrong}
    with pytest.raises(DataError, match="breakpoint search"):
        BreakpointSearch(given.pop("low"), given.pop("high"), **given)


def test_counts_that_cannot_be_are_refused():
    with pytest.raises(DataError, match="of 10 sent"):
        BreakpointSearch(1.0, 9.0).tell(5.0, 1.0, 10.0, 11.0)
