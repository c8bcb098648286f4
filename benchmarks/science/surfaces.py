"""Response surfaces shaped as paper B describes its data sets in words (sections 4 and 5, Fig. 3
and 8), with a truth that is known and noise as METHOD.md 11 wants it.

A surface answers at any load of its range with a `Sample`, as a lab would; the papers' full grid
is drawn twice with independent noise, for training and for testing. Same surface, draw, point and
repetition: the same sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from science.families import (
    Creeping,
    Expiry,
    Family,
    Floats,
    Law,
    Logistic,
    Steps,
    firewall_law,
    firewall_scalability,
    streaming_interference,
    streaming_law,
)
from workbench.domain.parameters import (
    Configuration,
    LoadModel,
    OperatingPoint,
    Parameter,
    PrimaryWorkload,
    grid,
)
from workbench.domain.samples import Estimate, Sample, Usage
from workbench.models.scales import NORMAL_95
from workbench.sampling.base import Costs, Space
from workbench.sampling.uniform import even_loads

METHOD_VERSION = 1
"""Raised by hand when a surface here or a law of `families` gives other samples."""
TEST = "test"
"""The draw that nothing is ever trained on."""
CAPACITY_SD = 0.03
"""Log standard deviation of the capacity that one visit meets: window, start and drift."""
KPI_SD = 0.05
"""Log standard deviation of the KPI beyond that."""
BACKGROUND_PCT = 0.03
"""Median of what is lost for reasons that have nothing to do with the load."""
OUTLIERS = 0.05
"""Share of visits that scatter twice as much."""


@dataclass(frozen=True)
class Surface:
    """A simulated function under test.

    Attributes
    ----------
    loads : how many loads the papers' grid has, evenly on the log scale.
    matched : whether our law is of the family.
    """

    name: str
    target: str
    family: Family
    matched: bool
    resources: tuple[Parameter, ...]
    workload: tuple[Parameter, ...]
    primary: PrimaryWorkload
    loads: int
    kpi: str
    costs: Costs
    note: str
    kpi_max: float = 30.0

    @cached_property
    def configurations(self) -> tuple[Configuration, ...]:
        return tuple(grid(self.resources, self.workload))

    @property
    def load(self) -> LoadModel:
        return LoadModel("open", unit="packets" if self.kpi == "loss_pct" else "requests")

    def space(self, seed: int, configurations: tuple[Configuration, ...] = ()) -> Space:
        """What a sampler may ask about: all configurations, or those given."""
        return Space(
            target=self.target,
            configurations=configurations or self.configurations,
            primary=self.primary,
            load=self.load,
            kpi=self.kpi,
            kpi_max=self.kpi_max,
            loss_goal=0.005,
            sla=None,
            seed=seed,
            costs=self.costs,
        )

    def truth(self, configuration: Configuration, wl: Floats) -> Floats:
        """The median of what visits show, of shape (n,)."""
        loads = np.asarray(wl, dtype=float)
        kpi = self.family(configuration, loads, np.zeros_like(loads)) + BACKGROUND_PCT
        return np.asarray(np.clip(kpi, 0.0, 100.0), dtype=float)

    def observe(
        self,
        configuration: Configuration,
        wl: Floats,
        *,
        draw: str,
        repetition: NDArray[np.int64] | int = 0,
    ) -> Floats:
        """What visits show: KPI and both ends of its interval, of shape (3, n).

        The interval is that of the visit's own noise, as repeated visits would show it.
        """
        loads = np.asarray(wl, dtype=float)
        u = _uniform(f"{self.name}/{draw}/{configuration.key}", loads, repetition)
        scale = np.where(u[0] < OUTLIERS, 2.0, 1.0)
        shift = scale * CAPACITY_SD * _student_t4(u[1]) / np.sqrt(2.0)
        factor = scale * KPI_SD * ndtri(u[2])
        background = BACKGROUND_PCT * np.exp(0.7 * ndtri(u[3]))
        sign = np.array([0.0, 1.0, -1.0])[:, None]
        shifts = shift + NORMAL_95 * CAPACITY_SD * sign
        kpi = self.family(configuration, np.tile(loads, 3), shifts.ravel()).reshape(3, -1)
        kpi = kpi * np.exp(factor - NORMAL_95 * KPI_SD * sign) + background
        return np.asarray(np.clip(kpi, 0.0, 100.0), dtype=float)

    def measure(
        self,
        configuration: Configuration,
        wl: float,
        *,
        draw: str,
        repetition: int = 0,
        block: int = 0,
    ) -> Sample:
        """One visit, as a sample."""
        seen = self.observe(configuration, np.array([wl]), draw=draw, repetition=repetition)
        middle, low, high = (float(v) for v in seen[:, 0])
        kpis = {self.kpi: Estimate(middle, low, high)}
        if self.kpi == "loss_pct":
            carried = [wl * (1.0 - pct / 100.0) for pct in (middle, high, low)]
            kpis["throughput_pps"] = Estimate(*carried)
        share = float(np.clip(wl / _full_usage(self, configuration), 0.0, 1.0))
        count = max(round(wl * self.costs.sample_s), 1)
        return Sample(
            id=f"{self.target}/{configuration.key}/{wl:g}/{repetition}",
            point=OperatingPoint(self.target, configuration, wl, repetition),
            kpis=kpis,
            usage={self.target: Usage(share, share)},
            valid=True,
            findings=(),
            labels=(),
            load_model=self.load.key,
            kpi_definition="none",
            generator="simulated surface",
            planned=count,
            completed=count,
            errors=0,
            unfinished=0,
            windows=6,
            batches=6,
            throttled_share=0.0,
            straddle_share=0.0,
            started_at=0.0,
            measured_s=self.costs.sample_s,
            lab_s=self.costs.sample_s,
            block=block,
        )

    def grid_loads(self) -> tuple[float, ...]:
        return even_loads(self.primary, self.loads)

    def drawn(self, draw: str) -> tuple[Sample, ...]:
        """The papers' full grid, measured once."""
        return tuple(
            self.measure(configuration, wl, draw=draw)
            for configuration in self.configurations
            for wl in self.grid_loads()
        )

    def __hash__(self) -> int:
        return hash(self.name)


