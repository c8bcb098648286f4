"""What threads did is told per request, alone beside chained, where a trace says so."""

from __future__ import annotations

import pytest
from evidence_making import CHAIN, QUIET, RATE, known, measurement, usage

from workbench.diagnosis.explaining import diagnose
from workbench.diagnosis.readings import Reading, read
from workbench.domain.observations import Observation

TRACED_S = 2.0


def traced(function: str, target: str, **states: float) -> Reading:
    """A sample of which 2 s were traced: seconds by state, and a wake-up for each request."""
    details = [
        *(Observation(0, function, "state_s", seconds, name) for name, seconds in states.items()),
        Observation(0, function, "state_changes", RATE * TRACED_S, "idle > waiting for CPU"),
        Observation(0, function, "state_changes", 50.0, "computing > waiting for CPU"),
        Observation(0, function, "state_changes", 10.0, "system call > waiting for CPU"),
        Observation(0, function, "traced_s", TRACED_S),
    ]  # fmt: skip
    names = [vnf.name for vnf in CHAIN.vnfs] if target == CHAIN.name else [function]
    functions = {name: usage(0.05, 0.1) for name in names}
    return read(
        measurement(target, functions, (0.0012,), dict.fromkeys(names, QUIET), details=details)
    )


def test_the_time_in_each_state_is_told_per_request_alone_beside_chained() -> None:
    seen = traced("tiny", CHAIN.name, computing=0.2, idle=8.0)
    found = diagnose(known(seen, tiny=traced("tiny", "tiny", computing=0.1)), seen, ())
    rows = {row.what: row for row in found.rows if row.component == "tiny" and "traced" in row.what}
    assert rows["traced: computing"].unit == "ms per request"
    assert rows["traced: computing"].chained == pytest.approx(1e3 * 0.2 / TRACED_S / RATE)
    assert rows["traced: computing"].alone == pytest.approx(1e3 * 0.1 / TRACED_S / RATE)
    assert rows["traced: idle"].chained == pytest.approx(40.0)
    assert rows["traced: idle"].alone == 0.0
    assert rows["traced: taken off its core"].chained == pytest.approx(0.3)
    assert rows["traced: idle > waiting for CPU"].chained == pytest.approx(1.0)
    assert "traced: throttled" not in rows


def test_without_a_trace_nothing_is_said_of_what_threads_did() -> None:
    assert not [row for row in diagnose(known(), _untraced(), ()).rows if "traced" in row.what]


def _untraced() -> Reading:
    names = [vnf.name for vnf in CHAIN.vnfs]
    functions = {name: usage(0.05, 0.1) for name in names}
    return read(measurement(CHAIN.name, functions, (0.0012,), dict.fromkeys(names, QUIET)))
