"""What was concluded from samples: curves, breakpoints, models of targets, influence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from workbench.domain.parameters import Configuration

Setting = bool | int | float | str | None
"""A constructor parameter of a model, as JSON keeps it."""

BreakpointRule = Literal["collapse", "capacity", "knee", "cpu", "sla", "covariance"]
BREAKPOINT_RULES: tuple[BreakpointRule, ...] = (
    "collapse",
    "capacity",
    "knee",
    "cpu",
    "sla",
    "covariance",
)
"""`collapse` is answered only where samples fall; the others always (`sla` with an SLA)."""

BreakpointState = Literal["found", "none_in_range", "below_range", "unresolved"]
"""`unresolved`: too few valid samples to say, or none at loads above where the source limits; the
other three are answers (METHOD.md 7)."""


@dataclass(frozen=True)
class Breakpoint:
    """The `wl` at which a configuration saturates by one rule, with its 95 % interval.

    `wl`, `low` and `high` are None unless `state` is `found`; `note` says what the state rests on
    (`not_cpu_limited`, "no saturation up to 16000/s, where the source limits").
    """

    target: str
    configuration: Configuration
    rule: BreakpointRule
    kpi: str
    state: BreakpointState
    wl: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Curve:
    """A fitted KPI over `wl` with its band: at most 200 points each, ready to draw.

    It ends where a load, `overload`, is more than is carried: a response time grows without bound
    from there on. None where that is nowhere.
    """

    kpi: str
    model: str
    wl: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    overload: float | None = None


@dataclass(frozen=True)
class FittedModel:
    """A model as stored: fitted again on load, never unpickled (DESIGN.md, decision 4)."""

    method: str
    parameters: Mapping[str, Setting]
    sample_ids: tuple[str, ...]
    coefficients: tuple[float, ...]


Verdict = Literal["lower", "higher", "no_visible_difference", "not_comparable"]


@dataclass(frozen=True)
class Difference:
    """One figure of two sessions: a KPI at an operating point, or a breakpoint by a rule.

    `ratio` is second over first with its 95 % interval; `floor` is the smallest relative
    difference that the hosts' A/A runs can show. A ratio within the floor is no difference,
    however narrow its interval.
    """

    target: str
    configuration: Configuration
    figure: str
    """KPI name with `wl`, or `capacity`, `sla`, ..."""
    wl: float | None
    first: float | None
    second: float | None
    ratio: float | None
    low: float | None
    high: float | None
    floor: float
    verdict: Verdict
    note: str = ""


@dataclass(frozen=True)
class HostFactor:
    """What one figure of another host, or lab, is as a multiple of the same figure here.

    Attributes
    ----------
    figure : KPI name, `capacity`, ...
    value, low, high : the factor, other over reference, with its 95 % interval; what each host
        differs by from itself is in the interval.
    places : configurations, or starts at an anchor point, that it rests on.
    least, most : the smallest and the largest factor of a configuration; None of anchor points.
    note : a sentence where one factor does not stand for all; else empty.
    host : of a fleet, which one; empty where two sessions are compared.
    """

    figure: str
    value: float
    low: float
    high: float
    places: int
    least: float | None = None
    most: float | None = None
    note: str = ""
    host: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the interval holds 1."""
        return self.low <= 1.0 <= self.high


@dataclass(frozen=True)
class ModelScore:
    """One method on one KPI of one target, cross-validated, as in paper A's Table 3.

    `rmse`, `mae` and `mad` are in the KPI's unit, as is `rmse_trimmed`, the RMSE without the
    largest tenth of the errors; `mape` is a share; `log_error` is the median of
    |log(predicted / true)|, `coverage` the share of samples within their 95 % interval, `width`
    the median width of these in logs, `fit_s` the mean seconds of a fit. All are None where
    `trouble` says why the method failed; the two of intervals where it has none.
    """

    target: str
    kpi: str
    method: str
    samples: int
    rmse: float | None = None
    mae: float | None = None
    mad: float | None = None
    mape: float | None = None
    log_error: float | None = None
    coverage: float | None = None
    width: float | None = None
    fit_s: float | None = None
    best: bool = False
    trouble: str = ""
    rmse_trimmed: float | None = None


