"""Which samples a model may learn from, and as what: values, or the mere fact of overload."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.domain import kpis
from workbench.domain.errors import DataError
from workbench.domain.lab import EMULATED
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Estimate, Sample
from workbench.models.scales import log_kpi

BOUND_LABELS = frozenset({"overloaded", "censored"})
"""Labels of samples some of whose response times are lower bounds."""


def of_configuration(
    target: str, configuration: Configuration, samples: Sequence[Sample]
) -> list[Sample]:
    """Samples of one configuration of a target, valid or not, by rising `wl`, then as given."""
    return sorted(
        (s for s in samples if s.point.target == target and s.point.configuration == configuration),
        key=lambda s: s.point.wl,
    )


def stated(sample: Sample, kpi: str) -> Estimate | None:
    """The KPI of a valid sample as a figure; None where it is absent or only a lower bound.

    A percentile that lies among unfinished requests, or that grows for as long as one watches
    because the point is overloaded, is known to be high and nothing more (METHOD.md 4). Such a
    bound is written as an interval that begins at its value, on a sample that is labelled; a share
    of none, which begins there, too, is a figure.
    """
    estimate = sample.kpis.get(kpi)
    if not sample.valid or estimate is None:
        return None
    is_bound = 0.0 < estimate.value <= estimate.low and not BOUND_LABELS.isdisjoint(sample.labels)
    return None if is_bound else estimate


def must_be_alike(samples: Sequence[Sample]) -> None:
    """Raises `DataError` unless one load model and one definition of latency made them all,
    on an emulated CPU or not.

    Figures of different definitions never meet in a model (METHOD.md 2 and 3).
    """
    kinds = sorted({f"{s.load_model} load, latency by {s.kpi_definition}" for s in samples})
    if len(kinds) > 1:
        raise DataError(
            f"samples of different kinds never share a model: {'; '.join(kinds)}",
            remedy="Measure all of them with one load model and one generator",
        )
    if len({EMULATED in s.labels for s in samples}) > 1:
        raise DataError(
            "samples of an emulated CPU and of a real one never share a model",
            remedy="Measure all of them on the VM lab, or none",
        )


def must_share_a_unit(samples: Sequence[Sample], kpi: str) -> None:
    """Raises `DataError` where valid samples that lack the KPI state it in another unit.

    A name is a figure and its unit (`p95_ms`): beside `p95_s` a model would learn from one half of
    what was measured, and nobody would see it.
    """
    figure = kpi.rpartition("_")[0]
    lacking = [s.kpis for s in samples if s.valid and kpi not in s.kpis]
    others = sorted({n for names in lacking for n in names if n.rpartition("_")[0] == figure != ""})
    if others and len(lacking) < sum(s.valid for s in samples):
        raise DataError(
            f"{kpi} and {', '.join(others)} are one figure in different units",
            remedy="Import the data set again with one unit for all of its samples",
        )


def capped_log_kpi(sample: Sample, kpi: str, ceiling: float) -> float:
    """Log KPI of a valid sample, at `ceiling` (a log) where it is above or only bounded below."""
    estimate = stated(sample, kpi)
    return ceiling if estimate is None else min(log_kpi(kpi, estimate.value), ceiling)


def limited_by_source(samples: Sequence[Sample]) -> float | None:
    """The lowest load at which the source, not the function, was the limit; None if nowhere."""
    loads = [s.point.wl for s in samples if not s.valid and s.reason == "source_saturated"]
    return min(loads, default=None)


def rate_kpi(sample: Sample) -> str | None:
    """The name of what a sample carried: requests or packets per second; None if it has neither."""
    return next((name for name in sample.kpis if kpis.of(name).carried and sample.kpi(name)), None)