def _uniform(name: str, wl: Floats, repetition: NDArray[np.int64] | int) -> Floats:
    """Four figures in (0, 1) for every point, of shape (4, n): a hash of its name (SplitMix64,
    Steele, Lea & Flood 2014), so that a point shows the same whenever it is asked for."""
    seed = np.uint64(int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big"))
    point = _mixed(np.ascontiguousarray(wl).view(np.uint64) + np.uint64(1))
    point = _mixed(point ^ _mixed(np.asarray(repetition, dtype=np.uint64) + seed))
    streams = _mixed(point + np.arange(1, 5, dtype=np.uint64)[:, None] * _GOLDEN)
    return (np.asarray(streams >> np.uint64(11), dtype=float) + 0.5) * 2.0**-53


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = np.asarray(z) + np.zeros(1, dtype=np.uint64)  # arrays wrap, scalars warn
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _student_t4(u: Floats) -> Floats:
    """Quantiles of Student's t with four degrees of freedom (Shaw 2006, closed form)."""
    alpha = np.sqrt(4.0 * u * (1.0 - u))
    q = np.cos(np.arccos(np.clip(alpha, 0.0, 1.0)) / 3.0) / alpha
    return np.asarray(np.sign(u - 0.5) * 2.0 * np.sqrt(np.maximum(q - 1.0, 0.0)), dtype=float)


@cache
def _full_usage(surface: Surface, configuration: Configuration) -> float:
    """Load at which usage is full: where the KPI last passes a tenth of its ceiling."""
    loads = np.geomspace(surface.primary.low, 10.0 * surface.primary.high, 400)
    over = surface.truth(configuration, loads) >= 0.1 * surface.kpi_max
    falling = np.flatnonzero(~over)
    last = int(falling[-1]) if falling.size else 0
    return float(loads[min(last + 1, loads.size - 1)])


# ------------------------------------------------------------------------------ paper B's two

FIREWALL = {
    "target": "pfsense",
    "resources": (Parameter("pfsense.vcpu", (0.25, 0.5, 0.75, 1.0, 2.0, 3.0, 4.0, 5.0), "cores"),),
    "workload": (
        Parameter("packetsize_bytes", (64.0, 128.0, 256.0, 512.0, 1024.0, 1500.0), "bytes"),
        Parameter("flows", (1.0, 2.0, 10.0, 100.0, 1000.0, 10000.0)),
    ),
    "primary": PrimaryWorkload("rate_pps", 100.0, 500_000.0, unit="packets/s"),
    "loads": 50,
    "kpi": "loss_pct",
    "costs": Costs(change_s=15.0, deploy_s=60.0, sample_s=30.0),
}
"""Section 4.1: 288 configurations, 14,400 points of about 30 s; a VM starts anew to change."""

_FLAVORS = (
    (0.5, 0.5), (0.5, 1), (1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (3, 3), (3, 4), (4, 5), (6, 5),
)  # fmt: skip

STREAMING = {
    "target": "nginx",
    "resources": (
        Parameter(
            "nginx.flavor",
            tuple(f"f{place:02d}" for place in range(len(_FLAVORS))),
            flavors={
                f"f{place:02d}": {"vcpu": float(vcpu), "bandwidth_mbps": 1000.0 * gbps}
                for place, (vcpu, gbps) in enumerate(_FLAVORS)
            },
        ),
    ),
    "workload": (
        Parameter("quality", (1.0, 2.0, 3.0, 4.0, 5.0)),
        Parameter("movies", (1.0, 2.0, 3.0, 4.0, 5.0)),
    ),
    "primary": PrimaryWorkload("streams", 10.0, 5_000.0, unit="streams", integer=True),
    "loads": 80,
    "kpi": "lag_pct",
    "costs": Costs(change_s=3.0, deploy_s=20.0, sample_s=100.0),
}
"""Section 4.2: 275 configurations, 22,000 points of about 100 s; a container changes in place."""


def _surface(name: str, shared: dict, family: Family, matched: bool, note: str) -> Surface:  # type: ignore[type-arg]
    return Surface(name=name, family=family, matched=matched, note=note, **shared)


SURFACES = (
    _surface(
        "firewall-law", FIREWALL, Law(firewall_law), True,
        "the family of our law: a power of the vCPUs up to 3, loss is what exceeds the capacity",
    ),
    _surface(
        "firewall-scalability", FIREWALL, Logistic(firewall_scalability), False,
        "universal scalability law, logistic knee, collapse, 15 % log-normal per configuration",
    ),
    _surface(
        "firewall-expiry", FIREWALL, Expiry(firewall_law), False,
        "not monotone: few packets per flow lose more, then a breakpoint",
    ),
    _surface(
        "streaming-law", STREAMING, Law(streaming_law, 0.08), True,
        "the scarcer of CPU and bandwidth; flavors overlap where it is the bandwidth",
    ),
    _surface(
        "streaming-steps", STREAMING, Steps(streaming_interference), False,
        "lag rises in steps, CPU and bandwidth interfere, 15 % log-normal per configuration",
    ),
    _surface(
        "streaming-creeping", STREAMING, Creeping(streaming_law), False,
        "no breakpoint: lag creeps up as a power of the streams",
    ),
)  # fmt: skip

BY_NAME = {surface.name: surface for surface in SURFACES}
