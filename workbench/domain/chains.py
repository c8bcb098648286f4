"""What the stand-alone profiles say of a chain, ready for screens and `--json`."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.domain.parameters import Configuration, ParameterValue
from workbench.domain.profiles import Curve
from workbench.domain.samples import Estimate


@dataclass(frozen=True)
class FunctionFigure:
    """One function of a chain, on its own, at the load that reaches it.

    Attributes
    ----------
    vnf, profile : instance in the chain, and the target whose profile speaks for it.
    wl : the load that reaches it: behind losses and splits it is less than the chain's.
    value : its stand-alone KPI there, in the KPI's unit.
    effect : by how much the chain's KPI changes if this function's is 10 % worse, as a share of
        these 10 %: 1 where it decides alone, 0 where it does not count.
    extrapolated : parameters and loads of it that lie outside what was profiled, as phrases;
        empty where its model interpolates.
    """

    vnf: str
    profile: str
    wl: float
    value: Estimate
    effect: float
    extrapolated: tuple[str, ...] = ()


@dataclass(frozen=True)
class PartModel:
    """The model of a profiled target that a prediction rests on.

    `version` is 0 where no session holds it. KPIs that only accompany this one (`also`) are fitted
    by the same method.
    """

    target: str
    kpi: str
    method: str
    version: int
    samples: int
    also: tuple[str, ...] = ()
    whose: str = ""
    """The session that profiled it, where another than the one asked was named."""


@dataclass(frozen=True)
class Takeover:
    """From this `wl` on, another function limits the chain.

    `extrapolates`: a function that matters there does, so that who limits is a guess.
    """

    wl: float
    vnf: str
    extrapolates: bool = False


@dataclass(frozen=True)
class NextStep:
    """The limiting function with its next larger allocation, everything else as it is.

    `value` is the chain's KPI then, `limiting` the function that limits then.
    """

    key: str
    before: ParameterValue
    after: ParameterValue
    value: Estimate
    limiting: str
    extrapolates: bool


@dataclass(frozen=True)
class ChainCurve:
    """The predicted KPI over `wl` with its band: at most 200 points each, ready to draw.

    `limiting` names the function that limits at each point, empty where none does. From `overload`
    on, a load, a function is loaded beyond what it carries: a response time grows without bound
    there, and its figures are `samples.UNBOUNDED`; None where that is nowhere.
    """

    wl: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    limiting: tuple[str, ...]
    extrapolates: tuple[bool, ...]
    overload: float | None = None


@dataclass(frozen=True)
class NeighbourCost:
    """What a function is beside the functions that run on its cores.

    Attributes
    ----------
    vnf, neighbours : instances in the chain.
    cores : how many they share.
    share : of these cores that its neighbours use.
    between : the competitors beside which it was measured, as configurations have them, whose
        shares are around that one.
    alone, beside : its KPI at the load that reaches it, without and with its neighbours.
    """

    vnf: str
    neighbours: tuple[str, ...]
    cores: int
    share: Estimate
    between: tuple[str, str]
    alone: Estimate
    beside: Estimate


@dataclass(frozen=True)
class SharedCores:
    """A chain whose functions share cores, from what each was beside competitors.

    `value` is the chain's KPI with its 95 % interval; `extrapolates`, where a function that matters
    does, or where neighbours may take more than was measured.
    """

    value: Estimate
    functions: tuple[NeighbourCost, ...]
    extrapolates: bool


@dataclass(frozen=True)
class ChainPrediction:
    """A chain's KPI at one operating point, from stand-alone profiles and what corrects them.

    Attributes
    ----------
    rule : by which the profiles are composed.
    value : in `unit`, with its 95 % interval.
    functions : in the order of the chain, branch by branch.
    limiting : the function whose figure moves the chain's the most; empty where none limits,
        since nothing is lost or all that is offered is carried.
    takeovers : along the curve, by rising `wl`.
    next_step : None where nothing limits or where `note` says why there is no step.
    extrapolates : whether a function that matters for the figure extrapolates.
    model_version : of the chain's accepted model, which says `value`, `curve` and `next_step`;
        0: the profiles alone do. What each function is and who limits are always theirs.
    rests_on : samples of the chain that say `value`, `curve` and `next_step`.
    canaries : how many would tell what is not known without them, where nobody has measured the
        chain and `value` is too wide to be of use; else 0.
    shared_cores : the same where its functions wait for each other's cores; None where nobody asked
        for that, or where `warnings` say why it is not known.
    """

    chain: str
    kpi: str
    unit: str
    rule: str
    configuration: Configuration
    wl: float
    value: Estimate
    functions: tuple[FunctionFigure, ...]
    limiting: str
    takeovers: tuple[Takeover, ...]
    curve: ChainCurve
    next_step: NextStep | None = None
    extrapolates: bool = False
    warnings: tuple[str, ...] = ()
    note: str = ""
    model_version: int = 0
    rests_on: int = 0
    canaries: int = 0
    shared_cores: SharedCores | None = None


@dataclass(frozen=True)
class FunctionCurve:
    """One function on its own, along the loads of its chain: as many points as the chain's curve.

    Attributes
    ----------
    vnf, profile, effect : as in `FunctionFigure`.
    wl : the loads that reach it.
    mean, low, high : its stand-alone KPI there, with its 95 % interval.
    """

    vnf: str
    profile: str
    wl: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    effect: tuple[float, ...]


@dataclass(frozen=True)
class CpuContrast:
    """The CPU of a function at a load of its chain, in cores.

    `alone` is what its profile lets expect there, with its 95 % interval; `chained` what it used in
    the chain, as the mean of repetitions.
    """

    vnf: str
    wl: float
    alone: Estimate
    chained: float


@dataclass(frozen=True)
class ChainChart:
    """One configuration of a chain over `wl`, ready to draw.

    Attributes
    ----------
    predicted : by the chain's accepted model or what its samples say, else by the rule from the
        profiles, with the risk of a chain that nobody has measured. Who limits is what the profiles
        say, but for an overload that was measured.
    profiles : what the profiles alone say, where `predicted` is not that.
    measured : a model of the chain's own samples, over the loads that state the KPI here; None
        where there is none, or fewer than two such loads.
    takeovers : along the curve, by rising `wl`.
    functions : in the order of the chain, branch by branch.
    cpu : by function, then by rising `wl`; empty where profiles or samples do not know it.
    rests_on : samples of the chain that `predicted` rests on.
    """

    configuration: Configuration
    predicted: ChainCurve
    profiles: ChainCurve | None
    measured: Curve | None
    takeovers: tuple[Takeover, ...]
    functions: tuple[FunctionCurve, ...]
    cpu: tuple[CpuContrast, ...] = ()
    rests_on: int = 0
