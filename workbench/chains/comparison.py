"""Measured samples of a chain against its prediction: how far off, where, and whether it matters.

Paper A: Table 4 (errors beside a model that was trained on the chain's own samples), Fig. 8 (by
configuration), Fig. 12 (by KPI).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.chains.alignment import Bools, Measured, measured
from workbench.domain import kpis
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, PrimaryWorkload
from workbench.domain.retraining import (
    BucketScore,
    ChainComparison,
    ConfigurationScore,
    Outlier,
)
from workbench.domain.samples import Estimate, Sample
from workbench.models.base import Floats
from workbench.models.crossvalidation import ModelFactory
from workbench.models.folds import folds_of, splits_of
from workbench.models.forecast import Forecast, Forecaster
from workbench.models.scales import NORMAL_95, log_kpi
from workbench.models.scores import Scores, score
from workbench.models.selection import stated
from workbench.models.table import fitted_to

FOLDS = 5


@dataclass(frozen=True)
class Baseline:
    """What is trained on the chain's own samples: the best that may be hoped for."""

    method: str
    factory: ModelFactory
    folds: int = FOLDS
    seed: int = 0


def compare_chain(
    chain: str,
    samples: Sequence[Sample],
    forecaster: Forecaster,
    *,
    rule: str,
    kpi_max: float,
    primary: PrimaryWorkload,
    ab_floor: float,
    baseline: Baseline | None = None,
) -> ChainComparison:
    """The prediction of `forecaster` against what was measured.

    Errors are of samples that state the KPI. Repetitions of an operating point count once in the
    search for outliers; there a sample that only bounds a response time from below counts too: a
    chain that is overloaded where the prediction says it is not is worse than predicted.

    Parameters
    ----------
    samples : of the chain, and of anything else; the latter are not looked at.
    forecaster : predicts the KPI that is compared.
    rule : its name.
    kpi_max : ceiling of the KPI in its unit, above which figures count as it; inf: none.
    ab_floor : smallest relative difference that this host can show (0.1 is 10 %).
    baseline : cross-validated on the same samples, by folds of operating points.

    Raises
    ------
    DataError
        If no sample of the chain states the KPI, or the forecaster has not been profiled there or
        says what is not finite.
    """
    kpi = forecaster.kpi
    seen = measured(chain, samples, kpi=kpi, kpi_max=kpi_max, primary=primary)
    y, said = seen.table.y, forecaster.forecast(seen.points)
    if not np.isfinite([said.mean, said.low, said.high]).all():
        raise DataError("the prediction is not finite", where=f"{chain}, {kpi}, {rule}")
    reach = tuple(
        np.hypot(side, NORMAL_95 * seen.table.noise)
        for side in (said.mean - said.low, said.high - said.mean)
    )
    whole = score(kpi, y, said.mean, (said.mean - reach[0], said.mean + reach[1]))
    direct, note = _trained(seen, baseline)
    errors = _Errors(kpi, seen, said.mean, direct)
    trained = None if direct is None else score(kpi, y, direct)
    return ChainComparison(
        chain=chain,
        kpi=kpi,
        rule=rule,
        samples=whole.n,
        ab_floor=ab_floor,
        mae=whole.mae,
        mad=whole.mad,
        rmse=whole.rmse,
        mape=whole.mape,
        log_error=whole.log_error,
        coverage=whole.coverage or 0.0,
        baseline="" if baseline is None else baseline.method,
        baseline_rmse=None if trained is None else trained.rmse,
        configurations=errors.by_configuration(),
        buckets=errors.by_bucket(),
        outliers=outliers(chain, samples, forecaster, ab_floor, kpi_max),
        note=note,
    )


# ------------------------------------------------------------------------- errors


def _trained(seen: Measured, baseline: Baseline | None) -> tuple[Floats | None, str]:
    """Log KPI of each sample as the baseline says it without its fold; or why it cannot."""
    if baseline is None:
        return None, ""
    table = seen.table
    said = np.full(len(table), np.nan)
    try:
        if len(np.unique(table.points)) < 2:
            raise DataError("one operating point cannot be parted into training and test")
        for train, test in splits_of(folds_of(table.points, baseline.folds, baseline.seed)):
            model, known = fitted_to(baseline.factory(), table), table.take(train)
            model.fit(known.X, known.y, known.noise)
            said[test] = np.minimum(model.predict(table.X[test]), table.ceiling)
    except DataError as error:
        return None, f"{baseline.method} could not be trained: {error}"
    if not np.isfinite(said).all():
        return None, f"{baseline.method} says what is not finite."
    return said, ""


