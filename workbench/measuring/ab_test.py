"""Whether a figure of one session differs from that of another by more than chance and the host.

A claim needs both: the interval of the ratio excludes one, and the ratio itself lies outside of
what two sessions of this host differ by when nothing differs (`noise.smallest_difference`). The
former alone claims luck: the windows of a sample share its deployment and its minutes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.domain import kpis
from workbench.domain.lab import HostNoise
from workbench.domain.profiles import HostFactor, Verdict
from workbench.domain.samples import Estimate
from workbench.measuring.intervals import NORMAL, t_quantile


def compared() -> tuple[str, ...]:
    """KPIs whose noise between sessions is known, and that are compared."""
    return tuple(kpi.name for kpi in kpis.ranked() if kpi.session_sd is not None)


def floor(name: str, noises: Sequence[HostNoise | None]) -> float:
    """The relative difference under which nothing is claimed: the largest of the sessions'.

    A session without an A/A run counts by the figures of METHOD.md. A KPI whose noise is not known
    counts as the one that it scatters as; as p95, the noisiest that an A/A run states, where
    that is not known either.
    """
    given = kpis.of(name)
    known = given if given.session_sd is not None else kpis.of(given.scatters_as or kpis.P95)
    kpi, session_sd = known.name, known.session_sd or 0.0
    return max(
        noise.smallest_difference[kpi]
        if noise is not None and kpi in noise.smallest_difference
        else math.expm1(NORMAL * math.sqrt(2) * session_sd)
        for noise in noises
    )


def pooled(estimates: Sequence[Estimate]) -> Estimate | None:
    """The repetitions of a figure as one: the mean of the logs, with its 95 % interval.

    None where a figure has no logarithm. Each estimate is taken for independent of the others;
    what they share the floor pays for.
    """
    if not estimates or any(e.value <= 0 or e.low <= 0 for e in estimates):
        return None
    k = len(estimates)
    middle = sum(math.log(e.value) for e in estimates) / k
    below = math.sqrt(sum(math.log(e.value / e.low) ** 2 for e in estimates)) / k
    above = math.sqrt(sum(math.log(e.high / e.value) ** 2 for e in estimates)) / k
    return Estimate(math.exp(middle), math.exp(middle - below), math.exp(middle + above))


def ratio(first: Estimate, second: Estimate) -> Estimate:
    """Second over first with its 95 % interval; both positive and independent.

    The limits come from those of the two on the log scale (MOVER: Donner & Zou, Stat. Methods
    Med. Res. 21, 2012), so that intervals which are wider on one side stay so.
    """
    middle = math.log(second.value / first.value)
    below = math.hypot(math.log(second.value / second.low), math.log(first.high / first.value))
    above = math.hypot(math.log(second.high / second.value), math.log(first.value / first.low))
    return Estimate(math.exp(middle), math.exp(middle - below), math.exp(middle + above))


def factor(figure: str, places: Sequence[Sequence[Estimate]], floor: float) -> HostFactor:
    """What a figure changes by from one host, or lab, to another (paper D, Fig. 13).

    The mean of the logs over configurations, each the mean over its loads. Its interval is
    Student's t over configurations, or the mean interval of the ratios where there is one only;
    what two sessions of one host differ by when nothing differs does not average out, and is added.

    Parameters
    ----------
    places : ratios, second over first, by configuration and load; none empty.
    floor : relative, as of `floor`.
    """
    logs = [sum(math.log(r.value) for r in ratios) / len(ratios) for ratios in places]
    count, middle = len(logs), sum(logs) / len(logs)
    if count > 1:
        variance = sum((one - middle) ** 2 for one in logs) / (count - 1)
        half = t_quantile(count - 1) * math.sqrt(variance / count)
    else:  # loads of one configuration share its start: their intervals are not divided
        half = sum(math.log(r.high / r.low) / 2 for r in places[0]) / len(places[0])
    half = math.hypot(half, math.log1p(floor))
    least, most = min(logs), max(logs)
    note = ""
    if most - least > 2 * math.log1p(floor):
        note = "it is not one factor: configurations differ by more than the hosts' noise"
    elif count == 1:
        note = "of one configuration: others may have another"
    return HostFactor(
        figure,
        math.exp(middle),
        math.exp(middle - half),
        math.exp(middle + half),
        count,
        math.exp(least),
        math.exp(most),
        note,
    )


def verdict(ratio: Estimate, floor: float) -> Verdict:
    """What may be claimed of a ratio; `floor` is relative, and the same factor up and down."""
    if ratio.value > 1 + floor and ratio.low > 1:
        return "higher"
    if ratio.value < 1 / (1 + floor) and ratio.high < 1:
        return "lower"
    return "no_visible_difference"
