"""A campaign: what is to be profiled and how, resolved from its descriptors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from workbench.domain.attaching import Attached
from workbench.domain.kpis import P95
from workbench.domain.parameters import (
    Combination,
    Configuration,
    LoadModel,
    Parameter,
    ParameterValue,
    PrimaryWorkload,
    Sla,
    grid,
)
from workbench.domain.topology import Target, VnfTemplate


@dataclass(frozen=True)
class TargetPlan:
    """A target, the resource parameters to profile it with and the range of its `wl`."""

    target: Target
    resources: tuple[Parameter, ...]
    primary: PrimaryWorkload
    combine: Combination = "every"
    settings: tuple[Parameter, ...] = ()
    """Settings of its functions (`firewall.rules`), each with all its others."""
    only: tuple[str, ...] = ()
    """Keys of the configurations that are meant, where a campaign is spread over several hosts;
    empty: all."""
    sure_to: float = 0.0
    """Of a chain that a policy made: its capacity need not be measured where it is forecast to
    this share; 0: it is measured."""


@dataclass(frozen=True)
class SamplingPlan:
    """Which sampler asks, and when it stops (paper B, Algorithms 1 and 2)."""

    method: str = "bisection"
    max_samples: int = 10
    """Per configuration."""
    epsilon: float = 0.01
    """Stop when the change of RMSE falls below this share of the KPI's range (METHOD.md 8)."""
    repetitions: int = 1
    model: str = "gaussian-process"
    """Behind dRMSE and the curves of single configurations; a target's is `profile_model`."""
    options: Mapping[str, ParameterValue] = field(default_factory=dict)
    """For the sampler; a plugin documents its own."""


@dataclass(frozen=True)
class WindowPlan:
    """How long one operating point is driven (METHOD.md 1 and 6)."""

    warmup_s: float = 1.0
    window_s: float = 3.0
    timeout_s: float = 30.0
    """Lab time after which a point that does not settle is `unsteady`."""
    request_timeout_s: float = 20.0
    """After this a request counts as unfinished, right-censored."""
    interval: float = 0.0
    """Windows are added until the KPI's 95 % interval is at most this half width, relative to its
    value; 0 asks for none. The factor that pays for looking is in `measuring.narrowing`."""


@dataclass(frozen=True)
class Metric:
    """A metric to record: a template over a probe, with its unit (paper B, Listing 3)."""

    name: str
    template: str
    unit: str
    probe: str = ""


ALWAYS_FIRING = ("Watchdog", "InfoInhibitor")
"""Alerts that fire by design, so that their silence is noticed."""


EvidenceKind = Literal["kernel", "perf", "trace"]
"""What is collected beside usage: what the kernel counts anyway; besides, of each function, events
of `perf stat`, or two seconds of every sample traced by the kernel."""


@dataclass(frozen=True)
class MetricsServer:
    """A Prometheus that metrics are asked of. `url` and `token` may be `${NAME}`, never stored."""

    name: str
    url: str
    scrape_interval_s: float = 1.0
    token: str = ""
    alerts: bool = True
    """Whether an alert that fires during a sample invalidates it."""
    ignored_alerts: tuple[str, ...] = ALWAYS_FIRING


@dataclass(frozen=True)
class Agent:
    """How to reach an infrastructure (paper B, Listing 1). `url` may be `${NAME}`, never stored."""

    name: str
    kind: str = "docker"
    url: str = ""


@dataclass(frozen=True)
class Manager:
    """Who configures one VNF, source or sink: through which agent, on which cores."""

    name: str
    agent: str
    cpuset: str = ""

    @property
    def cores(self) -> tuple[int, ...]:
        """`0-2,5` as core numbers; none where it is pinned nowhere."""
        found: list[int] = []
        for part in filter(None, self.cpuset.split(",")):
            low, _, high = part.strip().partition("-")
            found.extend(range(int(low), int(high or low) + 1))
        return tuple(found)


