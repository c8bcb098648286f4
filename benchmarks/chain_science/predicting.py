"""What says a chain's KPI: its functions' profiles by a rule, what canaries teach, and baselines.

Everything is made as the engine makes it: the method of a profile is chosen by cross-validation
among the short list, further KPIs of a function are fitted by the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chain_science.grids import FIRST, Grid
from workbench.chains.alignment import Measured, measured
from workbench.chains.base import family_of
from workbench.chains.composition import ChainForecaster
from workbench.chains.function_profiles import Part, part_of, parts_of
from workbench.chains.rules import WeakestLink, default_rule
from workbench.chains.trend import trained
from workbench.domain.campaign import TargetPlan
from workbench.domain.errors import WorkbenchError
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.engine.answers.chain_models import factory_of, method_named, usual_method
from workbench.engine.answers.chain_profiles import learned_for
from workbench.engine.learning.refitting import fitted
from workbench.engine.learning.scoring import FEW_SAMPLES, row_of, short_list, table_for
from workbench.models.base import Floats
from workbench.models.crossvalidation import best_of
from workbench.models.estimator import one_thread
from workbench.models.forecast import Forecaster, Points

PREDICTION, WEAKEST, OURS = "prediction", "weakest link", "ours"
RATIO, PROPORTIONAL = "constant ratio", "proportional"
SIMPLE = (WEAKEST, PROPORTIONAL, RATIO)
"""The best of these is to be beaten (METHOD.md 9)."""
PAPER = {"paper A's Lasso": "lasso2", "paper A's GP": "gaussian-process-a"}
"""Trained on the canaries of each configuration alone, over the load (paper A, 7.2 and 7.3)."""


@dataclass(frozen=True)
class Known:
    """A chain of a grid, and the profiles of its functions from the first pass."""

    grid: Grid
    plan: TargetPlan
    kpi: str
    parts: Mapping[str, Part]

    @property
    def kpi_max(self) -> float:
        return self.grid.campaign.ceiling(self.kpi)

    @cached_property
    def prediction(self) -> ChainForecaster:
        return self.by(default_rule(self.kpi, family_of(self.grid.campaign.load.key)))

    @cached_property
    def weakest(self) -> ChainForecaster:
        return self.by(WeakestLink())

    def by(self, rule: object) -> ChainForecaster:
        graph = self.plan.target.graph
        return ChainForecaster(graph, self.parts, self.kpi, rule, kpi_max=self.kpi_max)  # type: ignore[arg-type]

    def seen(self, samples: Sequence[Sample]) -> Measured:
        name = self.plan.target.name
        return measured(
            name, samples, kpi=self.kpi, kpi_max=self.kpi_max, primary=self.plan.primary
        )


def known(grid: Grid, plan: TargetPlan, kpi: str) -> Known:
    parts = [_part(grid, own, kpi) for own in grid.functions]
    return Known(grid, plan, kpi, parts_of(plan.target.graph, parts))


_made: dict[tuple[str, int, str, str], Part] = {}


def _part(grid: Grid, plan: TargetPlan, kpi: str) -> Part:
    key = grid.name, grid.seed, plan.target.name, kpi
    if key not in _made:
        if len(_made) > 16:
            _made.clear()
        _made[key] = _fitted_part(grid, plan, kpi)
    return _made[key]


def _fitted_part(grid: Grid, plan: TargetPlan, kpi: str) -> Part:
    campaign, name = grid.campaign, plan.target.name
    own = grid.of(name, FIRST)
    (_, *by_themselves), besides = learned_for(kpi, campaign.load.key, functions=2)
    with one_thread():
        method = chosen(grid, plan, own, kpi)
        methods = dict.fromkeys((kpi, *besides), method)
        methods |= {one: chosen(grid, plan, own, one) for one in by_themselves}
        profiles = [fitted(table_for(campaign, name, own, one), by) for one, by in methods.items()]
    return part_of(plan.target, own, profiles)


def chosen(grid: Grid, plan: TargetPlan, own: Sequence[Sample], kpi: str) -> str:
    """The method of the engine's short list that cross-validates best."""
    name = plan.target.name
    table = table_for(grid.campaign, name, own, kpi)
    methods = short_list(grid.campaign, name)
    rows = [row_of(table, method, "point", FEW_SAMPLES) for method in methods]
    return best_of(rows) or methods[0]


# ------------------------------------------------------------------------- who says it


Says = Callable[[Points], Floats]
"""Log KPI at points (m,); NaN where nothing can be said."""


def sayers(given: Known, canary: Sequence[Sample]) -> dict[str, Says]:
    """All that is compared, by name, taught by the same canaries."""
    seen = given.seen(canary)
    said: dict[str, Says] = {
        PREDICTION: _mean(given.prediction),
        WEAKEST: _mean(given.weakest),
        RATIO: _ratio(given.weakest, seen),
        PROPORTIONAL: _proportional(seen),
    }
    said |= {name: _each(seen, method) for name, method in PAPER.items()}
    said[OURS] = _mean(corrected(given, seen))
    return said


def corrected(given: Known, seen: Measured) -> Forecaster:
    """What `workbench canary` proposes."""
    prediction = given.prediction
    try:
        return method_named(usual_method(prediction), prediction, None).train(seen)
    except WorkbenchError:  # too few operating points: the prediction stays
        return prediction


def _mean(forecaster: Forecaster) -> Says:
    return lambda points: forecaster.forecast(points).mean


def _own(seen: Measured) -> dict[Configuration, Measured]:
    order = [c for c, _ in seen.points]
    return {c: seen.take(np.array([c == one for one in order])) for c in dict.fromkeys(order)}


def _ratio(base: Forecaster, seen: Measured) -> Says:
    """By configuration, the mean log ratio of its canaries."""
    gaps = {
        c: float(np.mean(own.table.y - base.forecast(own.points).mean))
        for c, own in _own(seen).items()
    }
    return lambda points: base.forecast(points).mean + [gaps.get(c, math.nan) for c, _ in points]


def _proportional(seen: Measured) -> Says:
    """By configuration, KPI proportional to the load from its last canary."""
    last = {}
    for c, own in _own(seen).items():
        place = int(np.argmax([wl for _, wl in own.points]))
        last[c] = float(own.table.y[place]) - math.log(own.points[place][1])
    return lambda points: np.array([last.get(c, math.nan) + math.log(wl) for c, wl in points])


def _each(seen: Measured, method: str) -> Says:
    """A model of each configuration, of its canaries alone."""
    models: dict[Configuration, Forecaster] = {}
    for c, own in _own(seen).items():
        try:
            with one_thread():
                models[c] = trained(factory_of(method), own)
        except WorkbenchError:
            continue

    def say(points: Points) -> Floats:
        said = np.full(len(points), math.nan)
        for c, model in models.items():
            rows = [k for k, (one, _) in enumerate(points) if one == c]
            if rows:
                said[rows] = model.forecast([points[k] for k in rows]).mean
        return said

    return say
