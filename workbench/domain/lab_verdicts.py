"""What the lab said of an allocation at the load that a recommendation is of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from workbench.domain.configurations import SamplePoint
from workbench.domain.parameters import Configuration, Sla
from workbench.domain.projection import SessionView
from workbench.domain.recommendations import Deployment, Recommendation, Verification


def lab_verdict(
    view: SessionView, found: Recommendation, deployment: Deployment
) -> Verification | None:
    """Whether what was measured of a deployment holds all limits; None where nothing was.

    A verification of that deployment counts, of whichever recommendation of the same SLAs, the
    latest first; then valid samples of it at the asked load that were taken for anything else, of
    several the median by the first limit's KPI.
    """
    own = found.chosen is not None and found.chosen.deployment.key == deployment.key
    if own and found.verified is not None:
        return found.verified
    for issued in reversed(view.recommendations):
        one = issued.recommendation
        if one.verified is None or one.chosen is None:
            continue
        alike = (one.chain, one.slas) == (found.chain, found.slas)
        if alike and one.chosen.deployment.key == deployment.key:
            return one.verified
    return _of_samples(list(_samples(view, found, deployment)), found.slas)


def _of_samples(samples: list[SamplePoint], limits: Sequence[Sla]) -> Verification | None:
    samples = [s for s in samples if all(sla.kpi in s.kpis for sla in limits)]
    if not samples or not limits:
        return None
    samples.sort(key=lambda sample: sample.kpis[limits[0].kpi].value)
    typical = samples[len(samples) // 2]
    kpis = {sla.kpi: typical.kpis[sla.kpi] for sla in limits}
    met = all(sla.holds(kpis[sla.kpi].value) for sla in limits)
    return Verification(typical.id, kpis, met, 0.0)


def _samples(
    view: SessionView, found: Recommendation, deployment: Deployment
) -> Iterable[SamplePoint]:
    """Valid ones of single instances, at the asked load."""
    if any(count > 1 for count in deployment.replicas.values()):
        return
    for taken in (point for trials in view.trials for point in trials.samples):
        sample, here = taken.sample, taken.target == found.chain
        if not (here and sample.valid and _at(sample.wl, found.slas)):
            continue
        if _is_of(taken.configuration, deployment, found.slas):
            yield sample


def _is_of(configuration: Configuration, deployment: Deployment, limits: Sequence[Sla]) -> bool:
    asked = {key: value for sla in limits for key, value in sla.workload.items()}
    same_load = all(configuration.workload.get(key) == value for key, value in asked.items())
    return same_load and dict(configuration.resources) == dict(deployment.allocation)


def _at(wl: float, limits: Sequence[Sla]) -> bool:
    return all(sla.wl is not None and math.isclose(wl, sla.wl, rel_tol=1e-6) for sla in limits)
