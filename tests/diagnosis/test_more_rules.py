"""The further causes, each from the evidence for it and not from evidence that is nearly so."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from evidence_making import REQUESTS, SECONDS, alone, chained, known, usage

from workbench.diagnosis.explaining import diagnose
from workbench.diagnosis.readings import Reading
from workbench.diagnosis.rules import RULES
from workbench.domain.diagnoses import Verdict
from workbench.domain.observations import Observation
from workbench.domain.samples import Usage

WAITS = (0.0435, 0.044, 0.0445)
SLOW = (0.01,)
N = float(REQUESTS)


def verdicts(seen: Reading) -> Mapping[str, Verdict]:
    found = diagnose(known(seen), seen, RULES)
    assert not found.failed
    return {verdict.cause: verdict for verdict in found.verdicts}


def of_host(**counts: float) -> tuple[Observation, ...]:
    return tuple(Observation(0, "host", name, value, "x") for name, value in counts.items())


def by_thread(function: str, *cores: float) -> tuple[Observation, ...]:
    return tuple(
        Observation(0, function, "thread_cpu_s", c * SECONDS, f"thread {n}")
        for n, c in enumerate(cores)
    )


@pytest.mark.parametrize(
    ("cause", "where", "fires", "silent"),
    [
        ("small window", "ha", {"zero_windows": 0.1 * N}, {"zero_windows": 0.005 * N}),
        (
            "ephemeral ports used up",
            "ha",
            {"time_wait": 54_000.0, "connections_failed": 0.01 * N},
            {"time_wait": 54_000.0, "connections_failed": 0.0},
        ),
        (
            "disk wait",
            "tiny",
            {"pressure_io_s": 0.5 * SECONDS, "disk_operations": 40.0},
            {"pressure_io_s": 0.5 * SECONDS, "disk_operations": 0.0},
        ),
        (
            "disk wait",
            "ha",
            {"pressure_io_s": 0.5 * SECONDS, "disk_operations": 40.0},
            {"pressure_io_s": 0.1 * SECONDS, "disk_operations": 40.0},
        ),
        (
            "offload off",
            "ha",
            {"rx_packets": 1600.0, "rx_bytes": 800_000.0},
            {"rx_packets": 1600.0, "rx_bytes": 1_600_000.0},
        ),
    ],
)
def test_counters_of_a_function_name_a_cause_and_nearly_so_do_not(
    cause: str, where: str, fires: Mapping[str, float], silent: Mapping[str, float]
) -> None:
    other = {"functions": {"tiny": usage(0.3, 0.6), "ha": usage(0.3, 0.6)}}
    found = verdicts(chained(SLOW, **{where: fires}, **other))  # type: ignore[arg-type]
    assert found[cause].component == where
    assert cause not in verdicts(chained(SLOW, **{where: silent}, **other))  # type: ignore[arg-type]


def test_packets_that_a_neighbour_writes_small_by_itself_are_no_matter_of_offloads() -> None:
    """As tinyproxy in front of a client that haproxy is (`chain-real`)."""
    small = {"rx_packets": 1600.0, "rx_bytes": 800_000.0}
    seen = chained(SLOW, ha=small, functions={"tiny": usage(0.3, 0.6), "ha": usage(0.3, 0.6)})
    writer = alone("tiny", tx_packets=1600.0, tx_bytes=700_000.0)
    found = [v.cause for v in diagnose(known(seen, tiny=writer), seen, RULES).verdicts]
    assert "small writes of a neighbour" in found
    assert "offload off" not in found
    large = alone("tiny", tx_packets=800.0, tx_bytes=1_600_000.0)
    found = [v.cause for v in diagnose(known(seen, tiny=large), seen, RULES).verdicts]
    assert "offload off" in found
    assert "small writes of a neighbour" not in found


def test_nagle_is_the_senders_half_and_told_after_the_acknowledgement() -> None:
    small = {"tx_packets": 4 * N, "tx_bytes": 4 * N * 300}
    found = verdicts(chained(WAITS, tiny=small, ha={"delayed_acks": N}))
    assert list(found) == ["delayed acknowledgement", "Nagle's algorithm"]
    assert found["Nagle's algorithm"].component == "tiny"
    full = {"tx_packets": 4 * N, "tx_bytes": 4 * N * 1400}
    assert list(verdicts(chained(WAITS, tiny=full, ha={"delayed_acks": N}))) == [
        "delayed acknowledgement"
    ]
    assert "Nagle's algorithm" not in verdicts(chained((0.001,), tiny=small)), "nobody waits"


def test_a_full_table_of_connections_and_one_that_is_not() -> None:
    full = verdicts(chained(SLOW, details=of_host(conntrack_used=262_100.0)))
    assert full["conntrack table full"].component == "host"
    half = verdicts(chained(SLOW, details=of_host(conntrack_used=131_000.0)))
    assert "conntrack table full" not in half


def test_stolen_cpu_is_the_hypervisors() -> None:
    busy = Usage(1.0, 0.5)
    found = verdicts(chained(SLOW, host=busy, details=of_host(stolen_s=0.4 * SECONDS)))
    assert found["CPU taken by the hypervisor"].strength == pytest.approx(0.2)
    little = verdicts(chained(SLOW, host=busy, details=of_host(stolen_s=0.02 * SECONDS)))
    assert "CPU taken by the hypervisor" not in little


def test_a_quota_that_stops_bursts_is_told_from_one_that_is_too_small() -> None:
    name = "quota where whole cores would do"
    bursts = {"tiny": usage(0.15, 0.3, 0.5), "ha": usage(0.02, 0.04)}
    found = verdicts(chained(SLOW, functions=bursts))
    assert list(found) == ["quota throttling", name], "it follows from the quota"
    small = {"tiny": usage(0.48, 0.96, 0.5), "ha": usage(0.02, 0.04)}
    assert name not in verdicts(chained(SLOW, functions=small))


def test_threads_that_fill_their_cores_are_too_few_and_idle_ones_are_not() -> None:
    name = "fewer threads than cores"
    one = {"tiny": usage(0.05, 0.1), "ha": usage(0.98, 0.49)}
    counts = {"threads": 1.0, "thread_cpu_s": 0.0}
    busy = by_thread("ha", 0.98)
    found = verdicts(chained(SLOW, ha=counts, functions=one, details=busy, host=Usage(1.3, 0.3)))
    assert (found[name].component, "one hot thread" in found) == ("ha", False)
    idle = {"tiny": usage(0.05, 0.1), "ha": usage(0.3, 0.15)}
    rest = by_thread("ha", 0.3)
    assert name not in verdicts(chained(SLOW, ha=counts, functions=idle, details=rest))
    right = {"tiny": usage(0.05, 0.1), "ha": usage(0.98, 0.98)}
    assert name not in verdicts(chained(SLOW, ha=counts, functions=right, details=busy))


def test_many_threads_spend_a_small_quota_together() -> None:
    name = "more threads than quota"
    stopped = {"tiny": usage(0.05, 0.1), "ha": usage(0.5, 1.0, 0.8)}
    counts = {"threads": 4.0, "thread_cpu_s": 0.0}
    four = by_thread("ha", 0.13, 0.13, 0.12, 0.12)
    found = verdicts(chained(SLOW, ha=counts, functions=stopped, details=four))
    assert list(found) == ["quota throttling", name]
    assert found[name].strength == pytest.approx(0.8 * (1 - 0.5 / 4))
    one = by_thread("ha", 0.5)
    assert name not in verdicts(chained(SLOW, ha=counts, functions=stopped, details=one))
    free = {"tiny": usage(0.05, 0.1), "ha": usage(0.5, 1.0)}
    assert name not in verdicts(chained(SLOW, ha=counts, functions=free, details=four))
