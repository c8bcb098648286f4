"""SLAs as one question to the profiles, or the sentence that says why they are none."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from workbench.domain.errors import (
    PROFILE_FARTHER,
    ConfidenceRefused,
    KpiUnknown,
    OutsideProfile,
    SlaContradiction,
    SlaIncomplete,
)
from workbench.domain.kpis import carried, of
from workbench.domain.load_words import load_words, outside_words, profiled_words, unsaid_words
from workbench.domain.parameters import ParameterValue, Sla
from workbench.models.scales import figure
from workbench.sla.profiled import Profiled, within

DEFAULT_CONFIDENCE = 0.95

_OFFERED = {"rate": carried("requests"), "packet_rate": carried("packets")}
"""The KPI that cannot exceed `wl`, by the name of `wl`."""


@dataclass(frozen=True)
class Question:
    """Limits that are to hold together, at one load, with a confidence.

    Attributes
    ----------
    slas : as they were given.
    limits : the tightest of each KPI and direction.
    wl : the load to carry.
    workload : a value of every workload parameter that was profiled.
    confidence : between 0.5 and 1, both excluded.
    window_sd : by KPI, log standard deviation of one window around the long run. Where it is
        given, the question is whether the *next window* holds; without it, whether the long run
        does (METHOD.md 10).
    start_sd : by KPI, log standard deviation of a deployment's luck on this host: its samples have
        it, the long run does not. Where it is not given, what is usual is taken
        (`sla.updated_by_trials`).
    """

    slas: tuple[Sla, ...]
    limits: tuple[Sla, ...]
    wl: float
    workload: Mapping[str, ParameterValue]
    confidence: float = DEFAULT_CONFIDENCE
    window_sd: Mapping[str, float] = field(default_factory=dict)
    start_sd: Mapping[str, float] = field(default_factory=dict)


def asked(
    slas: Sequence[Sla],
    profiled: Profiled,
    kpis: Collection[str],
    *,
    confidence: float = DEFAULT_CONFIDENCE,
    window_sd: Mapping[str, float] | None = None,
    start_sd: Mapping[str, float] | None = None,
) -> Question:
    """The question that SLAs ask of profiles.

    Parameters
    ----------
    slas : one or more; each says the load, or leaves it to another.
    profiled : what the question is asked of; it fills in workload values of which there is one.
    kpis : that forecasts can be made of.
    window_sd, start_sd : see `Question`.

    Raises
    ------
    ConfidenceRefused
        If the confidence is not between 0.5 and 1.
    SlaIncomplete
        If no SLA says the load, or a workload value that was profiled at several.
    SlaContradiction
        If no figure can hold all limits, or if loads or workload values differ.
    KpiUnknown
        If a KPI is not among `kpis`, or a limit is finer or coarser than what is told apart.
    OutsideProfile
        If the load or a workload value lies outside everything that was profiled.
    """
    if not 0.5 < confidence < 1.0:  # refuses NaN, too
        raise ConfidenceRefused(
            f"the confidence is {confidence:g}, must be over 0.5 and under 1",
            remedy="Nothing measured is certain; ask for 0.95 or 0.99",
        )
    if not slas:
        raise SlaIncomplete("no SLA is given", remedy="Write one as p95<=200ms @ rate=300/s")
    for sla in slas:
        _must_be_told_apart(sla, profiled, kpis)
    wl = _load(slas, profiled)
    limits = _tightest(slas)
    for sla in limits:
        if sla.direction == ">=" and sla.kpi == _OFFERED.get(profiled.primary) and sla.limit > wl:
            raise SlaContradiction(
                f"asks for {sla.kpi} of {figure(sla.limit)}, but only {figure(wl)} are offered",
                where=_text(sla),
                remedy=f"Lower the limit, or raise {profiled.primary}",
            )
    return Question(
        tuple(slas),
        limits,
        wl,
        _workload(slas, profiled),
        confidence,
        dict(window_sd or {}),
        dict(start_sd or {}),
    )


def _must_be_told_apart(sla: Sla, profiled: Profiled, kpis: Collection[str]) -> None:
    if sla.kpi not in kpis:
        raise KpiUnknown(
            f"limits {sla.kpi}, which was not profiled",
            where=_text(sla),
            remedy=f"Choose one of: {', '.join(sorted(kpis)) or 'none'}",
        )
    floor, ceiling = of(sla.kpi).floor, profiled.ceilings.get(sla.kpi, math.inf)
    if sla.direction == "<=" and floor and sla.limit <= floor:
        raise KpiUnknown(
            f"limits {sla.kpi} to {figure(sla.limit)}, but profiles tell it apart from zero only "
            f"above {figure(floor)}",
            where=_text(sla),
            remedy=f"Ask for a limit over {figure(floor)}",
        )
    if sla.direction == "<=" and sla.limit >= ceiling:
        raise KpiUnknown(
            f"limits {sla.kpi} to {figure(sla.limit)}, but the profile tells nothing apart from "
            f"{figure(ceiling)} on",
            where=_text(sla),
            remedy=f"Ask for a limit under {figure(ceiling)}, or profile with a larger kpi_max",
        )


def _load(slas: Sequence[Sla], profiled: Profiled) -> float:
    loads = {sla.wl for sla in slas if sla.wl is not None}
    name = profiled.primary
    if not loads:
        raise SlaIncomplete(
            "does not say the load that it is to hold at",
            where=_text(slas[0]),
            remedy=f"Add it, as @ {name}={figure(profiled.wl[1])}",
        )
    if len(loads) > 1:
        raise SlaContradiction(
            f"the SLAs ask for different loads: {name}="
            + f" and {name}=".join(figure(wl) for wl in sorted(loads)),
            remedy="Ask one question for each load",
        )
    (wl,) = loads
    if profiled.integer and wl != round(wl):
        raise OutsideProfile(
            f"a load of {load_words(name, figure(wl))} is no whole number, which it must be",
            where=_text(slas[0]),
            remedy=f"Ask for {name}={figure(math.ceil(wl))}",
        )
    if not within(wl, profiled.wl):
        raise OutsideProfile(
            f"a load of {load_words(name, figure(wl))} lies outside everything that was profiled, "
            f"which is {profiled_words(name, profiled.loads)}",
            where=_text(slas[0]),
            remedy=PROFILE_FARTHER,
        )
    return wl


def _workload(slas: Sequence[Sla], profiled: Profiled) -> dict[str, ParameterValue]:
    given: dict[str, ParameterValue] = {}
    for sla in slas:
        for key, value in sla.workload.items():
            if given.setdefault(key, value) != value:
                raise SlaContradiction(
                    f"the SLAs ask for different {key}: {given[key]} and {value}",
                    remedy="Ask one question for each of them",
                )
    for key, value in given.items():
        known = profiled.workload.get(key, ())
        if not within(value, known):
            what, remedy = outside_words(key, value, profiled.workloads.get(key, {}))
            raise OutsideProfile(what, where=_text(slas[0]), remedy=remedy)
    for key, known in profiled.workload.items():
        if key not in given:
            if len(known) > 1:
                what, remedy = unsaid_words(key, known)
                raise SlaIncomplete(what, where=_text(slas[0]), remedy=remedy)
            given[key] = known[0]
    return given


def _tightest(slas: Sequence[Sla]) -> tuple[Sla, ...]:
    """One limit for each KPI and direction. Raises `SlaContradiction` if two exclude each other."""
    upper: dict[str, Sla] = {}
    lower: dict[str, Sla] = {}
    for sla in slas:
        side, tighter = (upper, min) if sla.direction == "<=" else (lower, max)
        side[sla.kpi] = tighter(side.get(sla.kpi, sla), sla, key=lambda one: one.limit)
    for kpi in upper.keys() & lower.keys():
        if lower[kpi].limit > upper[kpi].limit:
            raise SlaContradiction(
                f"{_text(upper[kpi])} and {_text(lower[kpi])} exclude each other",
                remedy="Leave one of them out",
            )
    return (*upper.values(), *lower.values())


def _text(sla: Sla) -> str:
    return sla.text or f"{sla.kpi}{sla.direction}{figure(sla.limit)}"
