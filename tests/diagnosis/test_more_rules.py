"""The further causes, each from the evidence for it and not from evidence that is nearly so."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from evidence_making import (
    QUIET,
    REQUESTS,
    SECONDS,
    alone,
    chained,
    known,
    measurement,
    usage,
)

from workbench.diagnosis.explaining import Known, diagnose
from workbench.diagnosis.readings import Reading, read
from workbench.diagnosis.rules import RULES
from workbench.domain.diagnoses import Verdict
from workbench.domain.observations import Observation
from workbench.domain.samples import Usage
from workbench.domain.topology import Series, Target, Vnf

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


BUSY = Usage(2.0, 1.0)


def of_neighbour(cores: float) -> tuple[Observation, ...]:
    others = Observation(0, "host", "others_cores", cores)
    return (Observation(0, "host", "burner_cores", cores, "stress-ng"), others)


def test_a_neighbour_is_found_where_threads_end_before_their_waiting_is_counted() -> None:
    """As tinyproxy's, one for each connection: the threads that are there hardly compute."""
    functions = {"tiny": usage(0.5, 0.6), "ha": usage(0.02, 0.04)}
    threads = by_thread("tiny", 0.02)

    def found(answer_s: float, others: float) -> Mapping[str, Verdict]:
        details = (*of_neighbour(others), *threads)
        return verdicts(chained((answer_s,), host=BUSY, functions=functions, details=details))

    brief = found(0.003, 1.8)["CPU wait by a neighbour"]
    assert brief.strength == pytest.approx(2 / 3, rel=0.05)
    assert "tiny end before" in " ".join(brief.evidence)
    assert "CPU wait by a neighbour" not in found(0.001, 1.8), "as long as its functions alone"
    assert "CPU wait by a neighbour" not in found(0.003, 0.6), "others use under half of the host"


def test_a_copy_that_takes_the_cpu_is_told_from_a_neighbour() -> None:
    tapped = Target("tapped", Series((Vnf("dump", "tcpdump", "passive"), Vnf("ha", "haproxy"))))
    waits = {"ha": {**QUIET, "cpu_wait_s": 2.0}, "dump": QUIET}
    busy = {"dump": usage(1.4, 1.0), "ha": usage(0.02, 0.04)}
    seen = read(measurement("tapped", busy, (0.02,), waits, host=BUSY, details=of_neighbour(0.1)))
    found = diagnose(Known(tapped, [seen], {"ha": [alone("ha")]}, {"ha": "ha"}), seen, RULES)
    assert [(v.cause, v.component) for v in found.verdicts] == [
        ("passive copy slows the chain", "dump")
    ]
    assert found.alone_ms == pytest.approx(0.5), "held against the functions in the way of traffic"
    assert {row.component for row in found.rows} == {"ha", "dump"}


def test_a_connection_that_is_opened_again_is_a_stall_unless_it_was_turned_away() -> None:
    some = (0.0005,) * 19 + (1.02,)
    lost = {"tcp_timeouts": 0.05 * N, "retransmitted": 0.05 * N}
    assert verdicts(chained(some, tiny=lost))["retransmission stall"].strength > 0.9
    full = {"listen_overflows": 0.05 * N}
    assert list(verdicts(chained(some, tiny=lost, ha=full))) == ["listen overflow"]


def test_a_window_that_cuts_segments_is_told_from_an_offload_that_is_off() -> None:
    """Both make packets small and many; segments are cut by who sends, packets by the hop."""
    small = {"rx_packets": 1600.0, "rx_bytes": 800_000.0}
    functions = {"tiny": usage(0.3, 0.6), "ha": usage(0.3, 0.6)}
    beside = {"tiny": alone("tiny"), "ha": alone("ha", segments_sent=10 * N)}

    def found(segments: float, packets: Mapping[str, float] = small) -> list[str]:
        ha = {"segments_sent": segments * N}
        seen = chained(SLOW, tiny=packets, ha=ha, functions=functions)
        return [v.cause for v in diagnose(known(seen, **beside), seen, RULES).verdicts]

    assert "offload off" in found(10)
    assert "small window" not in found(10)
    assert "small window" in found(20)
    assert "offload off" not in found(20)
    joined = {"rx_packets": 1600.0, "rx_bytes": 1600 * 2000.0}
    beside["tiny"] = alone("tiny", rx_packets=200.0, rx_bytes=200 * 16_000.0)
    beside["ha"] = alone("ha", segments_sent=10 * N, tx_packets=100.0, tx_bytes=1_600_000.0)
    assert "small window" in found(10, joined), "more than a frame: offloads are on"
    assert "offload off" not in found(10, joined)