@dataclass(frozen=True)
class InitializationCommand:
    """Run in the manager's container each time a new configuration is set; argv, no shell."""

    manager: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Campaign:
    """One campaign, resolved: all names are looked up, all values are in their units."""

    name: str
    targets: tuple[TargetPlan, ...]
    templates: tuple[VnfTemplate, ...]
    """Every template that a target names, source and sink included."""
    workload: tuple[Parameter, ...]
    load: LoadModel
    generator: str = ""
    """Name of the generator that is to drive; empty: the pre-flight chooses."""
    kpi: str = P95
    """The KPI that the sampler models."""
    kpi_max: float = 1000.0
    """KPI ceiling: above it nothing is modelled, in the KPI's unit."""
    loss_goal: float = 0.005
    """Long-run share of unserved requests that `capacity` tolerates (METHOD.md 2)."""
    sla: Sla | None = None
    sampling: SamplingPlan = field(default_factory=SamplingPlan)
    windows: WindowPlan = field(default_factory=WindowPlan)
    budget_s: float | None = None
    """After which no new sample is begun: seconds of the clock, of a simulated lab its own."""
    summary: str = ""
    metrics: tuple[Metric, ...] = ()
    agents: tuple[Agent, ...] = ()
    managers: tuple[Manager, ...] = ()
    initialization: tuple[InitializationCommand, ...] = ()
    profile_model: str = "auto"
    """Method of each target's model; `auto`: the best by cross-validation."""
    lab: str = ""
    """The lab that it is meant for, with its options; empty: none in particular."""
    attached: tuple[Attached, ...] = ()
    """Its functions, where they run already."""
    servers: tuple[MetricsServer, ...] = ()
    """Which the metrics of their probes are asked of."""
    evidence: EvidenceKind = "kernel"

    @property
    def site_metrics(self) -> tuple[Metric, ...]:
        """Those that a server of the site is asked for."""
        asked = {server.name for server in self.servers}
        return tuple(metric for metric in self.metrics if metric.probe in asked)

    def template(self, name: str) -> VnfTemplate:
        """Raises `KeyError` where there is none of that name."""
        found = next((t for t in self.templates if t.name == name), None)
        if found is None:
            raise KeyError(name)
        return found

    @property
    def unprofiled(self) -> Mapping[str, tuple[str, ...]]:
        """Of each chain that is a target: the templates of its functions that are no target of
        their own, so that nothing can predict it from their profiles."""
        targets = [plan.target for plan in self.targets]
        alone = {target.vnfs[0].template for target in targets if len(target.vnfs) == 1}
        missing = {
            target.name: tuple(dict.fromkeys(v.template for v in target.vnfs))
            for target in targets
            if len(target.vnfs) > 1
        }
        left = {
            name: tuple(template for template in templates if template not in alone)
            for name, templates in missing.items()
        }
        return {name: templates for name, templates in left.items() if templates}

    def beyond_alone(self, chain: str = "") -> Mapping[str, tuple[float, ...]]:
        """By `template.resource`, ascending: what a chain, or any, allots that is less or more than
        all that the function gets as a target of its own: its profile does not reach there."""
        alone = {p.target.vnfs[0].template: p for p in self.targets if len(p.target.vnfs) == 1}
        found: dict[str, set[float]] = {}
        for plan in self.targets:
            kinds = {vnf.name: vnf.template for vnf in plan.target.vnfs}
            meant = len(kinds) > 1 and chain in ("", plan.target.name)
            for parameter in plan.resources if meant else ():
                owner, _, resource = parameter.key.rpartition(".")
                own = alone[kinds[owner]].resources if kinds[owner] in alone else ()
                known = [
                    amount
                    for one in own
                    if one.key.rpartition(".")[2] == resource
                    for amount in one.amounts
                ]
                if known:
                    found.setdefault(f"{kinds[owner]}.{resource}", set()).update(
                        v for v in parameter.amounts if not min(known) <= v <= max(known)
                    )
        return {key: tuple(sorted(beyond)) for key, beyond in found.items() if beyond}

    def find_target(self, target: str) -> TargetPlan | None:
        """None where this campaign has no such target: it may have been another's."""
        return next((p for p in self.targets if p.target.name == target), None)

    def ceiling(self, kpi: str) -> float:
        """`kpi_max`, which is one of the campaign's own KPI alone; infinite for any other."""
        return self.kpi_max if kpi == self.kpi else math.inf

    def target_plan(self, target: str) -> TargetPlan:
        """Raises `KeyError` where there is none of that name."""
        found = self.find_target(target)
        if found is None:
            raise KeyError(target)
        return found

    def cores_of(self, target: Target) -> Mapping[str, frozenset[int]]:
        """By function of a target, the cores that its manager pins it to; without the others."""
        pinned = {one.name: frozenset(one.cores) for one in self.managers if one.cpuset}
        return {vnf.name: pinned[vnf.name] for vnf in target.vnfs if vnf.name in pinned}

    def given(self, plan: TargetPlan) -> tuple[Parameter, ...]:
        """What a target is measured under and nobody allots: workload parameters and settings."""
        return (*self.workload, *plan.settings)

    def configurations(self, plan: TargetPlan) -> tuple[Configuration, ...]:
        every = grid(plan.resources, self.given(plan), plan.combine)
        return tuple(c for c in every if not plan.only or c.key in plan.only)
