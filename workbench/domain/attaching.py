"""Functions that run already: how each is found, and what may be done to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.domain.parameters import Sla

ATTACH = "attach"
"""The lab that measures functions that run already on this host."""
KUBERNETES = "kubernetes"
"""The lab that measures those that run already as pods of a cluster."""
ATTACHING = (ATTACH, KUBERNETES)
"""Labs that deploy nothing."""

FoundBy = Literal["pod", "container", "label", "compose", "pid", "cgroup"]
Means = Literal["cgroup", "resize", "fixed"]
"""How resources are set: its control group is written to, its pod is resized in place, or they
stay as they are."""
WhenWrong = Literal["end", "wait"]


@dataclass(frozen=True)
class Attached:
    """One function of a system that runs already."""

    name: str
    """Of the function in this campaign."""
    found_by: FoundBy
    found_at: str
    """`NAMESPACE/SELECTOR` of a pod's labels, a container's name or id, a label `KEY=VALUE`, a
    service or `PROJECT/SERVICE` of Compose, a process id, a path below the mount of the control
    groups."""
    url: str = ""
    """Where load enters; `{address}` is its container's, `{filesize}` what a configuration says."""
    past: str = ""
    """Where load ends, spoken to past the functions; empty: nowhere that is known."""
    max_load: float = 0.0
    """Load that is never passed, in the unit of the primary workload."""
    guard: Sla | None = None
    """What the running system has to hold while it is loaded; None: nothing is asked."""
    resources: Means = "cgroup"
    program: str = ""
    """What its process must be called; empty: anything."""
    container: str = ""
    """Of a pod; empty: its only one."""
    context: str = ""
    """Of the kubeconfig, for a pod; empty: the current one."""
    when_wrong: WhenWrong = "end"
    """Whether the campaign ends or waits where the function is gone, or another."""

    @property
    def found(self) -> str:
        """As a sentence names it: `container web`, `process 4711`."""
        noun = {
            "pod": "pod",
            "container": "container",
            "label": "the container labelled",
            "compose": "the Compose service",
            "pid": "process",
            "cgroup": "control group",
        }[self.found_by]
        return f"{noun} {self.found_at}"
