"""Two sessions side by side: the same points and the same rules, claimed apart or not."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from workbench.domain import kpis
from workbench.domain.errors import SessionError
from workbench.domain.lab import ASSUMED, HostFacts, HostNoise
from workbench.domain.messages import Compared
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import Breakpoint, Difference, HostFactor
from workbench.domain.projection import SessionView
from workbench.domain.samples import Estimate, Sample
from workbench.engine.sessions.library import Library
from workbench.measuring import ab_test
from workbench.models.selection import stated

HOURS_APART_S = 3600.0
"""From here on drift is beyond what an A/A run of minutes has seen (METHOD.md 6)."""

Place = tuple[str, Configuration]


@dataclass(frozen=True)
class ComparedSession:
    """What one session has to say."""

    session: str
    host: HostFacts
    noise: HostNoise | None
    begun_at: float | None
    samples: tuple[Sample, ...]
    breakpoints: tuple[Breakpoint, ...]


async def compare(library: Library, first: str, second: str) -> Compared:
    """Every figure that both sessions have. Raises `SessionUnknown` and other `SessionError`s."""
    one, other = await _evidence(library, first), await _evidence(library, second)
    return await asyncio.to_thread(contrasted, one, other)


async def _evidence(library: Library, session: str) -> ComparedSession:
    async with library.borrow(session) as channel:
        view = channel.snapshot()
        samples = await channel.file.all_samples()
    if view.host is None:
        raise SessionError("does not say where it was measured", where=session)
    return ComparedSession(
        session, view.host, view.noise, view.started_at, samples, _breakpoints(view)
    )


def _breakpoints(view: SessionView) -> tuple[Breakpoint, ...]:
    return tuple(b for configuration in view.configurations for b in configuration.breakpoints)


def contrasted(first: ComparedSession, second: ComparedSession) -> Compared:
    """The comparison, from what is stored."""
    apart = _hosts_apart(first.host, second.host)
    comparison = _Comparison(first, second, apart)
    differences = (
        *comparison.points(),
        *comparison.breakpoints(),
        *comparison.other_workloads(),
    )
    return Compared(
        first.session,
        second.session,
        differences,
        (*_assumed(first, second), *comparison.warnings(len(differences))),
        comparison.factors(),
    )


def _assumed(*evidence: ComparedSession) -> Iterator[str]:
    """Of each session, what its figures rest on that nobody measured."""
    for one in evidence:
        if assumed := one.host.details.get(ASSUMED):
            yield f"{one.session}: {assumed}"


class _Comparison:
    def __init__(self, first: ComparedSession, second: ComparedSession, apart: str) -> None:
        self._first, self._second = first, second
        self._apart = apart
        """Why nothing of the two can be compared; empty if it can."""
        self._ratios: dict[str, dict[Place, list[Estimate]]] = defaultdict(
            lambda: defaultdict(list)
        )
        """By figure: what would be compared, were it of one host."""
        self._noises = (first.noise, second.noise)
        self._unmatched = (0, 0)

    # ------------------------------------------------------------------ figures

    def points(self) -> Iterator[Difference]:
        """Every KPI with known noise at every operating point that both have visited."""
        one, other = _by_point(self._first.samples), _by_point(self._second.samples)
        self._unmatched = (len(one.keys() - other.keys()), len(other.keys() - one.keys()))
        for key in sorted(one.keys() & other.keys(), key=lambda k: (k[0], k[1].key, float(k[2]))):
            target, configuration, _ = key
            samples, others = one[key], other[key]
            why = _kinds_apart(samples[0], others[0]) or self._apart
            for kpi in ab_test.compared():
                here = [e for s in samples if (e := stated(s, kpi))]
                there = [e for s in others if (e := stated(s, kpi))]
                if not here and not there:
                    continue
                if kpis.of(kpi).carried and _as_planned(samples) and _as_planned(others):
                    continue  # what was offered, not what the functions can do
                place = (target, configuration)
                yield self._figure(place, kpi, samples[0].point.wl, here, there, why)

    def breakpoints(self) -> Iterator[Difference]:
        """Every breakpoint by a rule that both state; loads are as noisy as throughput."""
        others = {(b.target, b.configuration, b.rule): b for b in self._second.breakpoints}
        kinds = _load_kinds(self._first.samples), _load_kinds(self._second.samples)
        for one in self._first.breakpoints:
            place = (one.target, one.configuration)
            other = others.get((*place, one.rule))
            if other is None or (one.state == other.state != "found"):
                continue
            why = _words_apart("kind of load", kinds[0][place], kinds[1][place])
            if one.kpi != other.kpi and one.rule != "capacity":
                why = why or _words_apart("KPI", one.kpi, other.kpi)
            if not why and one.state != other.state:
                why = f"{_state(one)} in {self._first.session}, {_state(other)} in "
                why += self._second.session
            why = why or self._apart
            yield self._figure(place, one.rule, None, _estimates(one), _estimates(other), why)

    def other_workloads(self) -> Iterator[Difference]:
        """Allocations that both have, but under another workload, such as another file size."""
        one, other = _places(self._first.samples), _places(self._second.samples)
        for target, configuration in one - other:
            for target_there, there in other - one:
                if target_there == target and there.resources == configuration.resources:
                    yield Difference(
                        target,
                        configuration,
                        "all",
                        None,
                        *(None,) * 5,
                        0.0,
                        "not_comparable",
                        _mapping_apart(configuration.workload, there.workload),
                    )

    def factors(self) -> tuple[HostFactor, ...]:
        """Of each figure that sessions of different hosts or labs both have."""
        return tuple(
            ab_test.factor(figure, tuple(places.values()), self._floor(figure))
            for figure, places in self._ratios.items()
        )

    def _figure(
        self,
        place: Place,
        figure: str,
        wl: float | None,
        first: list[Estimate],
        second: list[Estimate],
        why_not: str,
    ) -> Difference:
        floor = self._floor(figure)
        one, other = ab_test.pooled(first), ab_test.pooled(second)
        values = (one.value if one else None, other.value if other else None)
        if not why_not and (one is None or other is None):
            without = [
                evidence.session
                for evidence, found in ((self._first, one), (self._second, other))
                if found is None
            ]
            why_not = f"not valid, or only bounded, in {' and '.join(without)}"
        if why_not and why_not == self._apart and one is not None and other is not None:
            self._ratios[figure][place].append(ab_test.ratio(one, other))
        if why_not or one is None or other is None:
            nothing = (None, None, None)
            return Difference(
                *place, figure, wl, *values, *nothing, floor, "not_comparable", why_not
            )
        ratio = ab_test.ratio(one, other)
        verdict = ab_test.verdict(ratio, floor)
        note = ""
        if verdict == "no_visible_difference" and (ratio.low > 1 or ratio.high < 1):
            note = "the interval excludes 1, but the host differs by as much from itself"
        return Difference(
            *place, figure, wl, *values, ratio.value, ratio.low, ratio.high, floor, verdict, note
        )

    def _floor(self, figure: str) -> float:
        """The smallest difference; loads of breakpoints are as noisy as throughput."""
        noisy_as = figure if figure in ab_test.compared() else kpis.THROUGHPUT
        return ab_test.floor(noisy_as, self._noises)

    # ------------------------------------------------------------------ what to know

    def warnings(self, figures: int) -> Iterator[str]:
        one, other = self._first, self._second
        if self._apart:
            yield f"nothing can be compared: {self._apart}"
            if self._ratios:
                yield (
                    "the factors say what lab and host change together; a profile is carried over "
                    "by none of them"
                )
            return
        for evidence in (one, other):
            if evidence.noise is None:
                yield (
                    f"{evidence.session} does not know its host's noise: general figures stand in; "
                    "run `workbench doctor --measure` before the next session"
                )
        if one.begun_at and other.begun_at:
            hours = abs(one.begun_at - other.begun_at) / 3600
            if hours * 3600 > HOURS_APART_S:
                yield (
                    f"the sessions began {hours:.1f} h apart; what a host drifts by in hours is "
                    "more than an A/A run of minutes sees (12 % and more were seen)"
                )
        if one.host.kernel != other.host.kernel:
            yield _words_apart("kernel", one.host.kernel, other.host.kernel)
        for template, digest in one.host.image_digests.items():
            there = other.host.image_digests.get(template, digest)
            if there != digest:
                yield f"the image of {template} is not the same"
        if any(self._unmatched):
            yield (
                f"{self._unmatched[0]} operating points of {one.session} and "
                f"{self._unmatched[1]} of {other.session} have no counterpart: only equal loads "
                "are compared"
            )
        if not figures:
            yield "the sessions have no figure in common"


# ------------------------------------------------------------------------- what is alike


def _hosts_apart(one: HostFacts, other: HostFacts) -> str:
    for word in ("lab", "cpu_model", "cores", "cgroup"):
        if text := _words_apart(word, getattr(one, word), getattr(other, word)):
            return f"different hosts: {text}"
    options = one.details.get("options", ""), other.details.get("options", "")
    return "different options of the lab" if options[0] != options[1] else ""


def _kinds_apart(one: Sample, other: Sample) -> str:
    for name, field in (
        ("generator", "generator"),
        ("load model", "load_model"),
        ("definition of latency", "kpi_definition"),
    ):
        if text := _words_apart(name, getattr(one, field), getattr(other, field)):
            return text
    return ""


def _words_apart(name: str, one: object, other: object) -> str:
    return f"{name} {one} here, {other} there" if one != other else ""


def _mapping_apart(one: Mapping[str, object], other: Mapping[str, object]) -> str:
    keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    return "; ".join(_words_apart(key, one.get(key), other.get(key)) for key in keys)


def _by_point(samples: tuple[Sample, ...]) -> dict[tuple[str, Configuration, str], list[Sample]]:
    """Samples by operating point, repetitions together; loads as their sample ids name them."""
    found: dict[tuple[str, Configuration, str], list[Sample]] = defaultdict(list)
    for sample in samples:
        point = sample.point
        found[point.target, point.configuration, f"{point.wl:.6g}"].append(sample)
    return found


def _as_planned(samples: list[Sample]) -> bool:
    """Open loop, and what was due was answered."""
    return all(s.load_model.startswith("open") and "overloaded" not in s.labels for s in samples)


def _places(samples: tuple[Sample, ...]) -> set[Place]:
    return {(s.point.target, s.point.configuration) for s in samples}


def _load_kinds(samples: tuple[Sample, ...]) -> dict[Place, str]:
    """Generator, load model and definition that a configuration's breakpoints rest on."""
    found: dict[Place, str] = defaultdict(str)
    for s in samples:
        place = (s.point.target, s.point.configuration)
        found[place] = found[place] or f"{s.generator}, {s.load_model}, {s.kpi_definition}"
    return found


def _state(found: Breakpoint) -> str:
    return found.state.replace("_", " ")


def _estimates(found: Breakpoint) -> list[Estimate]:
    if found.wl is None or found.low is None or found.high is None:
        return []
    return [Estimate(found.wl, found.low, found.high)]
