"""What several hosts would take, by plan: none idles for long, and more are not always worth it."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign
from workbench.domain.sessions import HostsPlan
from workbench.engine.runs.sharing_out import enough, over_hosts
from workbench.labs.base import LabCosts
from workbench.paths import Workspace

COSTS = LabCosts(5.0, 0.5, 0.3)
CAMPAIGN = """
kind: campaign
targets:
  - vnf: tinyproxy
    resource_parameters:
      - {vnf: tinyproxy, name: vcpu, values: [%s]}
workload_parameters:
  - {name: filesize, values: [10 kB]}
primary_workload_parameter: {name: rate, range: [100/s, 600/s], scale: log}
load: {kind: open, arrivals: constant, connections: 32}
kpi: p95
sampling: {method: uniform, max_samples: 10, repetitions: 1}
windows: {warmup: 1 s, window: 3 s}
lab: sim
"""


def campaign(folder: Path, configurations: int) -> Campaign:
    path = folder / "c.yaml"
    path.write_text(CAMPAIGN % ", ".join(f"{20 + number}%" for number in range(configurations)))
    return load_campaign(str(path), workspace=Workspace(folder)).campaign


def test_hosts_share_a_large_campaign_and_a_small_one_only_so_far(tmp_path: Path) -> None:
    large, for_large = over_hosts(campaign(tmp_path, 60), "sim", COSTS, 1, 12)
    assert [plan.hosts for plan in large] == [1, 2, 4, 8, 12]
    assert large[0].lab_s == large[0].share_s
    assert all(plan.lab_s > plan.share_s for plan in large[1:])
    assert large[1].lab_s < 1.1 * large[1].share_s
    assert [plan.shards for plan in large[1:3]] == [6, 12]

    small, for_small = over_hosts(campaign(tmp_path, 2), "sim", COSTS, 1, 12)
    assert small[2].lab_s == pytest.approx(small[-1].lab_s)  # two configurations, two shards
    assert for_small.hosts <= 2
    assert for_large.hosts > 4


def test_how_many_are_enough_does_not_follow_from_how_many_were_asked_for(tmp_path: Path) -> None:
    eight = campaign(tmp_path, 8)
    found = [over_hosts(eight, "sim", COSTS, 1, most) for most in (1, 4, 5, 16)]
    assert {plan.hosts for _, plan in found} == {8}  # each one more of eight shards
    assert [plan.hosts for plan in found[1][0]] == [1, 2, 4]
    of_four, of_eight = found[1][0][-1], found[1][1]
    assert of_eight.lab_s < 0.9 * of_four.lab_s
    assert of_eight == found[3][0][3]


def test_enough_are_those_of_which_no_more_save_a_tenth() -> None:
    plans = [
        HostsPlan(n, n, s, 100.0 / n)
        for n, s in ((1, 100.0), (2, 55.0), (4, 52.0), (8, 30.0), (16, 28.0))
    ]
    assert enough(plans).hosts == 8  # four save little over two, and eight do not
    assert enough(plans[:3]).hosts == 2
    assert enough(plans[:1]).hosts == 1
