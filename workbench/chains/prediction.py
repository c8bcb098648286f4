"""One operating point of a chain: what limits it, where that changes, what more vCPU brings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from workbench.chains.base import fold
from workbench.chains.composition import CARRIED, ChainForecaster, Outlook
from workbench.chains.handover import TELLING, says_nothing
from workbench.chains.measured_first import MeasuredFirst
from workbench.domain import kpis
from workbench.domain.chains import (
    ChainCurve,
    ChainPrediction,
    FunctionFigure,
    NextStep,
    Takeover,
)
from workbench.domain.errors import DataError
from workbench.domain.parameters import (
    Configuration,
    Parameter,
    ParameterValue,
    PrimaryWorkload,
)
from workbench.domain.samples import is_unbounded
from workbench.domain.topology import Vnf
from workbench.models.base import Floats
from workbench.models.forecast import Bools, Forecast, Forecaster, Points
from workbench.models.scales import log_kpi

LOADS = 100
"""Points of a curve over the range of loads; they are 5 % apart in two decades."""
STANDS_OUT = 1.1
"""By what factor another function's effect must be larger before it takes over along a curve:
two that limit alike would change places with every wriggle of their profiles."""
COUNTS = 0.1
"""Effect below which no function is said to limit."""


def predict(
    chain: ChainForecaster,
    configuration: Configuration,
    wl: float,
    *,
    name: str,
    primary: PrimaryWorkload,
    allowed: Sequence[Parameter] = (),
    warnings: Sequence[str] = (),
    model: Forecaster | None = None,
    version: int = 0,
) -> ChainPrediction:
    """What the stand-alone profiles say of a chain at one operating point, or its own model.

    Parameters
    ----------
    name : of the chain.
    primary : the range of loads of the curve; `wl` is one of its points.
    allowed : resource parameters with the values that may be allocated, of which the next larger
        one of the limiting function is tried; a flavor is larger if it has more vCPUs.
    warnings : that the caller has already, such as of another host; they come first.
    model : of the chain: it says the figures, the profiles who limits, but for an overload that
        was measured.
    version : of the accepted model that is behind it.

    Raises
    ------
    DataError
        If the configuration lacks a parameter, or has a category that was never profiled.
    """
    loads = loads_over(primary, LOADS, wl)
    here = loads.index(wl)
    along = chain.outlook([(configuration, load) for load in loads])
    at_each = limiting_with(chain, along, [(configuration, load) for load in loads], model)
    limits, limiting = limits_along(along, at_each), at_each[here]
    step, note = _next_step(chain, configuration, wl, limiting, allowed, model)
    curve = along.chain
    if model is not None:
        curve = model.forecast([(configuration, load) for load in loads])
    value = curve.estimate(here)
    unknown = isinstance(model, MeasuredFirst) and model.unmeasured and len(chain.vnfs) > 1
    return ChainPrediction(
        chain=name,
        kpi=chain.kpi,
        unit=kpis.of(chain.kpi).unit,
        rule=chain.rule.name,
        configuration=configuration,
        wl=wl,
        value=value,
        functions=tuple(_functions(chain, along, configuration, here)),
        limiting=limiting,
        takeovers=tuple(takeovers(loads, limits, along.chain.extrapolates)),
        curve=curve_of(curve, loads, limits),
        next_step=step,
        extrapolates=bool(curve.extrapolates[here]),
        warnings=(*warnings, *_warnings(chain, configuration)),
        note=note,
        model_version=version,
        rests_on=model.rests_on if isinstance(model, MeasuredFirst) else 0,
        canaries=TELLING
        if unknown and not value.unbounded and says_nothing(value.low, value.high)
        else 0,
    )


def limiting_with(
    chain: ChainForecaster, along: Outlook, points: Points, model: Forecaster | None
) -> list[str]:
    """Who limits, with overloads that were measured and that no profile knows of."""
    loads = np.array([wl for _, wl in points])
    if not isinstance(model, MeasuredFirst):
        return limiting_at(chain, along, loads)
    at_each = limiting_at(chain, along, loads, model.carries(points))
    return [seen or said for seen, said in zip(model.limits(points), at_each, strict=True)]


def loads_over(primary: PrimaryWorkload, count: int, *exactly: float) -> list[float]:
    """Loads over the range, by rising `wl`: those of the ends and of `exactly` are among them."""
    low, high = min((primary.low, *exactly)), max((primary.high, *exactly))
    space = np.geomspace if primary.scale == "log" and low > 0.0 else np.linspace
    loads = space(low, high, count)
    loads[[0, -1]] = low, high
    if primary.integer:
        loads = np.round(loads)
    loads = np.union1d(loads[loads > 0.0], exactly)
    return [float(load) for load in loads]


def curve_of(forecast: Forecast, loads: Sequence[float], limits: tuple[str, ...]) -> ChainCurve:
    """The forecast at these loads, in the KPI's unit."""
    extrapolates = tuple(forecast.extrapolates.tolist())
    figures = figures_of(forecast)
    over = (load for load, mean in zip(loads, figures[0], strict=True) if is_unbounded(mean))
    return ChainCurve(tuple(loads), *figures, limits, extrapolates, next(over, None))


