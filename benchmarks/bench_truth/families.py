"""Trap families: each a function, a load and options of the simulated lab (METHOD.md 11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.domain.campaign import Campaign, SamplingPlan, TargetPlan, WindowPlan
from workbench.domain.parameters import LoadModel, Parameter, PrimaryWorkload, Sla
from workbench.domain.profiles import BreakpointRule
from workbench.domain.topology import Node, Series, Target, Vnf, VnfTemplate

SCORED: tuple[BreakpointRule, ...] = ("capacity", "knee", "sla", "cpu")
"""`covariance` is a baseline (METHOD.md 7.5), and nobody answers for its intervals."""

SERVICE_US = 1000.0
"""At a quarter of a core: 250 requests/s, so that a window holds a thousand requests and not more
than a statistic needs."""
SPREAD = 1.6
"""Capacities are log-uniform within this factor: off every grid, another one in every world."""
WORLDS = 5
"""Different functions of each family; seed s plays in world s mod `WORLDS`."""
SAMPLES = 12
"""Per configuration (issue: at most 12)."""

METHOD = "blocks"
"""The sampler that is judged."""
BASELINE = "bisection"
"""Without repetition: what the interval score is compared with."""

OPEN = LoadModel("open")
QUOTAS = (0.15, 0.25)
FUNCTION: Node = Vnf("function", "function")
CHAIN: Node = Series((Vnf("first", "function"), Vnf("second", "function")))


@dataclass(frozen=True)
class Family:
    """One trap.

    Attributes
    ----------
    trap : the words of METHOD.md 11.
    options : of the simulated lab, as after `sim:`.
    vcpu : the two configurations.
    wl : range of the primary workload: requests/s, or clients.
    held_out : never looked at while a rule or a sampler was tuned. The first three of these
        (`interference`, `scalability`, `everything`) have been looked at since, and are not.
    """

    name: str
    trap: str
    options: str = ""
    function: Mapping[str, float] = field(default_factory=dict)
    graph: Node = FUNCTION
    load: LoadModel = OPEN
    vcpu: tuple[float, ...] = QUOTAS
    wl: tuple[float, float] = (20.0, 1000.0)
    sla_ms: float = 50.0
    windows: WindowPlan = field(default_factory=WindowPlan)
    held_out: bool = False

    def campaign(self, method: str = METHOD, samples: int = SAMPLES) -> Campaign:
        """The family as a campaign of one target."""
        target = Target(self.name, self.graph)
        closed = self.load.kind == "closed"
        primary = (
            PrimaryWorkload("concurrency", *self.wl, unit="clients", integer=True)
            if closed
            else PrimaryWorkload("rate", *self.wl, unit="/s")
        )
        resources = tuple(
            Parameter(f"{vnf.name}.vcpu", self.vcpu if position == 0 else self.vcpu[-1:], "cores")
            for position, vnf in enumerate(target.vnfs)
        )
        stand_in = {"service_us": SERVICE_US, "per_kb_us": 0.0, **self.function}
        return Campaign(
            name=self.name,
            targets=(TargetPlan(target, resources, primary),),
            templates=(
                VnfTemplate("function", image="none", simulated=stand_in),
                VnfTemplate("source", role="source", image="none"),
                VnfTemplate("sink", role="sink", image="none"),
            ),
            workload=(),
            load=self.load,
            sla=Sla("p95_ms", self.sla_ms, text=f"p95<={self.sla_ms:g}ms"),
            sampling=SamplingPlan(method=method, max_samples=samples),
            windows=self.windows,
        )

    def lab_options(self, seed: int) -> str:
        """Options of the lab under that seed, its world among them."""
        world = f"world={seed % WORLDS},capacity_spread={SPREAD}"
        return f"{world},{self.options}" if self.options else world


def closed(think_s: float) -> LoadModel:
    return LoadModel("closed", think_time_s=think_s)


FAMILIES: tuple[Family, ...] = (
    Family("default", "the lab as it comes: quota gaps, one thread"),
    Family("threads", "quota gaps with 4 threads", function={"threads": 4}),
    Family("gaps-apart", "two functions' gaps, independent", graph=CHAIN),
    Family("gaps-in-phase", "two functions' gaps, in phase", "in_phase=1", graph=CHAIN),
    Family("closed", "closed loop, Z = 0", load=closed(0.0), wl=(1, 64)),
    Family("closed-z0.1", "closed loop, Z = 0.1 s", load=closed(0.1), wl=(1, 250)),
    Family("closed-z1", "closed loop, Z = 1 s", load=closed(1.0), wl=(10, 700)),
    Family(
        "closed-z1-long",
        "closed loop, Z = 1 s, measured for 20 s",
        load=closed(1.0),
        wl=(10, 700),
        windows=WindowPlan(window_s=20.0, timeout_s=90.0),
    ),
    Family("poisson", "Poisson arrivals", load=LoadModel("open", arrivals="poisson")),
    Family(
        "windows",
        "window log-sd 0.05 (X) and 0.12 (p95)",
        "window_sd=0.05,tail_sd=0.12",
    ),
    Family("student", "Student t4", "window_sd=0.05,tail_sd=0.12,freedom=4"),
    Family("outliers", "5 % outliers x2", "outlier_share=0.05,outlier_factor=2"),
    Family("restarts", "restart sd 5 %", "restart_sd=0.05"),
    Family("drift", "AR(1) drift sd 8 % with 5 min", "drift_sd=0.08,drift_s=300"),
    Family("step", "a step of 12-30 % between passes", "pass_step_low=0.12,pass_step_high=0.3"),
    Family("stalls", "a 2 s stall an hour", "hangs_per_hour=1,hang_s=2"),
    Family("band", "10 % of windows in a second band", "band_share=0.1,band_factor=0.8"),
    Family("decay", "decays 40 % at twice the load", "function.decay=0.4"),
    Family(
        "hysteresis", "recovers only below 0.7x", "function.decay=0.4,function.recovers_below=0.7"
    ),
    Family("knee-30", "knee width 30 %", "function.knee_width=0.3"),
    Family("plateau", "usage plateau at 80 %", "function.plateau=0.8"),
    Family(
        "stops",
        "capacity that stops at 1 vCPU",
        "function.stops_at=1",
        vcpu=(1.0, 2.0),
        function={"service_us": 4000},
    ),
    Family(
        "uneven", "unsmooth log-normal 15 % effect per configuration", "function.effect_sd=0.15"
    ),
    Family("not-monotone", "R(1) = 1.4 R(4)", "function.cold_factor=1.4"),
    Family("no-breakpoint", "a KPI without a breakpoint", wl=(5.0, 45.0)),
    Family("below-range", "below range", wl=(500.0, 2000.0)),
    Family("top-edge", "at the top edge", wl=(8.0, 220.0)),
    Family(
        "interference",
        "one-sided noise, two-level drift",
        "noise_law=interference,window_sd=0.05,tail_sd=0.12,drift_sd=0.05",
    ),
    Family(
        "scalability",
        "Gunther's law at 1 and 3 vCPUs",
        "capacity_law=scalability,function.coherence=0.02",
        vcpu=(1.0, 3.0),
        function={"service_us": 6000},
    ),
    Family(
        "everything",
        "t4, outliers, restarts, drift and a knee of 15 % at once",
        "window_sd=0.05,tail_sd=0.12,freedom=4,outlier_share=0.05,restart_sd=0.05,drift_sd=0.08,"
        "function.knee_width=0.15",
    ),
    Family(
        "bursty-knee",
        "Poisson arrivals, Student t4 and a knee of 8 %",
        "window_sd=0.05,tail_sd=0.12,freedom=4,function.knee_width=0.08",
        load=LoadModel("open", arrivals="poisson"),
        held_out=True,
    ),
    Family(
        "closed-crowded",
        "closed loop, Z = 0.12 s, a neighbour in one drive of ten, restart sd 3 %",
        "neighbour_cores=4,neighbour_share=0.1,restart_sd=0.03",
        load=closed(0.12),
        wl=(1, 300),
        held_out=True,
    ),
    Family(
        "chain-fast-drift",
        "two functions, one-sided noise, drift sd 4 % with 1 min, decays 20 %",
        "noise_law=interference,drift_sd=0.04,drift_s=60,function.decay=0.2",
        graph=CHAIN,
        held_out=True,
    ),
)
BY_NAME = {family.name: family for family in FAMILIES}
