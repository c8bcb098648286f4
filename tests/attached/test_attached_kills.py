"""An engine that is killed in mid-sample: the next start and `reap` put everything back."""

from __future__ import annotations

from driving import Workbench
from killing import killed_and_put_back
from running_system import RunningSystem


def test_a_process_is_put_back(
    workbench: Workbench, system: RunningSystem, full_length: bool
) -> None:
    again = f"process {system.pid}: {system.quota.name} is 40000"
    campaign = system.campaign(workbench.root, samples=20)
    killed_and_put_back(workbench, campaign, system.settings, again, 20 if full_length else 2)
