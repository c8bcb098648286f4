"""A sampler that raises the load by a factor until the function breaks, then refines below.

An example of a plugin: one class that implements `workbench.sampling.base.Sampler`, one entry
point in `pyproject.toml`. It is what load generators offer as a ramp to the first failure; it
repeats nothing, so its breakpoint is as lucky as one window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.domain.campaign import SamplingPlan
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.sampling.base import Ask, Ending, Space

FACTOR = 2.0
"""From one load to the next, until the function breaks; option `factor`."""
FINE = 4
"""Loads in the last gap, once it is known."""


class RampSampler:
    """All that it knows is in the samples, so that it can be rebuilt from them at any time.

    Parameters
    ----------
    space : Space
        What may be asked: configurations, range of `wl`, KPI and ceiling.
    plan : SamplingPlan
        `max_samples` per configuration; `options["factor"]`, over 1.
    """

    def __init__(self, space: Space, plan: SamplingPlan) -> None:
        self._space, self._plan = space, plan
        self._factor = max(1.05, float(plan.options.get("factor", FACTOR)))
        self._samples: dict[Configuration, list[Sample]] = {c: [] for c in space.configurations}
        self._skipped: set[Configuration] = set()

    def tell(self, samples: Sequence[Sample]) -> None:
        """Samples of other targets are nothing to it."""
        for sample in samples:
            if sample.point.target == self._space.target:
                self._samples.get(sample.point.configuration, []).append(sample)

    def skip(self, configuration: Configuration) -> None:
        self._skipped.add(configuration)

    def ask(self) -> Ask | None:
        for configuration, samples in self._samples.items():
            if configuration not in self.endings:
                wl = self._next(samples)
                assert wl is not None, "a configuration without a next load has ended"
                return Ask(configuration, wl, 0, wl, wl, "ramps up to the first failure")
        return None

    @property
    def endings(self) -> Mapping[Configuration, Ending]:
        found: dict[Configuration, Ending] = {}
        for configuration, samples in self._samples.items():
            if configuration in self._skipped:
                found[configuration] = Ending("skipped", f"skipped after {len(samples)} samples")
            elif len(samples) >= self._plan.max_samples or self._next(samples) is None:
                if any(s.valid for s in samples):
                    found[configuration] = Ending("converged", f"{len(samples)} samples taken")
                else:
                    found[configuration] = Ending("unusable", "none of its samples is valid")
        return found

    def _next(self, samples: Sequence[Sample]) -> float | None:
        """The next load of a configuration; None when the last gap is filled."""
        ladder = self._ladder()
        tried = {s.point.wl for s in samples}
        broken = {s.point.wl for s in samples if s.valid and self._breaks(s)}
        top = next((place for place, wl in enumerate(ladder) if wl in broken), None)
        if top is None:
            return next((wl for wl in ladder if wl not in tried), None)
        if top == 0:
            return None  # it breaks at the lowest load already
        low, high = ladder[top - 1], ladder[top]
        fine = (low * (high / low) ** (place / (FINE + 1)) for place in range(1, FINE + 1))
        if self._space.primary.integer:
            fine = (float(round(wl)) for wl in fine)
        return next((wl for wl in fine if wl not in tried), None)

    def _breaks(self, sample: Sample) -> bool:
        """Its KPI passes the ceiling, or cannot be stated any more because of overload."""
        kpi = sample.kpi(self._space.kpi)
        return "overloaded" in sample.labels or kpi is None or kpi >= self._space.kpi_max

    def _ladder(self) -> list[float]:
        primary = self._space.primary
        loads, wl = [], primary.low
        while wl < primary.high:
            loads.append(float(round(wl)) if primary.integer else wl)
            wl *= self._factor
        return [*dict.fromkeys(loads), primary.high]
