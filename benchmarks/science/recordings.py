"""Recorded bundles as problems: samplers choose among recorded points, a second pass judges.

A bundle `science-*` below sessions/recorded/ holds targets measured in two randomised passes:
repetition 0 is the training pass, repetition 1 the test pass. Every target and KPI of it is a
problem, `BUNDLE:TARGET:KPI`. There is one training pass only: seeds change what a sampler does,
not what it is told. So that who comes first does not hang on the luck of one pass, each has a
twin, `BUNDLE:TARGET:KPI:swapped`, whose training pass is the second and which the first judges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from pathlib import Path

from science.stored import ROOT, version
from workbench.domain.events import SessionCreated
from workbench.domain.parameters import Configuration, LoadModel, PrimaryWorkload
from workbench.domain.samples import Sample
from workbench.models.selection import stated
from workbench.sampling.base import Costs, Space
from workbench.store.recordings import read_whole

METHOD_VERSION = 1
"""Raised when the same bundle is read as another problem (`science.stored`)."""
FOLDER = ROOT / "sessions" / "recorded"
PREFIX = "science-"
CEILINGS = {"throughput_rps": 1e9, "mean_ms": 20_000.0, "p95_ms": 20_000.0}
"""What is modelled, and its ceiling (the papers': 20 s; throughput has none)."""
TRAINING, TEST = 0, 1
"""Repetitions."""
SWAPPED = ":swapped"
"""Ends the name of a problem whose passes change places."""
CHANGE_S, DEPLOY_S = 0.5, 3.0
"""A quota changes in place; containers start anew (DESIGN.md, the lab)."""


@dataclass(frozen=True)
class Recorded:
    """A target and KPI of a bundle; same interface as `surfaces.Surface`.

    Attributes
    ----------
    passes : by repetition, the samples of every configuration by rising load.
    """

    name: str
    target: str
    kpi: str
    kpi_max: float
    primary: PrimaryWorkload
    load: LoadModel
    loss_goal: float
    costs: Costs
    passes: Mapping[int, Mapping[Configuration, tuple[Sample, ...]]]
    note: str = "a real lab"
    matched: bool = False

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        return tuple(self.passes[TRAINING])

    def space(self, seed: int, configurations: tuple[Configuration, ...] = ()) -> Space:
        chosen = configurations or self.configurations
        return Space(
            target=self.target,
            configurations=chosen,
            primary=self.primary,
            load=self.load,
            kpi=self.kpi,
            kpi_max=self.kpi_max,
            loss_goal=self.loss_goal,
            sla=None,
            seed=seed,
            costs=self.costs,
            loads={c: tuple(s.point.wl for s in self.passes[TRAINING][c]) for c in chosen},
        )

    def measure(
        self,
        configuration: Configuration,
        wl: float,
        *,
        draw: str,
        repetition: int = 0,  # noqa: ARG002 - there is one sample per point
        block: int = 0,  # noqa: ARG002
    ) -> Sample:
        """The recorded sample of the nearest load."""
        passed = self.passes[TEST if draw == "test" else TRAINING]
        return min(passed[configuration], key=lambda s: abs(math.log(s.point.wl / wl)))

    def grid_loads(self) -> tuple[float, ...]:
        return tuple(sorted({s.point.wl for own in self.passes[TRAINING].values() for s in own}))

    def drawn(self, draw: str) -> tuple[Sample, ...]:
        passed = self.passes[TEST if draw == "test" else TRAINING]
        return tuple(sample for samples in passed.values() for sample in samples)

    def __hash__(self) -> int:
        return hash(self.name)


@cache
def problems_of(bundle: str, folder: Path = FOLDER) -> dict[str, Recorded]:
    """All targets and KPIs of a bundle that were measured in two passes."""
    events, measurements = read_whole(folder / bundle)
    campaign = next(e.fact.campaign for e in events if isinstance(e.fact, SessionCreated))
    found: dict[str, Recorded] = {}
    for plan in campaign.targets:
        target = plan.target.name
        own = [m.sample for m in measurements if m.sample.point.target == target]
        passes = {number: _by_configuration(own, number) for number in (TRAINING, TEST)}
        if not passes[TEST]:
            continue
        # What was not trained on is not judged: a sitting may have been cut short.
        passes[TEST] = {c: s for c, s in passes[TEST].items() if c in passes[TRAINING]}
        visit_s = sum(s.lab_s for s in own) / len(own)
        for kpi, ceiling in CEILINGS.items():
            if not any(stated(s, kpi) for samples in passes[TEST].values() for s in samples):
                continue
            name = f"{bundle}:{target}:{kpi}"
            found[name] = Recorded(
                name=name,
                target=target,
                kpi=kpi,
                kpi_max=min(ceiling, campaign.kpi_max) if kpi == campaign.kpi else ceiling,
                primary=plan.primary,
                load=campaign.load,
                loss_goal=campaign.loss_goal,
                costs=Costs(CHANGE_S, DEPLOY_S, max(visit_s - CHANGE_S, 0.1)),
                passes=passes,
            )
    return found


def _by_configuration(
    samples: list[Sample], repetition: int
) -> dict[Configuration, tuple[Sample, ...]]:
    """The latest sample of every load, by configuration and rising load."""
    chosen: dict[Configuration, dict[float, Sample]] = {}
    for sample in samples:
        if sample.point.repetition == repetition:
            chosen.setdefault(sample.point.configuration, {})[sample.point.wl] = sample
    return {c: tuple(own[wl] for wl in sorted(own)) for c, own in chosen.items()}


def bundles() -> tuple[str, ...]:
    return tuple(
        sorted(p.name for p in FOLDER.glob(f"{PREFIX}*") if (p / "manifest.json").exists())
    )


def names() -> tuple[str, ...]:
    """Of all recorded problems that ship."""
    return tuple(name for bundle in bundles() for name in problems_of(bundle))


def twins() -> tuple[str, ...]:
    """Their names with the passes swapped."""
    return tuple(f"{name}{SWAPPED}" for name in names())


def by_name(name: str) -> Recorded:
    known = problems_of(name.partition(":")[0])[name.removesuffix(SWAPPED)]
    return swapped(known) if name.endswith(SWAPPED) else known


def swapped(problem: Recorded) -> Recorded:
    """The same recording taught by its second pass and judged by its first, over the
    configurations that both have."""
    first, second = (problem.passes[number] for number in (TRAINING, TEST))
    both = [c for c in first if c in second]
    passes = {TRAINING: {c: second[c] for c in both}, TEST: {c: first[c] for c in both}}
    return replace(problem, name=f"{problem.name}{SWAPPED}", passes=passes)


def version_of(name: str) -> str:
    """Of how bundles are read, and which samples this one holds."""
    samples = FOLDER / name.partition(":")[0] / "samples.parquet"
    read = blake2b(samples.read_bytes(), digest_size=6).hexdigest()
    return f"{version(__name__)}-{read}"
