"""Which allocation carries an SLA: what is recommended, how surely, and what else there was."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from workbench.domain.counts import counted
from workbench.domain.parameters import ParameterValue, Sla
from workbench.domain.profiles import Curve
from workbench.domain.samples import Estimate

ProbabilityOf = Literal["long_run", "next_window"]
"""Of what a probability is said: that the KPI of a long run holds its limit, or that the KPI of
the next window measured does (METHOD.md 10)."""


def gives_at_least(more: Mapping[str, ParameterValue], less: Mapping[str, ParameterValue]) -> bool:
    """Whether every resource of `less` is there as much; names must be the same."""
    return more.keys() == less.keys() and all(
        more[key] == value
        if isinstance(value, str) or isinstance(more[key], str)
        else float(more[key]) >= float(value) * (1.0 - 1e-9)
        for key, value in less.items()
    )


@dataclass(frozen=True)
class Deployment:
    """What is deployed: resources of one instance of each function, and how many instances.

    Attributes
    ----------
    allocation : by `vnf.parameter`, of one instance.
    replicas : instances behind a load balancer, by function; those left out have one.
    """

    allocation: Mapping[str, ParameterValue]
    replicas: Mapping[str, int] = field(default_factory=dict)

    @property
    def functions(self) -> Mapping[str, Mapping[str, ParameterValue]]:
        """Resources of one instance, function by function, under their full keys."""
        found: dict[str, dict[str, ParameterValue]] = {}
        for key, value in self.allocation.items():
            found.setdefault(key.rpartition(".")[0], {})[key] = value
        return found

    @property
    def key(self) -> Hashable:
        """Equal for deployments that are the same, whether or not single instances are counted."""
        several = sorted((vnf, count) for vnf, count in self.replicas.items() if count > 1)
        return (*sorted(self.allocation.items()), *several)

    def instances(self, vnf: str) -> int:
        return self.replicas.get(vnf, 1)

    def gives_at_least(self, other: Deployment) -> bool:
        """Whether every function has as many instances, with as much of every resource."""
        return gives_at_least(self.allocation, other.allocation) and all(
            self.instances(vnf) >= other.instances(vnf) for vnf in other.functions
        )


@dataclass(frozen=True)
class PriceTable:
    """What resources cost an hour, as a provider lists it.

    Attributes
    ----------
    name : of the descriptor.
    flavors : price of an instance of that flavor, whatever it holds.
    per_hour : price of one unit of a resource by its name there (`Resource.price`).
    instance : per instance, besides its resources.
    """

    name: str
    currency: str
    flavors: Mapping[str, float] = field(default_factory=dict)
    per_hour: Mapping[str, float] = field(default_factory=dict)
    instance: float = 0.0


@dataclass(frozen=True)
class Choice:
    """One allocation of a chain, judged against the SLA.

    Attributes
    ----------
    allocation : resources of one instance of each function, by `vnf.parameter`.
    replicas : instances of each function behind a load balancer; 1 where there is but one.
    cost : in `cost_unit`, all instances together.
    probability : that every limit holds at the asked `wl` and at the lower ones that were
        profiled, calibrated for having been selected (METHOD.md 10); of the long run unless the
        recommendation says otherwise.
    margin_wl : how much more `wl` than asked it carries with the asked confidence, in the unit of
        `wl`; negative where it carries less, None where no load is carried.
    kpis : what is expected of each KPI that the SLA limits, with its 95 % interval.
    usage : expected CPU of each function as a share of its allocation.
    profiled : whether samples were taken of each function with this very allocation of its own.
    extrapolated : parameters or loads that lie outside what was profiled; empty where the models
        interpolate.
    margin_open : whether the limits still hold where the profile ends, so that the margin may be
        larger.
    """

    allocation: Mapping[str, ParameterValue]
    replicas: Mapping[str, int]
    cost: float
    cost_unit: str
    probability: float
    margin_wl: float | None
    kpis: Mapping[str, Estimate]
    usage: Mapping[str, float] = field(default_factory=dict)
    profiled: bool = True
    extrapolated: tuple[str, ...] = ()
    margin_open: bool = False

    @property
    def deployment(self) -> Deployment:
        return Deployment(self.allocation, self.replicas)


@dataclass(frozen=True)
class Trend:
    """What the model says of one allocation over `wl`.

    Attributes
    ----------
    choice : the allocation.
    curves : one per KPI that the SLA limits, each with its 95 % band.
    """

    choice: Choice
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class GreedyStep:
    """One allocation that greedy scaling tried (paper A, Algorithm 1)."""

    allocation: Mapping[str, ParameterValue]
    replicas: Mapping[str, int]
    wl: float
    kpis: Mapping[str, float]
    usage: Mapping[str, float]
    met: bool
    scaled: tuple[str, ...]
    """The functions that are given more, or another instance, in the next step."""

    @property
    def deployment(self) -> Deployment:
        return Deployment(self.allocation, self.replicas)


def priced(cost: float, unit: str) -> str:
    """What all instances cost: `0.375 vCPU`, `1.2 EUR/h`; hours of vCPU in an hour, as releases
    before 0.7.4 stored it, are vCPU."""
    return f"{cost:.4g} {unit.removesuffix('-hours/h')}"


@dataclass(frozen=True)
class GreedyRun:
    """What greedy scaling tried until the SLA held, or until nothing was left to scale."""

    steps: tuple[GreedyStep, ...]
    met: bool
    cost: float
    cost_unit: str
    lab_iterations: int
    """Allocations tried on the lab; 0 where it ran on a model."""
    lab_s: float
    note: str = ""
    probability: float | None = None
    """Of what it came to, as `Choice.probability`: greedy scaling itself goes by what is expected.
    None where it was not computed."""

    @property
    def tried(self) -> int:
        """Different allocations, on the lab or on a model."""
        return len({step.deployment.key for step in self.steps})


@dataclass(frozen=True)
class Verification:
    """The recommended allocation, measured."""

    sample_id: str
    kpis: Mapping[str, Estimate]
    met: bool
    lab_s: float
    note: str = ""


@dataclass(frozen=True)
class Recommendation:
    """The cheapest allocation that holds the SLA with the asked confidence, or what comes closest.

    Attributes
    ----------
    slas : all limits, of one `wl` and one set of workload values.
    confidence : asked; `probability` of what is chosen is at least that.
    chosen : None where nothing meets the SLA; `met` is false then and `closest` says what comes
        nearest.
    runners_up : other allocations that hold, by rising cost.
    judged : allocations that were compared.
    probability_of : what the probabilities are of.
    rests_on : samples of the chain itself that moved what the profiles say.
    model_version : of the chain's model; 0 are the stand-alone profiles.
    lab_iterations, lab_s : allocations tried on the lab after profiling, and the seconds.
    profiling_s : lab seconds of the profiles that it rests on.
    after : id of the recommendation that was asked about on the lab, where that taught another.
    priced_by : the cost function or price table that was asked for.
    whose : by profiled target, the session that its figures are of; empty: all are its own.
    """

    id: str
    session: str
    chain: str
    slas: tuple[Sla, ...]
    confidence: float
    met: bool
    chosen: Choice | None
    closest: Choice | None
    runners_up: tuple[Choice, ...]
    model_version: int
    at: float
    """Seconds since the epoch."""
    lab_iterations: int = 0
    lab_s: float = 0.0
    profiling_s: float = 0.0
    greedy: GreedyRun | None = None
    verified: Verification | None = None
    note: str = ""
    judged: int = 0
    probability_of: ProbabilityOf = "long_run"
    after: str = ""
    priced_by: str = "vcpu-hours"
    whose: Mapping[str, str] = field(default_factory=dict)
    rests_on: int = 0

    @property
    def judged_by(self) -> str:
        """Whose figures it stands on, in words."""
        if self.model_version:
            told = f"the chain's model (version {self.model_version})"
        else:
            told = "the stand-alone profiles"
            if self.whose:
                told += " of " + ", ".join(f"{t} by {s}" for t, s in self.whose.items())
        if not self.rests_on:
            return told
        seen = counted(self.rests_on, "sample")
        return f"{told}, corrected by {seen} of {self.chain} itself"

    @property
    def told_of_trials(self) -> str:
        """What became of it on the lab, as a sentence; empty where one allocation was tried."""
        if self.after:
            tried = f"the lab was asked {counted(self.lab_iterations, 'time')}"
            untried = self.chosen is not None and not self.verified
            own = "; what is recommended now was not tried itself" if untried else ""
            return f"Before these trials it was {self.after}: {tried}{own}."
        if self.lab_iterations > 1 and self.verified is not None:
            return f"The lab was asked {self.lab_iterations} times, and {self.id} stays."
        return ""

    @property
    def ways(self) -> tuple[ComparisonRow, ...]:
        """Greedy scaling, where it was run, and what the profiles recommend, where that holds."""
        found = []
        if self.greedy is not None and self.greedy.steps:
            last, run = self.greedy.steps[-1], self.greedy
            found.append(
                ComparisonRow(
                    "greedy", last.allocation, last.replicas, run.cost, run.cost_unit, run.met,
                    run.lab_iterations, run.lab_s, run.lab_s,
                )
            )  # fmt: skip
        if (chosen := self.chosen) is not None:
            met = self.verified.met if self.verified else self.met
            found.append(
                ComparisonRow(
                    "profiled", chosen.allocation, chosen.replicas, chosen.cost, chosen.cost_unit,
                    met, self.lab_iterations, self.lab_s, self.lab_s + self.profiling_s,
                )
            )  # fmt: skip
        return tuple(found)

    @property
    def slas_to_break_even(self) -> int | None:
        """After how many SLAs on the same profiles greedy scaling has cost more lab time.

        Each is taken to cost what this one did (paper A, Table 1). None where greedy scaling was
        not run on the lab, or costs less for each SLA.
        """
        if self.greedy is None or not self.greedy.lab_iterations:
            return None
        saved_s = self.greedy.lab_s - self.lab_s
        return max(1, math.floor(self.profiling_s / saved_s) + 1) if saved_s > 0.0 else None


@dataclass(frozen=True)
class IssuedRecommendation:
    """A stored recommendation; `seq` leads to the event that holds its curves, too."""

    recommendation: Recommendation
    seq: int


@dataclass(frozen=True)
class ComparisonRow:
    """One way to an allocation beside another, as in paper A, Table 1.

    `lab_iterations` are allocations tried on the lab after profiling, `lab_s` their seconds;
    `lab_s_with_profiling` adds those of the profiles that the way rests on.
    """

    method: Literal["greedy", "profiled"]
    allocation: Mapping[str, ParameterValue]
    replicas: Mapping[str, int]
    cost: float
    cost_unit: str
    met: bool
    lab_iterations: int
    lab_s: float
    lab_s_with_profiling: float
