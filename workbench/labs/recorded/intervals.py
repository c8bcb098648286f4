"""Intervals of figures that a table states without: from its own repetitions, else as told."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from workbench.domain.errors import LabError
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Estimate, Sample

FEWEST = 5
"""Repetitions beyond the first, over all points, from which a spread is known well enough."""
FROM_REPETITIONS, ASSUMED_INTERVAL = "interval_of_repetitions", "assumed_interval"
"""Labels of samples whose intervals were not stated: what they rest on."""

NORMAL_95 = 1.96


def unstated(value: float) -> Estimate:
    """A figure whose interval is to be found."""
    return Estimate(value, math.nan, math.nan)


@dataclass(frozen=True)
class Completed:
    """Samples with all their intervals, and what has to be said of those that were not stated."""

    samples: tuple[Sample, ...]
    says: str = ""


def completed(samples: Sequence[Sample], spread: float | None, file: str) -> Completed:
    """Samples with an interval for every figure.

    A figure without one gets the log-sd of the repetitions of its target (of all targets, where
    those are fewer than `FEWEST`), pooled over operating points; where nobody repeated anything,
    `spread`. Raises `LabError` where that is None: an interval is never made up.
    """
    lacking = sorted({k for s in samples for k, e in s.kpis.items() if math.isnan(e.low)})
    if not lacking:
        return Completed(tuple(samples))
    known = {
        (target, kpi): _log_sd(samples, kpi, target)
        for kpi in lacking
        for target in {s.point.target for s in samples}
    }
    if spread is None and (unknown := sorted({k for (_, k), sd in known.items() if sd is None})):
        raise LabError(
            f"states {', '.join(unknown)} without interval, and repeats too few points to tell how "
            "far two passes differ",
            where=file,
            remedy="Say it as their log-sd, --lab recorded:FILE.csv,spread=0.24 or import --spread "
            "0.24 (a shared host's, METHOD.md 6); or give columns such as "
            f"{unknown[0]}_low and {unknown[0]}_high",
        )
    assumed = {kpi for (_, kpi), sd in known.items() if sd is None}
    says = (
        f"intervals of {', '.join(sorted(assumed))} are assumed, not measured: a log-sd of "
        f"{spread:g} between passes was given"
        if assumed
        else ""
    )
    return Completed(tuple(_with_intervals(s, known, spread) for s in samples), says)


def _log_sd(samples: Sequence[Sample], kpi: str, target: str) -> float | None:
    """Log-sd between repetitions of one point; None where too few were taken."""
    own = _deviations(s for s in samples if s.point.target == target)
    found = own.get(kpi) if own.get(kpi, (0.0, 0))[1] >= FEWEST else None
    squares, freedom = found or _deviations(samples).get(kpi, (0.0, 0))
    return math.sqrt(squares / freedom) if freedom >= FEWEST and squares > 0 else None


def _deviations(samples: Iterable[Sample]) -> dict[str, tuple[float, int]]:
    """By KPI: the sum of squared log deviations from the means of points, and its freedom."""
    logs: dict[tuple[str, Configuration, float, str], list[float]] = defaultdict(list)
    for sample in samples:
        point = sample.point
        for kpi, estimate in sample.kpis.items():
            if sample.valid and estimate.value > 0:
                key = (point.target, point.configuration, point.wl, kpi)
                logs[key].append(math.log(estimate.value))
    found: dict[str, tuple[float, int]] = {}
    for (_, _, _, kpi), values in logs.items():
        squares, freedom = found.get(kpi, (0.0, 0))
        mean = fmean(values)
        found[kpi] = squares + sum((v - mean) ** 2 for v in values), freedom + len(values) - 1
    return found


def _with_intervals(
    sample: Sample, known: dict[tuple[str, str], float | None], spread: float | None
) -> Sample:
    kpis, labels = dict(sample.kpis), dict.fromkeys(sample.labels)
    for kpi, estimate in sample.kpis.items():
        if not math.isnan(estimate.low):
            continue
        found = known[sample.point.target, kpi]
        sd = spread if found is None else found
        assert sd is not None, "refused before"
        factor = math.exp(NORMAL_95 * sd)
        kpis[kpi] = Estimate(estimate.value, estimate.value / factor, estimate.value * factor)
        labels[ASSUMED_INTERVAL if found is None else FROM_REPETITIONS] = None
    return replace(sample, kpis=kpis, labels=tuple(labels))