@dataclass(frozen=True)
class _Errors:
    """Of each sample, to be grouped; `direct` is what the baseline says."""

    kpi: str
    seen: Measured
    said: Floats
    direct: Floats | None

    def by_configuration(self) -> tuple[ConfigurationScore, ...]:
        numbers = self.seen.table.configurations
        rows = []
        for number in np.unique(numbers):
            own = numbers == number
            scores, direct = self._scores(own)
            ratio = float(np.exp(np.mean(self.seen.table.y[own] - self.said[own])))
            configuration = self.seen.points[int(np.flatnonzero(own)[0])][0]
            rows.append(
                ConfigurationScore(
                    configuration, scores.n, scores.mape, scores.log_error, ratio, direct
                )
            )
        return tuple(sorted(rows, key=lambda row: (-row.mape, row.configuration.key)))

    def by_bucket(self) -> tuple[BucketScore, ...]:
        """A bucket is a decade: 1-10, 10-100, ... in the KPI's unit."""
        decades = np.floor(self.seen.table.y / math.log(10.0) + 1e-9)
        rows = []
        for decade in np.unique(decades):
            scores, direct = self._scores(decades == decade)
            low, high = 10.0 ** float(decade), 10.0 ** float(decade + 1.0)
            rows.append(BucketScore(low, high, scores.n, scores.mape, scores.log_error, direct))
        return tuple(rows)

    def _scores(self, own: Bools) -> tuple[Scores, float | None]:
        y = self.seen.table.y[own]
        direct = None if self.direct is None else score(self.kpi, y, self.direct[own]).mape
        return score(self.kpi, y, self.said[own]), direct


# ------------------------------------------------------------------------- outliers


@dataclass(frozen=True)
class _Figure:
    """What was measured at one operating point, as logs; a bound has no upper end.

    `bounded`: a sample of it only says that the KPI is that high, since the chain is overloaded.
    `capped`: it counts as the ceiling, and may be any higher.
    """

    configuration: Configuration
    wl: float
    mean: float
    low: float
    high: float
    bounded: bool
    capped: bool


def outliers(
    chain: str,
    samples: Sequence[Sample],
    forecaster: Forecaster,
    ab_floor: float,
    kpi_max: float = math.inf,
) -> tuple[Outlier, ...]:
    """Configurations whose chain is better or worse than predicted, largest departure first.

    At an operating point that is so where the two 95 % intervals lie apart and the figures differ
    by a factor of more than 1 + `ab_floor`. A configuration may be better at some loads and worse
    at others; it is then listed twice. Above `kpi_max` figures count as it, as in profiles. Nothing
    is claimed of a load that overloads the chain where the prediction extrapolates: functions have
    no response times there that it could know of.
    """
    figures = _figures(chain, samples, forecaster.kpi, log_kpi(forecaster.kpi, kpi_max))
    if not figures:
        return ()
    said = forecaster.forecast([(f.configuration, f.wl) for f in figures])
    found: dict[tuple[Configuration, bool], list[int]] = defaultdict(list)
    for place, figure in enumerate(figures):
        if figure.bounded and said.extrapolates[place]:
            continue
        gap = figure.mean - said.mean[place]
        apart = figure.low > said.high[place] if gap > 0.0 else figure.high < said.low[place]
        if apart and abs(gap) > math.log1p(ab_floor):
            found[figure.configuration, gap > 0.0].append(place)
    rows = [
        _outlier(forecaster.kpi, above, [figures[k] for k in places], places, said, figures)
        for (_, above), places in found.items()
    ]
    return tuple(sorted(rows, key=lambda o: (-abs(math.log(o.ratio)), o.configuration.key)))


def _outlier(
    kpi: str,
    above: bool,
    own: list[_Figure],
    places: list[int],
    said: Forecast,
    every: list[_Figure],
) -> Outlier:
    gaps = [abs(figure.mean - said.mean[k]) for figure, k in zip(own, places, strict=True)]
    largest = int(np.argmax(gaps))
    figure, k = own[largest], places[largest]
    return Outlier(
        configuration=figure.configuration,
        verdict="better" if above == kpis.of(kpi).more_is_better else "worse",
        wl=figure.wl,
        measured=_estimate(figure.mean, figure.low, figure.high),
        predicted=_estimate(said.mean[k], said.low[k], said.high[k]),
        ratio=math.exp(figure.mean - said.mean[k]),
        loads=tuple(sorted(f.wl for f in own)),
        points=sum(f.configuration == figure.configuration for f in every),
        bounded=figure.bounded or figure.capped,
    )


def _estimate(mean: float, low: float, high: float) -> Estimate:
    return Estimate(math.exp(mean), math.exp(low), math.exp(high))


def _figures(chain: str, samples: Sequence[Sample], kpi: str, ceiling: float) -> list[_Figure]:
    """Operating points of valid samples; repetitions as one, their noise taken as independent."""
    by_point: dict[tuple[Configuration, float], list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.point.target == chain and sample.valid and kpi in sample.kpis:
            by_point[sample.point.configuration, sample.point.wl].append(sample)
    figures = []
    for (configuration, wl), own in by_point.items():
        pooled = _pooled(kpi, [sample.kpis[kpi] for sample in own])
        mean, low, high = (min(end, ceiling) for end in pooled)
        bounded = any(stated(sample, kpi) is None for sample in own)
        capped = pooled[0] > ceiling
        figures.append(_Figure(configuration, wl, mean, low, high, bounded, capped))
    return figures


def _pooled(kpi: str, found: Sequence[Estimate]) -> tuple[float, float, float]:
    value, low, high = (
        np.array([log_kpi(kpi, v) for v in ends])
        for ends in zip(*((e.value, e.low, e.high) for e in found), strict=True)
    )
    mean, count = float(value.mean()), len(found)
    below = float(np.linalg.norm(value - low)) / count
    above = float(np.linalg.norm(high - value)) / count
    return mean, mean - below, mean + above
