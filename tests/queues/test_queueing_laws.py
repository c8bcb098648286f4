"""Closed forms against each other and against request-level simulation."""

import numpy as np
import pytest
from closed_forms import finite_queue_loss, mean_values, saturation_population

from workbench.queues.laws import throughput_bound
from workbench.queues.network import Network, Offered, Passage, Route, Works
from workbench.queues.service import ServiceTime
from workbench.queues.simulation import simulate
from workbench.queues.stations import Station


def exponential_network(
    demands_s: list[float], offered: Offered, requests: int, places: int | None = None
) -> Passage:
    rng = np.random.default_rng(11)
    exponential = [ServiceTime(d, 1.0, "gamma").draw(rng, requests) for d in demands_s]
    stations = tuple(Station(f"s{i}", places=places) for i in range(len(demands_s)))
    route = Route(tuple(range(len(demands_s))), (0.0,) * len(demands_s))
    nothing = np.zeros(requests)
    works = Works(np.array(exponential), nothing.astype(int), nothing.astype(bool), nothing)
    return simulate(Network(stations, (route,)), works, offered)


def test_balanced_network_has_the_known_throughput() -> None:
    solution = mean_values([0.01] * 3, 0.0, 8)
    n = np.arange(1, 9)
    np.testing.assert_allclose(solution.throughput_rps, n / (0.01 * (n + 2)))
    np.testing.assert_allclose(solution.throughput_rps * solution.response_s, n)


def test_bounds_hold_and_meet_at_the_saturation_population() -> None:
    demands, think = [0.004, 0.010, 0.002], 0.05
    solution = mean_values(demands, think, 40)
    bounds = [throughput_bound(n, demands, think) for n in range(1, 41)]
    assert (solution.throughput_rps <= np.array(bounds) + 1e-9).all()
    assert solution.throughput_rps[-1] == pytest.approx(100.0, rel=1e-3)
    assert saturation_population(demands, think) == pytest.approx(6.6)


@pytest.mark.parametrize("clients", [1, 3, 10])
def test_closed_simulation_agrees_with_mean_value_analysis(clients: int) -> None:
    demands, seconds = [0.001, 0.002, 0.0005], 200.0
    passage = exponential_network(demands, Offered(None, clients, seconds, 0.003), 100_000)
    solution = mean_values(demands, 0.003, clients)
    response = (passage.end_s - passage.start_s).mean()
    assert passage.start_s.size / seconds == pytest.approx(solution.throughput_rps[-1], rel=0.02)
    assert response == pytest.approx(solution.response_s[-1], rel=0.03)


def test_finite_buffer_refuses_as_the_closed_form_says() -> None:
    rng, requests = np.random.default_rng(2), 60_000
    due = np.cumsum(rng.exponential(1.0 / 900.0, requests))
    passage = exponential_network([0.001], Offered(due, 10_000, np.inf), requests, places=5)
    assert passage.failed.mean() == pytest.approx(finite_queue_loss(0.9, 5), rel=0.05)
    assert finite_queue_loss(1.0, 4) == pytest.approx(0.2)


@pytest.mark.parametrize("law", ["lognormal", "gamma"])
def test_service_times_have_their_mean_and_variation(law: str) -> None:
    drawn = ServiceTime(3e-4, 0.4, law).draw(np.random.default_rng(1), 100_000)  # type: ignore[arg-type]
    assert drawn.mean() == pytest.approx(3e-4, rel=0.01)
    assert drawn.std() / drawn.mean() == pytest.approx(0.4, rel=0.02)
    assert (ServiceTime(3e-4).draw(np.random.default_rng(1), 3) == 3e-4).all()
