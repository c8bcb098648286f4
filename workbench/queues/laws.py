"""Bounds that every closed network keeps, whatever its service times."""

from __future__ import annotations

from collections.abc import Sequence


def saturated_throughput(demands_s: Sequence[float]) -> float:
    """X_max = 1 / max_k D_k in requests/s (Denning & Buzen 1978, bottleneck law).

    Parameters
    ----------
    demands_s : service demand of one request at each station, seconds of that station's time; a
        station that is allotted q cores and burns d CPU seconds has demand d/q.
    """
    return 1.0 / max(demands_s)


def throughput_bound(clients: float, demands_s: Sequence[float], idle_s: float = 0.0) -> float:
    """X(n) <= min(n / (R(1) + Z), X_max) in requests/s (Denning & Buzen 1978, METHOD.md 2).

    Parameters
    ----------
    clients : n.
    demands_s : as in `saturated_throughput`; they sum to R(1) where nothing waits.
    idle_s : think time Z and all pure delays.
    """
    return min(clients / (sum(demands_s) + idle_s), saturated_throughput(demands_s))
