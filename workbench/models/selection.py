"""Which samples a model may learn from, and as what: values, or the mere fact of overload."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample


def of_configuration(
    target: str, configuration: Configuration, samples: Sequence[Sample]
) -> list[Sample]:
    """Samples of one configuration of a target, valid or not, by rising `wl`, then as given."""
    return sorted(
        (s for s in samples if s.point.target == target and s.point.configuration == configuration),
        key=lambda s: s.point.wl,
    )


def states(sample: Sample, kpi: str) -> bool:
    """Whether the sample is valid and states the KPI.

    A valid sample that does not is overloaded: its KPI lies in the mass of unfinished requests
    (METHOD.md 4), so it is known to be high and nothing more.
    """
    return sample.valid and kpi in sample.kpis


def limited_by_source(samples: Sequence[Sample]) -> float | None:
    """The lowest load at which the source, not the function, was the limit; None if nowhere."""
    loads = [s.point.wl for s in samples if not s.valid and s.reason == "source_saturated"]
    return min(loads, default=None)
