"""Which samples a chain's model learns from: those that fit its target (paper A, 7.1 and 7.2).

A model that is trained on all samples alike (papers A and B) follows the trend that most of them
show; where that is not the trend near the SLA's limit, fewer samples teach more. A correction of
the stand-alone profiles needs no such help: its terms say which trend a sample belongs to, and the
lowest KPIs tell what the chain adds. So `LAW_RULES` only ask for the values that production fixes,
`DEFAULT_RULES` for more. Inputs that are fixed are no inputs of a model (`without`); the profiles
that a correction rests on know them all the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from workbench.chains.bounded_forecaster import BoundedForecaster
from workbench.chains.demand import carried, loses
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, ParameterValue, PrimaryWorkload
from workbench.domain.samples import Sample
from workbench.models.base import Floats, ProfileModel
from workbench.models.forecast import Forecast, Points
from workbench.models.selection import stated
from workbench.models.table import Table, table_of

LOW_FACTOR = 10.0
"""KPIs under a tenth of the limit are left out: paper A leaves out what is under 100 ms for
targets above 1000 ms (7.1)."""
BAND_FACTOR = 3.0
"""The band around the limit reaches this factor up and down."""
FEWEST_POINTS = 4
"""Operating points below which a band is widened: fewer show no trend."""
_REPEATS = 4
"""Degrees of freedom from which repetitions tell the noise better than intervals do."""

Bools = NDArray[np.bool_]


# ------------------------------------------------------------------------- what is learned from


@dataclass(frozen=True)
class Measured:
    """The samples of a chain that state one KPI: their table, and their places in its order.

    Attributes
    ----------
    carried : requests or packets per second that came through, of shape (n,); NaN where that is not
        stated, or where what was lost has cost CPU, too.
    cores : by function, what it used, of shape (n,); NaN where that was not measured.
    """

    table: Table
    points: tuple[tuple[Configuration, float], ...]
    carried: Floats
    cores: Mapping[str, Floats]

    def __len__(self) -> int:
        return len(self.table)

    def take(self, chosen: Bools) -> Measured:
        """The chosen samples only; `chosen` is of shape (n,)."""
        kept = tuple(point for point, yes in zip(self.points, chosen, strict=True) if yes)
        cores = {vnf: used[chosen] for vnf, used in self.cores.items()}
        return Measured(self.table.take(chosen), kept, self.carried[chosen], cores)

    @property
    def noise(self) -> float:
        """Log standard deviation by which samples of one operating point scatter.

        Of the repetitions, pooled, where there are enough; else what the intervals say.
        """
        _, place = np.unique(self.table.points, return_inverse=True)
        count = np.bincount(place)
        degrees = len(self) - len(count)
        if degrees < _REPEATS:
            return float(np.median(self.table.noise))
        centre = np.bincount(place, self.table.y) / count
        squares = float(np.square(self.table.y - centre[place]).sum())
        return math.sqrt(squares / degrees)


def measured(
    chain: str, samples: Sequence[Sample], *, kpi: str, kpi_max: float, primary: PrimaryWorkload
) -> Measured:
    """Valid samples of a chain that state the KPI. Raises `DataError` as `table_of` does."""
    table = table_of(chain, samples, kpi=kpi, kpi_max=kpi_max, primary=primary)
    used = [s for s in samples if s.point.target == chain and stated(s, kpi)]
    components = dict.fromkeys(name for s in used for name in s.usage)
    return Measured(
        table,
        tuple((s.point.configuration, s.point.wl) for s in used),
        np.array([math.nan if loses(s) else carried(s) or math.nan for s in used]),
        {c: np.array([_cores(s, c) for s in used]) for c in components},
    )


def _cores(sample: Sample, component: str) -> float:
    used = sample.usage.get(component)
    return math.nan if used is None else used.cpu_cores


# ------------------------------------------------------------------------- which of them


@dataclass(frozen=True)
class Goal:
    """What the model is for.

    Attributes
    ----------
    limit : of the SLA, in the KPI's unit; None without an SLA.
    fixed : inputs that do not vary in production, with their values.
    """

    kpi: str
    limit: float | None = None
    fixed: Mapping[str, ParameterValue] = field(default_factory=dict)
    band_factor: float = BAND_FACTOR
    low_factor: float = LOW_FACTOR
    fewest_points: int = FEWEST_POINTS


@dataclass(frozen=True)
class Aligned:
    """Samples to train on.

    `left_out` counts, by rule; `notes` are sentences on rules that were widened or had no say.
    """

    samples: tuple[Sample, ...]
    left_out: Mapping[str, int]
    notes: tuple[str, ...]


Rule = Callable[[list[Sample], Goal], tuple[list[Sample], str]]
"""The samples that stay, and a note where there is something to say."""


def _fixed_inputs(samples: list[Sample], goal: Goal) -> tuple[list[Sample], str]:
    kept = [s for s in samples if agrees(s.point.configuration, goal.fixed)]
    if not kept:
        wanted = ", ".join(f"{key}={value}" for key, value in goal.fixed.items())
        raise DataError(
            f"none of {len(samples)} samples was taken at {wanted}, which production has",
            where=goal.kpi,
            remedy="Measure there, or leave the input free",
        )
    return kept, ""


def _low_kpi(samples: list[Sample], goal: Goal) -> tuple[list[Sample], str]:
    return _within(samples, goal, goal.low_factor, math.inf)


def _sla_band(samples: list[Sample], goal: Goal) -> tuple[list[Sample], str]:
    return _within(samples, goal, goal.band_factor, goal.band_factor)


RULES: Mapping[str, Rule] = {
    "fixed-inputs": _fixed_inputs,
    "low-kpi": _low_kpi,
    "sla-band": _sla_band,
}
LAW_RULES = ("fixed-inputs",)
"""Whatever else is asked for: a model that does without an input must not learn of its values."""
DEFAULT_RULES = (*LAW_RULES, "low-kpi")


def must_be_rules(names: Sequence[str]) -> None:
    """Raises `DataError` if one is unknown."""
    for name in names:
        if name not in RULES:
            raise DataError(
                f"no rule of alignment is called {name!r}",
                remedy=f"Choose from: {', '.join(RULES)}",
            )


def align(samples: Sequence[Sample], goal: Goal, rules: Sequence[str] = DEFAULT_RULES) -> Aligned:
    """Samples that fit the goal, by the named rules in their order.

    Invalid samples and those that only bound the KPI are not counted: no model learns from them.

    Raises
    ------
    DataError
        If a rule is unknown, no sample states the KPI, or none was taken at the fixed inputs.
    """
    must_be_rules(rules)
    kept = [s for s in samples if stated(s, goal.kpi)]
    if not kept:
        raise DataError(
            f"none of {len(samples)} samples states it: they are invalid, overloaded or lack it",
            where=goal.kpi,
            remedy="Measure at loads that the chain carries, or choose another KPI",
        )
    left_out: dict[str, int] = {}
    notes: list[str] = []
    for name in rules:
        before = len(kept)
        kept, note = RULES[name](kept, goal)
        left_out[name] = before - len(kept)
        notes += [f"{name}: {note}"] * bool(note)
    return Aligned(tuple(kept), left_out, tuple(notes))


def agrees(configuration: Configuration, fixed: Mapping[str, ParameterValue]) -> bool:
    """Whether a configuration has these values; what it does not have cannot disagree."""
    values = {**configuration.resources, **configuration.workload}
    return all(_equal(values[key], value) for key, value in fixed.items() if key in values)


def _equal(one: ParameterValue, other: ParameterValue) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return math.isclose(one, other)


def _within(samples: list[Sample], goal: Goal, down: float, up: float) -> tuple[list[Sample], str]:
    """Samples from limit/`down` to limit·`up`, the factors doubled until there are enough."""
    if goal.limit is None:
        return samples, "there is no SLA limit to align with"
    fewest = min(goal.fewest_points, _distinct(samples))
    note = ""
    while True:
        low, high = goal.limit / down, goal.limit * up
        kept = [s for s in samples if low <= s.kpis[goal.kpi].value <= high]
        if _distinct(kept) >= fewest:
            return kept, note
        if max(down, up if math.isfinite(up) else 1.0) > 1e9:
            return samples, f"fewer than {fewest} operating points lie in any band: all are used"
        down, up = 2.0 * down, 2.0 * up
        note = f"widened to {goal.limit / down:.4g}-{goal.limit * up:.4g} for {fewest} points"


def _distinct(samples: Sequence[Sample]) -> int:
    return len({(s.point.configuration, s.point.wl) for s in samples})


# ------------------------------------------------------------------------- inputs that are fixed


def without(table: Table, inputs: Collection[str]) -> Table:
    """The table as if these inputs were not known of its samples."""
    kept = [place for place, column in enumerate(table.columns) if column.key not in inputs]
    return replace(table, columns=tuple(table.columns[place] for place in kept), X=table.X[:, kept])


class FixedInputs(BoundedForecaster):
    """A model that was trained without inputs, for configurations that state them.

    Where they have other values than those that are fixed, it extrapolates.
    """

    def __init__(
        self, table: Table, model: ProfileModel, fixed: Mapping[str, ParameterValue]
    ) -> None:
        super().__init__(table, model)
        self.fixed = fixed

    def forecast(self, points: Points) -> Forecast:
        said = super().forecast(points)
        strange = np.array([not agrees(c, self.fixed) for c, _ in points], dtype=bool)
        return replace(said, extrapolates=said.extrapolates | strange)
