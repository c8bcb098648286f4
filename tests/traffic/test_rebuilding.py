"""Requests without a record are put back where they belong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.traffic.rebuild import assign_ticks, due_times, free_since


def test_due_times_of_a_constant_rate() -> None:
    assert due_times(4, 1.0).tolist() == [0.0, 0.25, 0.5, 0.75]
    assert due_times(0.1, 30.0).size == 3, "rounding adds no request"
    assert due_times(3, 0.5).size == 2


def test_a_burst_after_a_stall_keeps_its_order() -> None:
    # Ten a second; the timer slept from 0.2 s to 0.5 s and then released four at once.
    released = np.array([0.001, 0.101, 0.5001, 0.5002, 0.5003, 0.5004, 0.601])
    assert assign_ticks(released, 10.0).tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_what_has_no_record_leaves_a_gap() -> None:
    released = np.array([0.001, 0.101, 0.401, 0.501])
    assert assign_ticks(released, 10.0).tolist() == [0, 1, 4, 5]


@given(
    st.lists(st.booleans(), min_size=1, max_size=200),
    st.floats(1.0, 5000.0),
    st.integers(0, 2**32 - 1),
)
def test_punctual_requests_get_their_own_tick(kept: list[bool], rate: float, seed: int) -> None:
    ticks = np.flatnonzero(kept)
    late = np.random.default_rng(seed).uniform(0, 0.9 / rate, ticks.size)
    assert assign_ticks(ticks / rate + late, rate).tolist() == ticks.tolist()


@given(st.integers(1, 20), st.integers(0, 200), st.integers(0, 2**32 - 1))
def test_clients_in_flight_have_waited_since_they_were_free(
    clients: int, requests: int, seed: int
) -> None:
    """Against clients that are followed one by one; the first hangs in its first request."""
    generator = np.random.default_rng(seed)
    free = np.zeros(clients)
    starts, ends = [], []
    for time in generator.exponential(size=requests if clients > 1 else 0):
        client = 1 + int(np.argmin(free[1:]))
        starts.append(free[client])
        free[client] += time
        ends.append(free[client])
    assert free_since(np.array(starts), np.array(ends), clients) == pytest.approx(np.sort(free))
