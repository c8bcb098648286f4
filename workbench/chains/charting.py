"""One configuration of a chain over its loads, ready to draw: predicted, measured, in parts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from workbench.chains.composition import ChainForecaster, Outlook
from workbench.chains.measured_first import MeasuredFirst
from workbench.chains.prediction import (
    curve_of,
    figures_of,
    limiting_with,
    limits_along,
    loads_over,
    takeovers,
)
from workbench.chains.usage import ExpectedUsage
from workbench.domain.chains import ChainChart, CpuContrast, FunctionCurve
from workbench.domain.parameters import Configuration, PrimaryWorkload
from workbench.domain.profiles import Curve
from workbench.domain.samples import Estimate, Sample
from workbench.models.forecast import Forecaster
from workbench.models.selection import stated

LOADS = 64
"""Points of a curve: about as many as a terminal has columns for a plot."""
MOST_EXACT = 128
"""Measured loads that are points of a curve, too; together it has at most 200."""
ENOUGH = 2
"""Loads that state the KPI, from which on a model draws a curve of a configuration."""


def chart(
    chain: ChainForecaster,
    configuration: Configuration,
    *,
    primary: PrimaryWorkload,
    samples: Sequence[Sample] = (),
    model: Forecaster | None = None,
    direct: Forecaster | None = None,
    method: str = "",
    usage: ExpectedUsage | None = None,
) -> ChainChart:
    """What is predicted and what was measured.

    Parameters
    ----------
    primary : the range of loads.
    samples : of the chain, and of any configuration.
    model : of the chain: it predicts, and the profiles are told beside it.
    direct, method : trained on the chain's own samples, and its name.
    usage : what the profiles say of the CPU.

    Raises
    ------
    DataError
        If the configuration lacks a parameter, or has a category that was never profiled.
    """
    own = [s for s in samples if s.valid and s.point.configuration == configuration]
    seen = sorted({s.point.wl for s in own})
    loads = loads_over(primary, LOADS, *_spread(seen))
    points = [(configuration, load) for load in loads]
    along = chain.outlook(points)
    limits = limits_along(along, limiting_with(chain, along, points, model))
    alone = curve_of(along.chain, loads, limits)
    return ChainChart(
        configuration=configuration,
        predicted=alone if model is None else curve_of(model.forecast(points), loads, limits),
        profiles=alone if _corrects(model) else None,
        measured=None if direct is None else _measured(direct, method, own, loads),
        takeovers=tuple(takeovers(loads, limits, along.chain.extrapolates)),
        functions=tuple(_functions(chain, along)),
        cpu=() if usage is None else tuple(_cpu(usage, own)),
        rests_on=model.rests_on if isinstance(model, MeasuredFirst) else 0,
    )


def _spread(seen: Sequence[float]) -> list[float]:
    """Loads that were measured: between two points of a curve lies something else than what is
    predicted at the load itself, where it bends. Of too many the ends and some between."""
    if len(seen) <= MOST_EXACT:
        return list(seen)
    return [seen[round(i * (len(seen) - 1) / (MOST_EXACT - 1))] for i in range(MOST_EXACT)]


def _corrects(model: Forecaster | None) -> bool:
    """Whether it says something else than the profiles."""
    return model is not None and not (isinstance(model, MeasuredFirst) and model.unmeasured)


def _measured(
    direct: Forecaster, method: str, own: Sequence[Sample], loads: Sequence[float]
) -> Curve | None:
    """Within the loads that state the KPI: beyond them a model of samples says nothing measured."""
    known = sorted({s.point.wl for s in own if stated(s, direct.kpi)})
    if len(known) < ENOUGH:
        return None
    within = [known[0], *(load for load in loads if known[0] < load < known[-1]), known[-1]]
    said = direct.forecast([(own[0].point.configuration, load) for load in within])
    return Curve(direct.kpi, method, tuple(within), *figures_of(said))


def _functions(chain: ChainForecaster, along: Outlook) -> Iterator[FunctionCurve]:
    for vnf in chain.vnfs:
        yield FunctionCurve(
            vnf.name,
            chain.parts[vnf.name].target,
            tuple(along.loads[vnf.name].tolist()),
            *figures_of(along.functions[vnf.name]),
            tuple(along.effects[vnf.name].tolist()),
        )


def _cpu(usage: ExpectedUsage, own: Sequence[Sample]) -> Iterator[CpuContrast]:
    """By function, at every load whose samples say what it used."""
    at_load: dict[float, list[Sample]] = defaultdict(list)
    for sample in sorted(own, key=lambda s: s.point.wl):
        at_load[sample.point.wl].append(sample)
    if not at_load:
        return
    expected = usage.forecast([(own[0].point.configuration, wl) for wl in at_load])
    for vnf, said in expected.items():
        figures = zip(*figures_of(said), strict=True)
        for (wl, samples), alone in zip(at_load.items(), figures, strict=True):
            used = [s.usage[vnf].cpu_cores for s in samples if vnf in s.usage]
            if used:
                yield CpuContrast(vnf, wl, Estimate(*alone), float(np.mean(used)))
