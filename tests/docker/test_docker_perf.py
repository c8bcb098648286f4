"""`evidence: perf` on the Docker lab: perf counts the control group of a function."""

from __future__ import annotations

import pytest
from docker_targets import OpenLab, configuration, ignore, point, target

from workbench.domain.campaign import WindowPlan
from workbench.domain.parameters import LoadModel
from workbench.measuring.judging import Terms, judge

pytestmark = [pytest.mark.docker, pytest.mark.unhurried, pytest.mark.needs("perf")]

HAPROXY = target("haproxy")
QUARTER = configuration(haproxy=0.25)
SECONDS = 5.0


async def test_its_time_on_a_core_is_that_of_its_threads(open_lab: OpenLab) -> None:
    load = LoadModel("closed")
    lab = await open_lab(load, HAPROXY, evidence="perf")
    await lab.deploy(HAPROXY, QUARTER)
    at = point(HAPROXY, QUARTER, 4)
    drive = await lab.drive(at, SECONDS, ignore)
    terms = Terms(load, WindowPlan(), None, "p95_ms")
    rows = judge([drive], at, terms, started_at=0.0, lab_s=SECONDS).measurement.observations
    of_it = [row for row in rows if row.component == "haproxy" and row.value is not None]
    on_core_s = sum(row.value or 0.0 for row in of_it if row.name == "perf_task_s")
    of_threads_s = sum(row.value or 0.0 for row in of_it if row.name == "thread_cpu_s")
    assert of_threads_s > 0.1, "it answered four clients at a quarter of a core"
    assert on_core_s == pytest.approx(of_threads_s, rel=0.35)
    assert any(row.name == "perf_switches" and row.value for row in of_it)
