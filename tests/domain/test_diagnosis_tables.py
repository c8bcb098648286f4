"""What nobody counted is told in a line, however much it is."""

from __future__ import annotations

from workbench.domain.diagnosis_tables import counters_named
from workbench.domain.observations import OBSERVABLES


def test_a_few_counters_are_named_and_many_are_counted_by_what_they_are_of() -> None:
    assert counters_named(["cpu_wait_s", "delayed_acks"]) == "cpu_wait_s, delayed_acks"
    many = counters_named(list(OBSERVABLES))
    of_cpu = sum(one.layer == "cpu" for one in OBSERVABLES.values())
    assert many.startswith(f"{len(OBSERVABLES)} counters ({of_cpu} of CPU, 16 of memory, ")
    assert many.endswith("; `workbench why --json` names them)")
    assert len(many) < 200
    assert "1 of others" in counters_named(["of_a_plugin", *list(OBSERVABLES)[:4]])
