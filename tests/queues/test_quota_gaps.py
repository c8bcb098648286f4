"""A station under a CFS quota, against one that is stepped millisecond by millisecond."""

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.queues.quota import fifo_ends, throttled_ends
from workbench.queues.stations import PERIOD_S, Consumption, Station, open_server

TICKS = 100
TICK_S = PERIOD_S / TICKS


def step_by_step(
    arrivals: list[int], works: list[int], quota: int, phase: int
) -> tuple[list[int], list[int]]:
    """End of each request and use of each period, in ticks: one thread, one tick at a time."""
    ends, used, now, i, left = [], [0], 0, 0, works[0]
    while i < len(arrivals):
        period = (now + phase) // TICKS
        used += [0] * (period + 1 - len(used))
        if arrivals[i] <= now and used[period] < quota:
            used[period] += 1
            left -= 1
        now += 1
        if left == 0:
            ends.append(now)
            i += 1
            left = works[i] if i < len(works) else 0
    return ends, used


requests = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 70)), min_size=1, max_size=40)


@settings(max_examples=examples(150), deadline=None)
@given(requests, st.integers(1, TICKS), st.integers(0, TICKS - 1))
def test_both_servers_agree_with_the_stepped_one(
    offered: list[tuple[int, int]], quota: int, phase: int
) -> None:
    arrivals = np.cumsum([gap for gap, _ in offered]).tolist()
    works = [work for _, work in offered]
    expected, used = step_by_step(arrivals, works, quota, phase)
    station = Station("f", cores=quota / TICKS, phase_s=-phase * TICK_S)

    ends, consumption = throttled_ends(
        station, np.array(arrivals) * TICK_S, np.array(works) * TICK_S
    )
    server = open_server(station)
    one_by_one = [
        server.serve(a * TICK_S, w * TICK_S) for a, w in zip(arrivals, works, strict=True)
    ]

    np.testing.assert_allclose(ends, np.array(expected) * TICK_S, atol=1e-9)
    np.testing.assert_allclose(one_by_one, ends, atol=1e-9)
    for spent in (consumption.used_s, server.consumption().used_s):
        size = max(spent.size, len(used))
        np.testing.assert_allclose(
            np.pad(spent, (0, size - spent.size)),
            np.pad(np.array(used, float) * TICK_S, (0, size - len(used))),
            atol=1e-9,
        )


def test_without_quota_it_is_lindleys_recursion() -> None:
    rng = np.random.default_rng(5)
    arrivals, works = np.cumsum(rng.exponential(1.2e-3, 5000)), rng.exponential(1e-3, 5000)
    ends, consumption = throttled_ends(Station("f"), arrivals, works)
    np.testing.assert_allclose(ends, fifo_ends(arrivals, works), atol=1e-9)
    assert consumption.used_s.sum() == pytest.approx(works.sum())
    assert not consumption.throttled_s.any()


def backlogged(cores: float, threads: int, seconds: float = 10.0) -> tuple[np.ndarray, Consumption]:
    """Ends of 1 ms requests that all wait from the start."""
    server = open_server(Station("f", cores=cores, threads=threads))
    ends = np.array([server.serve(0.0, 1e-3) for _ in range(round(seconds * cores * 1e3))])
    return ends, server.consumption()


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_more_threads_burn_the_quota_faster_and_stand_still_longer(threads: int) -> None:
    ends, consumption = backlogged(0.2, threads)
    into_period = np.mod(ends - 1e-9, PERIOD_S)
    assert into_period.max() == pytest.approx(20e-3 / threads, abs=1e-6)
    np.testing.assert_allclose(consumption.used_s, 20e-3, atol=1e-9)
    np.testing.assert_allclose(consumption.throttled_s[:-1], 0.1 - 20e-3 / threads, atol=1e-6)


@pytest.mark.parametrize("threads", [1, 4])
def test_half_the_quota_carries_half_the_load(threads: int) -> None:
    rates = [ends.size / ends.max() for ends, _ in (backlogged(q, threads) for q in (0.5, 0.25))]
    assert rates[1] / rates[0] == pytest.approx(0.5, rel=0.02)


def test_a_quota_that_the_threads_cannot_use_up_never_binds() -> None:
    _, consumption = backlogged(2.0, 2)
    assert not consumption.throttled_s.any()
    assert consumption.used_s[:-1] == pytest.approx(2 * PERIOD_S)


def test_unused_quota_does_not_accumulate() -> None:
    server = open_server(Station("f", cores=0.1))
    assert server.serve(0.95, 0.03) == pytest.approx(1.11 - 1e-12, abs=1e-6)


def test_counters_count_periods_with_use_and_those_that_were_throttled() -> None:
    consumption = Consumption(
        0.0, used_s=np.array([0.01, 0.0, 0.02]), throttled_s=np.array([0.0, 0.0, 0.05])
    )
    at = np.array([0.0, 0.1, 0.2, 0.3, 9.0])
    active, throttled = consumption.periods_until(at)
    assert active.tolist() == [0, 1, 1, 2, 2]
    assert throttled.tolist() == [0, 0, 0, 1, 1]
    assert consumption.cpu_until(at) == pytest.approx([0.0, 0.01, 0.01, 0.03, 0.03])
    assert consumption.throttled_until(np.array([0.25])) == pytest.approx(0.025)
