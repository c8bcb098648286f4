"""Requests through a network: both ways agree, and what couples requests does so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.queues.network import Network, Offered, Route, Works
from workbench.queues.passage import by_events, feed_forward
from workbench.queues.stations import Station

HOP_S = 1e-4


def chain(*cores: float, phase_s: float = -0.02, hold_s: float = 0.0, **extra: int) -> Network:
    """A source, functions with these quotas, a sink; the first function may hold answers."""
    functions = tuple(
        Station(f"f{i}", q, phase_s=phase_s * (i + 1), **extra) for i, q in enumerate(cores)
    )
    stations = (Station("source"), *functions, Station("sink"))
    holds = (0.0, hold_s, *([0.0] * len(cores)))
    return Network(stations, (Route(tuple(range(len(stations))), holds),), HOP_S)


def works(network: Network, mean_s: float, requests: int, seed: int = 3) -> Works:
    rng = np.random.default_rng(seed)
    seconds = rng.gamma(10.0, mean_s / 10.0, (len(network.stations), requests))
    seconds[0], seconds[-1] = 4e-5, 1.2e-5
    held = rng.random(requests) < 0.8
    return Works(seconds, np.zeros(requests, dtype=np.int64), held)


@settings(max_examples=40, deadline=None)
@given(
    load=st.floats(0.1, 1.2),
    quota=st.floats(0.1, 1.0),
    hold_s=st.sampled_from([0.0, 0.044]),
    seed=st.integers(0, 1000),
)
def test_feed_forward_agrees_with_events(
    load: float, quota: float, hold_s: float, seed: int
) -> None:
    network = chain(quota, 0.9, hold_s=hold_s)
    requests, rate = 600, load * quota / 3e-4
    brought = works(network, 3e-4, requests, seed)
    offered = Offered(np.arange(requests) / rate, connections=600, stop_s=requests / rate)
    ahead, events = feed_forward(network, brought, offered), by_events(network, brought, offered)
    if ahead is None:
        assert load > 0.5  # it gives up on overload only
        return
    np.testing.assert_allclose(ahead.start_s, events.start_s, atol=1e-9)
    np.testing.assert_allclose(ahead.end_s, events.end_s, atol=1e-9)
    for one, other in zip(ahead.consumption, events.consumption, strict=True):
        assert one.used_s.sum() == pytest.approx(other.used_s.sum())
        assert one.throttled_s.sum() == pytest.approx(other.throttled_s.sum(), abs=1e-9)


def test_feed_forward_leaves_coupled_requests_to_events() -> None:
    network = chain(0.25)
    brought = works(network, 3e-4, 2000)
    due = np.arange(2000) / 800.0  # below the capacity of 833/s, above what 2 connections carry
    assert feed_forward(network, brought, Offered(due, 2000, 2.5)) is not None
    assert feed_forward(network, brought, Offered(due, 2, 2.5)) is None
    assert feed_forward(network, brought, Offered(None, 2000, 2.5)) is None


def test_requests_in_flight_never_exceed_the_connections() -> None:
    network = chain(0.25)
    due = np.arange(4000) / 1600.0
    passage = by_events(network, works(network, 3e-4, 4000), Offered(due, 16, 2.5))
    begun = np.sort(passage.start_s)
    ended = np.sort(passage.end_s)
    in_flight = np.arange(1, begun.size + 1) - np.searchsorted(ended, begun, side="right")
    assert in_flight.max() == 16
    assert passage.start_s.size < due.size  # the rest was never sent


@pytest.mark.parametrize(("clients", "think_s"), [(1, 0.0), (8, 0.0), (40, 0.1)])
def test_littles_law_and_the_operational_bound(clients: int, think_s: float) -> None:
    network, seconds = chain(0.25), 20.0
    passage = by_events(
        network, works(network, 3e-4, 10_000), Offered(None, clients, seconds, think_s)
    )
    rate = passage.start_s.size / seconds
    cycle_s = (passage.end_s - passage.start_s).mean() + think_s
    assert rate * cycle_s == pytest.approx(clients, rel=0.02)
    alone_s = 4e-5 + 3e-4 + 1.2e-5 + 2 * HOP_S
    bound = min(clients / (alone_s + think_s), 0.25 / 3e-4)
    # Within 3 %, but for the gaps that requests below the bound still meet.
    assert 0.88 * bound < rate < 1.03 * bound


def test_a_held_answer_waits_for_the_acknowledgement_unless_it_is_later_anyway() -> None:
    network = chain(1.0, 1.0, hold_s=0.044)
    brought = works(network, 3e-4, 200)
    sparse = by_events(network, brought, Offered(np.arange(200) / 10.0, 64, 20.0))
    took = sparse.end_s - sparse.start_s
    assert took[brought.held].min() > 0.044
    assert took[brought.held].max() < 0.046
    assert took[~brought.held].max() < 0.003


def test_a_slow_branch_does_not_hold_up_the_fast_one() -> None:
    stations = (
        Station("source"),
        Station("fast"),
        Station("slow", 0.02),
        Station("sink"),
    )
    routes = (Route((0, 1, 3), (0.0,) * 3, 0.8), Route((0, 2, 3), (0.0,) * 3, 0.2))
    requests = 2000
    route = (np.random.default_rng(1).random(requests) < 0.2).astype(np.int64)
    seconds = np.tile([[4e-5], [2e-4], [4e-4], [1e-5]], requests)
    passage = by_events(
        Network(stations, routes, HOP_S),
        Works(seconds, route, np.zeros(requests, dtype=bool)),
        Offered(np.arange(requests) / 500.0, 500, 4.0),
    )
    took = passage.end_s - passage.start_s
    assert np.quantile(took[route == 0], 0.99) < 1e-3
    assert np.quantile(took[route == 1], 0.5) > 5e-3


def test_an_attempt_fails_at_its_time_out() -> None:
    network = chain(0.01)
    passage = by_events(network, works(network, 3e-4, 500), Offered(None, 50, 20.0, timeout_s=0.5))
    took = passage.end_s - passage.start_s
    assert passage.failed.any()
    assert took.max() == pytest.approx(0.5)
    assert took[passage.failed] == pytest.approx(0.5)


def test_refused_requests_end_at_once_and_never_reach_what_lies_behind() -> None:
    network = chain(0.1, 0.5, places=4)
    due = np.arange(3000) / 1500.0
    passage = by_events(network, works(network, 3e-4, 3000), Offered(due, 64, 2.0))
    assert 0.5 < passage.failed.mean() < 0.9
    assert (passage.end_s - passage.start_s)[passage.failed].max() < 1e-3
    behind = passage.consumption[2].used_s.sum()
    assert behind == pytest.approx(3e-4 * (~passage.failed).sum(), rel=0.05)


def test_no_load_is_no_crash() -> None:
    network = chain(0.25)
    brought = works(network, 3e-4, 10)
    nothing = feed_forward(network, brought, Offered(np.empty(0), 4, 1.0))
    assert nothing is not None
    assert nothing.start_s.size == 0
    assert by_events(network, brought, Offered(np.empty(0), 4, 1.0)).start_s.size == 0