def figures_of(
    forecast: Forecast,
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """Mean and interval in the KPI's unit."""
    mean, low, high = (
        tuple(np.exp(logs).tolist()) for logs in (forecast.mean, forecast.low, forecast.high)
    )
    return mean, low, high


def _functions(
    chain: ChainForecaster, along: Outlook, configuration: Configuration, here: int
) -> Iterator[FunctionFigure]:
    for vnf in chain.vnfs:
        part, forecast = chain.parts[vnf.name], along.functions[vnf.name]
        wl = float(along.loads[vnf.name][here])
        own = part.configuration(configuration, vnf.name)
        scale = chain.scales.get(vnf.name)
        busy = wl if scale is None else wl * scale.factor
        outside = tuple(part.outside(own, busy, chain.kpi))
        if forecast.extrapolates[here] and not outside:
            outside = ("no samples around bear this out",)
        yield FunctionFigure(
            vnf.name,
            part.target,
            wl,
            forecast.estimate(here),
            float(along.effects[vnf.name][here]),
            outside,
        )


def limiting_at(
    chain: ChainForecaster, outlook: Outlook, loads: Floats, carries: Bools | None = None
) -> list[str]:
    """At each point the function that is loaded beyond what it carries, the worst of them; else
    the one with the largest effect; empty where none limits. `carries` (m,): where the chain was
    seen to carry the load, whatever its profiles say."""
    names = [vnf.name for vnf in chain.vnfs]
    effects = np.stack([outlook.effects[name] for name in names])
    nobody = (effects.max(axis=0) < COUNTS) | _unlimited(chain, outlook.chain.mean, loads)
    found = effects.argmax(axis=0)
    over = [outlook.overload.worst(j) for j in range(len(nobody))]
    if carries is not None:
        over = ["" if seen else name for seen, name in zip(carries, over, strict=True)]
    return [over[j] or ("" if nobody[j] else names[found[j]]) for j in range(len(nobody))]


def _unlimited(chain: ChainForecaster, mean: Floats, loads: Floats) -> Bools:
    """Where nothing is lost, or everything that is offered is carried."""
    if kpis.of(chain.kpi).kind == "share":
        return np.asarray(mean <= log_kpi(chain.kpi, 0.0))
    if kpis.of(chain.kpi).carried and chain.family != "closed":
        return np.asarray(np.exp(mean) >= CARRIED * loads)
    return np.zeros(len(mean), dtype=bool)


def limits_along(outlook: Outlook, at_each: Sequence[str]) -> tuple[str, ...]:
    """Who limits along the curve: who did before, unless another stands out."""
    limits: list[str] = []
    before = ""
    for j, name in enumerate(at_each):
        if name and before and name != before and outlook.overload.worst(j) != name:
            lead = outlook.effects[name][j] / max(outlook.effects[before][j], 1e-9)
            name = name if lead > STANDS_OUT else before
        limits.append(name)
        before = name
    return tuple(limits)


def takeovers(
    loads: Sequence[float], limits: Sequence[str], extrapolates: Bools
) -> Iterator[Takeover]:
    """Half-way between the two points of the curve where the name changes."""
    for j, (before, after) in enumerate(pairwise(limits)):
        if after and after != before:
            between = float(np.sqrt(loads[j] * loads[j + 1]))
            yield Takeover(between, after, bool(extrapolates[j + 1]))


def _next_step(
    chain: ChainForecaster,
    configuration: Configuration,
    wl: float,
    limiting: str,
    allowed: Sequence[Parameter],
    model: Forecaster | None,
) -> tuple[NextStep | None, str]:
    """The limiting function with its next larger allocation, or why there is none."""
    own = [p for p in allowed if p.key in (f"{limiting}.vcpu", f"{limiting}.flavor")]
    if not limiting or not own:
        return None, ""
    parameter = own[0]
    before = configuration.resources.get(parameter.key)
    if before is None:
        return None, f"{parameter.key} is not set"
    larger = [v for v in parameter.values if parameter.cores(v) > parameter.cores(before)]
    if not larger:
        return None, f"{parameter.key} is at the largest that is allowed"
    after = min(larger, key=parameter.cores)
    allotted: Mapping[str, ParameterValue] = {
        parameter.key: after,
        **{f"{limiting}.{k}": v for k, v in parameter.flavors.get(str(after), {}).items()},
    }
    stepped = Configuration({**configuration.resources, **allotted}, configuration.workload)
    try:
        then = chain.outlook([(stepped, wl)])
        value = then.chain if model is None else model.forecast([(stepped, wl)])
    except DataError as error:
        return None, f"nothing is known of {parameter.key}={after}: {error.what}"
    return NextStep(
        parameter.key,
        before,
        after,
        value.estimate(),
        limiting_at(chain, then, np.array([wl]))[0],
        bool(value.extrapolates[0]),
    ), ""


def _warnings(chain: ChainForecaster, configuration: Configuration) -> Iterator[str]:
    for vnf in chain.vnfs:
        part = chain.parts[vnf.name]
        unknown = sorted(part.unknown(part.configuration(configuration, vnf.name)))
        if unknown:
            yield (
                f"{vnf.name}: {', '.join(unknown)} is set, but no sample of its profile says so; "
                f"it is left out"
            )
    if chain.family == "closed" and _splits_unevenly(chain, configuration):
        yield (
            "branches differ: in a closed loop clients gather in the slower one, while here each "
            "branch has its share of them"
        )
    if chain.family != "closed":
        silent = [
            vnf.name
            for vnf in chain.vnfs
            if not any(
                kpi == kpis.LOSS or kpis.of(kpi).carried
                for kpi in chain.parts[vnf.name].forecasters
            )
        ]
        if silent and len(chain.vnfs) > 1:
            yield f"nothing is known of what {', '.join(silent)} loses: all of it is taken to pass"


def _splits_unevenly(chain: ChainForecaster, configuration: Configuration) -> bool:
    """Whether any branches of a split differ in functions, allocations or shares."""
    uneven: list[bool] = []

    def told(vnf: Vnf) -> str:
        part = chain.parts[vnf.name]
        return f"{part.target} {part.configuration(configuration, vnf.name).key}"

    def split(branches: Sequence[str], shares: Sequence[float]) -> str:
        uneven.append(len(set(branches)) > 1 or max(shares) - min(shares) > 1e-6)
        return f"parallel({'; '.join(branches)})"

    def line(parts: Sequence[str]) -> str:
        return f"series({'; '.join(parts)})"

    fold(chain.graph, told, line, split)
    return any(uneven)