ModelOrigin = Literal["profile"]
"""How a version came about: `profile`, fitted to the samples of its own target."""


@dataclass(frozen=True)
class TargetModel:
    """The model of one KPI of a target, as stored: fitted again on load (DESIGN.md, decision 4).

    Attributes
    ----------
    version : counts from 1 for each target and KPI; a number is never used twice.
    parameters : what the method was made with; those that the table implies are left out.
    kpi_max : ceiling of the KPI in its unit, above which every sample counted as it.
    sample_ids : what it was fitted to, in that order.
    coefficients : what the fit has learned, to check a later fit by; evenly spread ones of
        `coefficient_count` where these are too many to be stored.
    score : its own among those it was chosen by.
    libraries : packages that the fit rests on, with their versions.
    formulas : what a parametric method came to: one for each configuration and region, with the
        coefficients' standard errors. Empty for any other, and in sessions older than this field.
    """

    target: str
    kpi: str
    version: int
    origin: ModelOrigin
    method: str
    parameters: Mapping[str, Setting]
    kpi_max: float
    sample_ids: tuple[str, ...]
    coefficients: tuple[float, ...]
    coefficient_count: int
    score: ModelScore
    libraries: Mapping[str, str]
    formulas: tuple[ModelFormula, ...] = ()


@dataclass(frozen=True)
class ModelVersion:
    """A stored model as a list shows it; `seq` leads to the event that holds the whole of it."""

    target: str
    kpi: str
    version: int
    origin: ModelOrigin
    method: str
    samples: int
    score: ModelScore
    seq: int
    at: float
    """Seconds since the epoch."""

    @classmethod
    def of(cls, model: TargetModel, seq: int, at: float) -> ModelVersion:
        return cls(
            model.target,
            model.kpi,
            model.version,
            model.origin,
            model.method,
            len(model.sample_ids),
            model.score,
            seq,
            at,
        )


InfluenceBasis = Literal["edges", "all"]
"""What an influence rests on: the samples at the corners of the two-level factorial of all
parameters, as in paper B, or all valid samples, where these corners were not all measured."""


@dataclass(frozen=True)
class ParameterInfluence:
    """The share that every parameter has in what moves each KPI (paper B, 6.3 and Fig. 8).

    `weights` holds, for each of `kpis`, one share for each of `parameters` (resources, workload,
    then the primary workload); they sum to 1, or are all 0 where the KPI did not vary.
    """

    target: str
    parameters: tuple[str, ...]
    kpis: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]
    samples: int
    """Valid samples that it rests on."""
    basis: InfluenceBasis = "all"


@dataclass(frozen=True)
class Residual:
    """A sample, and what a model said that had not seen it; figures in the KPI's unit."""

    sample_id: str
    configuration: Configuration
    wl: float
    measured: float
    predicted: float


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of a formula with its standard error; None where the fit states none."""

    name: str
    value: float
    error: float | None


@dataclass(frozen=True)
class ModelFormula:
    """What a parametric model says of one configuration, from one load to another.

    `region` names the stretch, such as `no saturation`; r in `formula` is the load.
    `standard_error` is that of the regression, as a relative error of the KPI; None where unknown.
    """

    configuration: Configuration
    region: str
    formula: str
    low: float
    high: float
    coefficients: tuple[Coefficient, ...]
    function: str = ""
    """Its name in the catalogue."""
    standard_error: float | None = None


@dataclass(frozen=True)
class MethodFormulas:
    """What a parametric method comes to on all samples of a target, stored or not.

    `trouble` says why it has none, as a sentence.
    """

    target: str
    kpi: str
    method: str
    formulas: tuple[ModelFormula, ...]
    trouble: str = ""
