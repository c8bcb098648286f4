"""An engine that is killed in mid-sample: the next start and `reap` put a pod's CPU back."""

from __future__ import annotations

import copy

from driving import Workbench
from killing import killed_and_put_back
from running_system import RunningSystem
from stand_in_cluster import StandIn, pod_campaign


def test_a_pod_is_put_back(
    workbench: Workbench, system: RunningSystem, fronted: StandIn, full_length: bool
) -> None:
    workbench.variables["KUBECONFIG"] = str(fronted.kubeconfig())
    campaign = pod_campaign(workbench.root, system.port, samples=20)
    again = "pod shop/web-7d4b9, container app: its CPU is limit 800m, request 100m again"
    rounds = 20 if full_length else 2
    killed_and_put_back(workbench, campaign, lambda: copy.deepcopy(fronted.cpu), again, rounds)
