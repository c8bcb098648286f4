"""Closed forms that simulations are held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.queues.laws import saturated_throughput

Floats = NDArray[np.float64]


def saturation_population(demands_s: Sequence[float], idle_s: float = 0.0) -> float:
    """N* = (Z + R(1)) · X_max, the clients at which the two bounds meet (METHOD.md 2)."""
    return (sum(demands_s) + idle_s) * saturated_throughput(demands_s)


@dataclass(frozen=True)
class MeanValues:
    """Solution of a closed network for 1 ... n clients.

    Attributes
    ----------
    throughput_rps : requests/s, shape (n,).
    response_s : time at the stations, think time excluded, shape (n,).
    queue : mean requests at each station, shape (n, stations).
    """

    throughput_rps: Floats
    response_s: Floats
    queue: Floats


def mean_values(demands_s: Sequence[float], think_s: float, clients: int) -> MeanValues:
    """Exact mean value analysis of a closed product-form network with one class of requests.

    R_k(n) = D_k (1 + Q_k(n-1)), X(n) = n / (Z + Σ R_k(n)), Q_k(n) = X(n) R_k(n)
    (Reiser & Lavenberg 1980, J. ACM 27(2), single-server fixed-rate stations).

    Parameters
    ----------
    demands_s : demand at each station, seconds; stations are FIFO and exponential.
    think_s : think time Z and pure delays.
    clients : n, at least 1.
    """
    demands = np.asarray(demands_s, dtype=float)
    queue = np.zeros((clients + 1, demands.size))
    throughput, response = np.empty(clients), np.empty(clients)
    for n in range(1, clients + 1):
        residence = demands * (1.0 + queue[n - 1])
        response[n - 1] = residence.sum()
        throughput[n - 1] = n / (think_s + response[n - 1])
        queue[n] = throughput[n - 1] * residence
    return MeanValues(throughput, response, queue[1:])


def finite_queue_loss(utilisation: float, places: int) -> float:
    """Share of requests that an M/M/1/K station refuses (Kleinrock 1975, section 3.6).

    Parameters
    ----------
    utilisation : offered load ρ = λ s.
    places : K, the request in service included.
    """
    if utilisation == 1.0:
        return 1.0 / (places + 1)
    full = utilisation**places
    return float((1.0 - utilisation) * full / (1.0 - full * utilisation))
