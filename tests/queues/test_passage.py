"""Requests through a network: both ways agree, and what couples requests does so."""

from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.queues.network import Network, Offered, Passage, Route, Works
from workbench.queues.simulation import by_events, feed_forward
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
    return Works(seconds, np.zeros(requests, dtype=np.int64), held, np.zeros(requests))


def agree(one: Passage, other: Passage) -> None:
    np.testing.assert_allclose(one.start_s, other.start_s, atol=1e-8)
    np.testing.assert_allclose(one.end_s, other.end_s, atol=1e-8)
    for ours, theirs in zip(one.consumption, other.consumption, strict=True):
        assert ours.used_s.sum() == pytest.approx(theirs.used_s.sum())
        assert ours.throttled_s.sum() == pytest.approx(theirs.throttled_s.sum(), abs=1e-7)


@settings(max_examples=examples(60), deadline=None)
@given(
    load=st.floats(0.1, 2.0),
    quota=st.floats(0.1, 1.0),
    hold_s=st.sampled_from([0.0, 0.044]),
    connections=st.sampled_from([16, 64, 600]),
    stretch=st.sampled_from([1.0, 0.9, 1.2]),
    seed=st.integers(0, 1000),
)
def test_feed_forward_agrees_with_events(
    load: float, quota: float, hold_s: float, connections: int, stretch: float, seed: int
) -> None:
    network = replace(chain(quota, 0.9, hold_s=hold_s), usual_s=1e-3, stretch=stretch)
    requests, rate = 600, load * quota / 3e-4
    brought = works(network, 3e-4, requests, seed)
    offered = Offered(np.arange(requests) / rate, connections, stop_s=requests / rate)
    ahead = feed_forward(network, brought, offered)
    if ahead is not None:
        agree(ahead, by_events(network, brought, offered))


@pytest.mark.parametrize(
    ("due_rps", "connections"), [(800.0, 2000), (2000.0, 64), (800.0, 64), (None, 64)]
)
def test_saturated_targets_need_no_events(due_rps: float | None, connections: int) -> None:
    network = chain(0.25)  # carries 833/s
    brought = works(network, 3e-4, 3000)
    due = np.arange(2400) / due_rps if due_rps else None
    offered = Offered(due, connections, stop_s=2.4)
    ahead = feed_forward(network, brought, offered)
    assert ahead is not None
    agree(ahead, by_events(network, brought, offered))


def test_a_few_clients_that_wait_for_each_answer_are_left_to_events() -> None:
    network = chain(0.25)
    brought = works(network, 3e-4, 2000)
    assert feed_forward(network, brought, Offered(None, 1, 2.0)) is None


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
        Works(seconds, route, np.zeros(requests, dtype=bool), np.zeros(requests)),
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


def test_back_pressure_fills_the_places_of_the_function_before() -> None:
    """The second function is the slow one. Refusing, it loses what it cannot carry itself; with
    back-pressure the first one refuses the same, and the second one loses nothing."""
    due = np.arange(3000) / 1500.0
    lost = {}
    for blocks in (False, True):
        first = Station("f0", places=8)
        second = Station("f1", 0.15, phase_s=-0.02, places=8, blocks=blocks)
        stations = (Station("source"), first, second, Station("sink"))
        network = Network(stations, (Route((0, 1, 2, 3), (0.0,) * 4),), HOP_S)
        passage = by_events(network, works(network, 3e-4, 3000), Offered(due, 64, 2.0))
        lost[blocks] = [int((passage.refused_by == i).sum()) for i in (1, 2)]
        assert passage.failed.sum() == sum(lost[blocks])
    assert lost[False][0] < 0.1 * lost[False][1]
    assert lost[True][1] == 0
    assert sum(lost[True]) == pytest.approx(sum(lost[False]), rel=0.1)


def test_two_equal_functions_lose_a_third_not_more() -> None:
    """METHOD.md 9: the second function sees what the first one let through."""
    network = chain(0.2, 0.2, places=30)
    rate = 1.5 * 0.2 / 3e-4
    due = np.arange(int(20.0 * rate)) / rate
    passage = by_events(network, works(network, 3e-4, due.size), Offered(due, 64, 20.0))
    assert passage.failed.mean() == pytest.approx(1 / 3, abs=0.03)


def test_what_is_lost_on_its_way_keeps_its_connection_until_the_time_out() -> None:
    network = chain(0.5)
    brought = replace(works(network, 3e-4, 2000), kept=100.0)
    due = np.arange(2000) / 500.0
    passage = by_events(network, brought, Offered(due, 10, 4.0, timeout_s=1.0))
    assert not passage.failed[:100].any()
    assert passage.failed[100:].all()
    assert passage.start_s.size == 100 + 10 * 4
    assert feed_forward(network, brought, Offered(due, 10, 4.0)) is None


def test_no_load_is_no_crash() -> None:
    network = chain(0.25)
    brought = works(network, 3e-4, 10)
    nothing = feed_forward(network, brought, Offered(np.empty(0), 4, 1.0))
    assert nothing is not None
    assert nothing.start_s.size == 0
    assert by_events(network, brought, Offered(np.empty(0), 4, 1.0)).start_s.size == 0
