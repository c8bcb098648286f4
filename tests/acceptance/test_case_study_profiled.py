"""Paper A's case study on the simulated lab: greedy scaling beside the estimate from profiles."""

from __future__ import annotations

import pytest
from driving import Workbench

LAB = ("--lab", "sim:host_cores=16", "--seed", "3", "--session", "case", "--headless")
ASKED = (
    "recommend", "case", "--chain", "study",
    "--sla", "p95<=5000ms @ concurrent=400, filesize=1MB", "--json",
)  # fmt: skip


def test_profiles_spare_the_iterations_of_greedy_scaling(
    workbench: Workbench, full_length: bool
) -> None:
    if not full_length:
        pytest.skip("a minute of CPU; run by make accept")
    workbench.run("run", "case-study", *LAB)
    found = workbench.json(*ASKED, "--verify", "--compare", "greedy", "--on-lab")
    assert found["met"]
    assert found["probability"] >= 0.95
    assert found["replicas"]["study-firewall"] == 4, "one carries 130 of 400 requests"
    assert found["allocation"]["study-firewall.vcpu"] == 1.0
    assert found["allocation"]["study-haproxy.vcpu"] in (0.5, 0.75)
    assert found["allocation"]["study-tinyproxy.vcpu"] in (2.0, 3.0)
    assert found["verified"]["met"]
    greedy = found["greedy"]
    assert greedy["met"]
    assert greedy["lab_iterations"] >= 8 > found["lab_iterations"] == 1
    assert greedy["lab_s"] > 3 * found["lab_s"]
    assert greedy["replicas"]["study-firewall"] >= 4
