"""What can be switched in the simulated lab, written as `sim:source_cap=0.7,noise=0`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from workbench.domain.errors import UsageError
from workbench.labs.simulated.component_models import STAND_IN_KEYS

CapacityLaw = Literal["power", "scalability"]
NoiseLaw = Literal["student", "interference"]
HELD_OUT: Mapping[str, str] = {"capacity_law": "scalability", "noise_law": "interference"}
"""Option values that only `benchmarks/` may use: no default, no template and no tuning does, so
that a method cannot have been fitted to them."""
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "capacity_law": get_args(CapacityLaw),
    "noise_law": get_args(NoiseLaw),
}
FUNCTION = "function."
"""Prefix of a stand-in's key that goes over every function's own: `function.decay=0.4`."""


@dataclass(frozen=True)
class SimulationOptions:
    """Host, source, sink, network, noise, faults and costs of a simulated lab.

    What belongs to a function (its capacity law, its buffer, how it fails) is a key of its
    stand-in (`ComponentModel`); `function.KEY=number` sets it for all functions at once.
    Zero switches an option off unless said otherwise; docs/simulated-lab.md has the table with
    the origin of every default.

    Attributes
    ----------
    host_cores : cores shared by all components.
    host_speed : of a core of this host, over that of the host that the stand-ins describe.
    source_cores, sink_cores : CPU allotment of the generator and of the answering server.

    world : seed of what belongs to the functions and not to luck: `capacity_spread`, `effect_sd`.
        Truth depends on it, and on no other seed.
    capacity_spread : 0, or f > 1: each function's capacity is multiplied by a factor that is
        log-uniform in [1/f, f], so that breakpoints lie off every grid.
    capacity_law : how capacity grows with v vCPUs: `power`, v^alpha; `scalability`, Gunther's law
        v / (1 + serial (v-1) + coherence v (v-1)) (held out for benchmarks).
    functions : stand-in keys that go over those of every function.

    source_cap, sink_cap : share of what the target's functions carry that the source (sink) is
        allotted CPU for: 0.7 is a generator that gives out first.
    client_cap : share of what the functions carry at which the source's only thread is at 100 % of
        a core, while its allotment (at least two cores) is not used up.
    neighbour_cores, neighbour_share : cores that somebody else on the host wants, and the share
        of drives in which he does.
    conntrack_share : share of the connection table that is in use before a drive begins. Closed
        connections stay in it for 120 s; what finds it full is never answered.
    hangs_per_hour, hang_s : the whole host stands still that often and long; at most once in a
        drive, 3600 for once in every drive.

    hop_us : pure delay of one hop there and back, µs.
    delayed_ack : hold answers where the pair of functions delays acknowledgements.
    delayed_ack_share : share of the requests that meet the delay.
    coalescing : a function behind another one needs its CPU time divided by this; 1 for none.
    stall_share, stall_ms, stall_from_kb : share of the answers of at least that many kB
        (10^3 bytes) that wait for a retransmission, and how long, ms.
    bypass_share : share of the response time at idle that the path without the functions takes.
    in_phase : the quota periods of all functions begin together.

    noise : all of the following, or none of them.
    noise_law : `student`, two-sided factors and an Ornstein-Uhlenbeck drift; `interference`,
        one-sided slow-downs (gamma) and a drift that switches between two levels (held out for
        benchmarks). The scales below are log standard deviations in both.
    freedom : degrees of freedom of Student's t in `student`, more than 2; 0 for the normal law.
    window_sd : of a common factor on the functions' service times, per drive: of throughput.
    tail_sd : of a factor on what a response takes longer than at idle, per drive: of p95.
    jitter_sd : of a further factor on service times for each half second's worth of requests.
    delay_sd : of a factor on the pure delay of the hops, per drive.
    outlier_share, outlier_factor : share of drives whose response times are that factor longer.
    band_share, band_factor : share of drives in which capacity is that factor of what it is.
    restart_sd : of a factor per function and start of it (`Lab.deploy`'s block).
    drift_sd, drift_s : of a slow drift, and its correlation time, s. It follows the nominal
        schedule of the campaign, not the clock, so that a resumed run drifts like a whole one.
    pass_step_low, pass_step_high : log of the step in capacity from one block to the next, uniform
        between these, its direction alternating.

    deploy_s, allocate_s, drive_overhead_s, undeploy_s : lab seconds that these cost.
    warm_share, warm_s : a visit begins with service times that are this share longer, which
        decays exponentially with this time, s.
    """

    host_cores: int = 4
    host_speed: float = 1.0
    source_cores: float = 1.0
    sink_cores: float = 1.0

    world: int = 0
    capacity_spread: float = 0.0
    capacity_law: CapacityLaw = "power"
    functions: Mapping[str, float] = field(default_factory=dict)

    source_cap: float = 0.0
    sink_cap: float = 0.0
    client_cap: float = 0.0
    neighbour_cores: float = 0.0
    neighbour_share: float = 1.0
    conntrack_share: float = 0.0
    hangs_per_hour: float = 0.0
    hang_s: float = 2.0

    hop_us: float = 36.0
    delayed_ack: bool = True
    delayed_ack_share: float = 0.95
    coalescing: float = 1.0
    stall_share: float = 0.0
    stall_ms: float = 200.0
    stall_from_kb: float = 500.0
    bypass_share: float = 0.0
    in_phase: bool = False

    noise: bool = True
    noise_law: NoiseLaw = "student"
    freedom: float = 0.0
    window_sd: float = 0.04
    tail_sd: float = 0.15
    jitter_sd: float = 0.02
    delay_sd: float = 0.05
    outlier_share: float = 0.0
    outlier_factor: float = 2.0
    band_share: float = 0.0
    band_factor: float = 0.8
    restart_sd: float = 0.01
    drift_sd: float = 0.02
    drift_s: float = 300.0
    pass_step_low: float = 0.0
    pass_step_high: float = 0.0

    deploy_s: float = 5.0
    allocate_s: float = 0.5
    drive_overhead_s: float = 0.3
    undeploy_s: float = 0.0
    warm_share: float = 0.0
    warm_s: float = 0.3

    @classmethod
    def parse(cls, text: str) -> SimulationOptions:
        """Options from `name=value,...`; switches take 0 or 1. Raises `UsageError`."""
        changed: dict[str, Any] = {}
        functions: dict[str, float] = {}
        names = [f.name for f in fields(cls) if f.name != "functions"]
        for pair in filter(None, (part.strip() for part in text.split(","))):
            name, _, value = pair.partition("=")
            key = name.removeprefix(FUNCTION)
            if key != name and key in STAND_IN_KEYS:
                functions[key] = _number(text, name, value, float)
            elif key != name:
                raise UsageError(
                    f"{key!r} is no key of a simulated function",
                    where=f"sim:{text}",
                    remedy=f"Choose from: {', '.join(STAND_IN_KEYS)}",
                )
            elif name not in names:
                raise UsageError(
                    f"{name!r} is no option of the simulated lab",
                    where=f"sim:{text}",
                    remedy=f"Choose from: {', '.join(names)}, {FUNCTION}KEY",
                )
            elif name in _CHOICES:
                if value not in _CHOICES[name]:
                    raise UsageError(
                        f"{name} is {value!r}",
                        where=f"sim:{text}",
                        remedy=f"Give {' or '.join(_CHOICES[name])}",
                    )
                changed[name] = value
            else:
                changed[name] = _number(text, name, value, type(getattr(cls, name)))
        options = cls(functions=functions, **changed)
        for name, wrong, remedy in options._mistakes():
            raise UsageError(f"{name} is {wrong}", where=f"sim:{text}", remedy=remedy)
        return options

    def _mistakes(self) -> Iterator[tuple[str, str, str]]:
        """Name, value and remedy of what cannot be."""
        if self.host_cores < 1:
            yield "host_cores", "0", "Give at least one core"
        for name in ("host_speed", "coalescing", "outlier_factor", "band_factor"):
            if getattr(self, name) == 0.0:
                yield name, "0", "Give a factor above 0; 1 changes nothing"
        for name in ("bypass_share", "conntrack_share"):
            if getattr(self, name) >= 1.0:
                yield name, f"{getattr(self, name):g}", "Give a share below 1"
        if 0.0 < self.capacity_spread < 1.0:
            yield "capacity_spread", f"{self.capacity_spread:g}", "Give 0 or a factor above 1"
        if 0.0 < self.freedom <= 2.0:
            yield "freedom", f"{self.freedom:g}", "Give 0 or more than 2"
        if self.pass_step_low > self.pass_step_high:
            yield "pass_step_low", f"{self.pass_step_low:g}", "Give at most pass_step_high"


def _number(text: str, name: str, value: str, kind: type) -> float:
    """The value as that kind of number. Raises `UsageError`."""
    try:
        number = float(value)
        if not 0.0 <= number < math.inf or (kind is bool and number not in (0.0, 1.0)):
            raise ValueError
        converted: float = kind(number)
        return converted
    except (ValueError, OverflowError):
        allowed = "0 or 1" if kind is bool else "a number, not negative"
        raise UsageError(
            f"{name} is {value!r}", where=f"sim:{text}", remedy=f"Give {allowed}"
        ) from None
