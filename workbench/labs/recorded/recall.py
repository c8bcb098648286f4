"""Answers from samples: the one at a point, or what lies between its neighbours."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Estimate, Finding, KpiDefinition, Measurement, Sample, Usage
from workbench.measuring.judging import sample_id

SAME_WL = 1e-9
"""Relative difference up to which two values of `wl` are the same."""
INTERPOLATED, NEAREST, WITHOUT_WINDOWS = "interpolated", "nearest", "without_windows"
FROM = "from:"
"""Label in front of the id of a sample that an answer rests on."""

Blend = Callable[[float, float], float]
"""A figure between that of the lower and that of the upper neighbour."""


@dataclass(frozen=True)
class RecordedMeasurements:
    """Measurements of one load model, by configuration, by `wl`, by repetition."""

    load_model: str
    by_configuration: Mapping[tuple[str, str], Sequence[Measurement]]
    interpolates: bool = False

    @classmethod
    def of(
        cls, measurements: Iterable[Measurement], load_model: str, *, interpolates: bool = False
    ) -> RecordedMeasurements:
        """Keep what was measured under `load_model`: open and closed loops never mix."""
        kept: dict[tuple[str, str], list[Measurement]] = defaultdict(list)
        for measurement in measurements:
            if measurement.sample.load_model == load_model:
                kept[_place(measurement.sample.point)].append(measurement)
        for found in kept.values():
            found.sort(key=lambda m: (m.sample.point.wl, m.sample.point.repetition))
        return cls(load_model, kept, interpolates)

    def loads(self, target: str, configuration: Configuration) -> tuple[float, ...]:
        """Where a campaign measured, rising; loads of trials lie wherever they were asked for."""
        known = self.by_configuration.get((target, configuration.key), ())
        rising = [m.sample.point.wl for m in known if m.sample.purpose == "profile"]
        return tuple(wl for n, wl in enumerate(rising) if n == 0 or not _same(wl, rising[n - 1]))

    @property
    def repetitions(self) -> int:
        counts = Counter(
            (place, m.sample.point.wl)
            for place, known in self.by_configuration.items()
            for m in known
            if m.sample.purpose == "profile"
        )
        return max(counts.values(), default=0)

    def knows(self, point: OperatingPoint) -> bool:
        return _place(point) in self.by_configuration

    def recall(self, point: OperatingPoint) -> Measurement:
        """What was measured at `point`, else what can be said from the same configuration.

        The stored measurement itself where there is one; else a sample that is `not_measured`,
        whose evidence says what was recorded. It states no figures, but where this memory
        interpolates those of the neighbours in `wl`, labelled `interpolated`, or of the one nearest
        (`nearest`): another repetition, or where `wl` lies outside of what was measured. A
        configuration that was never measured is not guessed at in either case.
        """
        known = self.by_configuration.get(_place(point), ())
        if not known:
            return _nothing(point, self.load_model)
        here = [m for m in known if _same(m.sample.point.wl, point.wl)]
        for measurement in here:
            if measurement.sample.point.repetition == point.repetition:
                return measurement
        if not self.interpolates:
            recorded = (
                f"no repetition {point.repetition} of a load that was measured {len(here)} times"
                if here
                else f"no load of {point.wl:g}, but {_listed(m.sample.point.wl for m in known)}"
            )
            return _nothing(point, self.load_model, recorded)
        if here:
            return _nearest(point, here[-1].sample)
        below = [m.sample for m in known if m.sample.point.wl < point.wl]
        above = [m.sample for m in known if m.sample.point.wl > point.wl]
        if not (below and above):
            return _nearest(point, (below[-1:] or above[:1])[0])
        low = _repetition(below, below[-1].point.wl, point.repetition)
        high = _repetition(above, above[0].point.wl, point.repetition)
        if low.kpi_definition != high.kpi_definition:  # figures of two definitions never meet
            return _nearest(point, low)
        return Measurement(_between(point, low, high), (), ())


def _place(point: OperatingPoint) -> tuple[str, str]:
    return point.target, point.configuration.key


def _same(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=SAME_WL)


def _repetition(samples: list[Sample], wl: float, wanted: int) -> Sample:
    """Of the samples at `wl`, the wanted repetition or the first."""
    here = [sample for sample in samples if _same(sample.point.wl, wl)]
    return next((s for s in here if s.point.repetition == wanted), here[0])


def _nearest(point: OperatingPoint, sample: Sample) -> Measurement:
    labels = (*sample.labels, NEAREST, f"{FROM}{sample.id}")
    return Measurement(_not_measured(sample, point, labels), (), ())


def _between(point: OperatingPoint, low: Sample, high: Sample) -> Sample:
    """Log-log interpolation in `wl`; a figure that is not positive, or a share, goes linearly.

    P(R <= limit) goes by its logit (METHOD.md 5).
    """
    here, left, right = (math.log(wl) for wl in (point.wl, low.point.wl, high.point.wl))
    weight = (here - left) / (right - left)

    def linear(a: float, b: float) -> float:
        return a + weight * (b - a)

    def loglog(a: float, b: float) -> float:
        return math.exp(linear(math.log(a), math.log(b))) if a > 0 and b > 0 else linear(a, b)

    def logit(a: float, b: float) -> float:
        if not (0 < a < 1 and 0 < b < 1):
            return linear(a, b)
        return 1 / (1 + math.exp(-linear(math.log(a / (1 - a)), math.log(b / (1 - b)))))

    shared = tuple(label for label in low.labels if label in high.labels)
    labels = (*shared, INTERPOLATED, f"{FROM}{low.id}", f"{FROM}{high.id}")
    blank = _not_measured(low, point, labels)
    return replace(
        blank,
        kpis={
            name: _estimate(loglog, low.kpis[name], high.kpis[name])
            for name in low.kpis
            if name in high.kpis
        },
        usage={
            name: _usage(linear, low.usage[name], high.usage[name])
            for name in low.usage
            if name in high.usage
        },
        throttled_share=linear(low.throttled_share, high.throttled_share),
        straddle_share=linear(low.straddle_share, high.straddle_share),
        measured_s=linear(low.measured_s, high.measured_s),
        lab_s=linear(low.lab_s, high.lab_s),
        p_sla=_estimate(logit, low.p_sla, high.p_sla) if low.p_sla and high.p_sla else None,
    )


def _not_measured(sample: Sample, point: OperatingPoint, labels: tuple[str, ...]) -> Sample:
    """A sample moved to a point where no request was ever sent: it has no counts and no windows,
    and nothing may rest on it."""
    once = tuple(dict.fromkeys((*labels, WITHOUT_WINDOWS)))
    return replace(
        sample,
        id=sample_id(point),
        point=point,
        valid=False,
        findings=(_not_recorded(f"nothing at {point.wl:g}; its figures are interpolated"),),
        labels=once,
        planned=0,
        completed=0,
        errors=0,
        unfinished=0,
        windows=0,
        batches=0,
    )


def _estimate(blend: Blend, low: Estimate, high: Estimate) -> Estimate:
    return Estimate(
        blend(low.value, high.value), blend(low.low, high.low), blend(low.high, high.high)
    )


def _usage(blend: Blend, low: Usage, high: Usage) -> Usage:
    names = [field.name for field in fields(Usage) if field.name != "threads"]
    blended = {name: blend(getattr(low, name), getattr(high, name)) for name in names}
    return Usage(threads=low.threads, **blended)


def _listed(loads: Iterable[float]) -> str:
    known = [f"{wl:g}" for wl in dict.fromkeys(loads)]
    return ", ".join(known[:12]) + (" ..." if len(known) > 12 else "")


def _not_recorded(what: str) -> Finding:
    return Finding("not_measured", 0.0, 1.0, f"the recording holds {what}")


def _nothing(point: OperatingPoint, load_model: str, recorded: str = "") -> Measurement:
    what = recorded or f"no {load_model} sample of {point.configuration.key}"
    definition: KpiDefinition = "none"
    sample = Sample(
        id=sample_id(point),
        point=point,
        kpis={},
        usage={},
        valid=False,
        findings=(_not_recorded(what),),
        labels=(WITHOUT_WINDOWS,),
        load_model=load_model,
        kpi_definition=definition,
        generator="recorded",
        planned=0,
        completed=0,
        errors=0,
        unfinished=0,
        windows=0,
        batches=0,
        throttled_share=0.0,
        straddle_share=0.0,
        started_at=0.0,
        measured_s=0.0,
        lab_s=0.0,
    )
    return Measurement(sample, (), ())
