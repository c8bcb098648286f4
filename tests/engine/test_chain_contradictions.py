"""What a session measured of a chain speaks first: no answer contradicts a stored sample of it.

Asked is every SLA whose answer the samples know: of each sample of a chain, limits that it misses
and limits that it holds by far, at its own load and between two loads of which both say the same.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path

import pytest
from bench_truth.playing import play
from modelling_session import InlinePool
from session_making import EPOCH, append_all, created

from workbench import paths
from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign
from workbench.domain.errors import OutsideProfile
from workbench.domain.events import SampleTaken, SessionCreated
from workbench.domain.parameters import Configuration, Sla
from workbench.domain.questions import Recommend
from workbench.domain.recommendations import Deployment
from workbench.domain.resources import allotted_words
from workbench.domain.samples import Estimate, Measurement, Sample
from workbench.engine.answers import recommending
from workbench.engine.answers.candidates import Candidates
from workbench.engine.answers.chain_profiles import profiles_of
from workbench.engine.answers.recommend_worker import examine
from workbench.engine.learning import scoring
from workbench.engine.learning.scoring import Material, material
from workbench.engine.sessions.library import Library
from workbench.models.selection import stated
from workbench.paths import Workspace
from workbench.sla import max_load
from workbench.store.recordings import read_whole
from workbench.store.session_file import SessionFile

KPI = "p95_ms"
CHAINS = ("haproxy-tinyproxy", "tinyproxy-haproxy")
CLEARLY = 1.25
"""Times an interval's end: a limit beyond it is missed or held by far."""
IN_THE_GATE = 12
"""Of what is known, evenly over configurations and loads; all of it at full length."""


@dataclass(frozen=True)
class Known:
    """An allocation of a chain of which samples know whether it holds the limit at that load."""

    configuration: Configuration
    wl: float
    limit: float
    holds: bool


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which profile is best and how finely a margin is searched is not the point."""
    monkeypatch.setattr(scoring, "SHORT_LIST", ("interpolation",))
    monkeypatch.setattr(scoring, "FEW_CONFIGURATIONS", 0)
    monkeypatch.setattr(max_load, "LOADS", 2)
    monkeypatch.setattr(max_load, "ROUNDS", 1)


@pytest.fixture(scope="module")
def simulated() -> tuple[Campaign, list[Sample]]:
    """The campaign `demo` on the simulated lab, at five loads of each configuration."""
    demo = load_campaign("demo", workspace=Workspace(Path())).campaign
    sampling = replace(demo.sampling, method="uniform", max_samples=5)
    demo = replace(demo, sampling=sampling)
    taken = [asyncio.run(play(demo, plan, 7, ""))[0] for plan in demo.targets]
    return demo, [sample for each in taken for sample in each]


async def library_of(where: Path, campaign: Campaign, samples: list[Sample]) -> Library:
    """With the session `known` of these samples."""
    workspace = Workspace(where)
    workspace.sessions.mkdir(parents=True)
    begun = replace(created(), campaign=campaign)
    file = await SessionFile.create(workspace.sessions / "known.duckdb", begun, at=EPOCH)
    await append_all(file, [(SampleTaken(one), Measurement(one, (), ())) for one in samples])
    await file.close()
    return Library(workspace)


def recorded(name: str) -> tuple[Campaign, list[Sample]]:
    events, measurements = read_whole(paths.shipped("sessions") / name)
    campaign = next(e.fact.campaign for e in events if isinstance(e.fact, SessionCreated))
    return campaign, [m.sample for m in measurements]


def known_of(given: Material, chain: str) -> Iterator[Known]:
    """What samples know of SLAs: at their own loads, and half-way between two that miss it."""
    for sample in given.samples:
        grew = sample.valid and "overloaded" in sample.labels and not stated(sample, KPI)
        if sample.point.target == chain and grew:
            point = sample.point
            yield Known(point.configuration, point.wl, sample.kpis[KPI].value / CLEARLY, False)
    places: dict[Configuration, dict[float, list[Sample]]] = {}
    for sample in given.samples:
        if sample.point.target == chain and sample.valid and stated(sample, KPI):
            own = places.setdefault(sample.point.configuration, {})
            own.setdefault(sample.point.wl, []).append(sample)
    for configuration, by_load in places.items():
        ends = {
            wl: (min(s.kpis[KPI].low for s in own), max(s.kpis[KPI].high for s in own))
            for wl, own in sorted(by_load.items())
        }
        for wl, (low, high) in ends.items():
            yield Known(configuration, wl, low / CLEARLY, False)
            yield Known(configuration, wl, high * CLEARLY, True)
        for (wl, here), (after, there) in pairwise(ends.items()):
            between = math.sqrt(wl * after)
            yield Known(configuration, between, min(here[0], there[0]) / CLEARLY, False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "session",
    [
        "simulated",
        pytest.param("demo-real", marks=pytest.mark.long),
        pytest.param("chain-first", marks=pytest.mark.long),
    ],
)
async def test_no_recommendation_contradicts_a_sample(
    session: str, tmp_path: Path, simulated: tuple[Campaign, list[Sample]], full_length: bool
) -> None:
    library = await library_of(
        tmp_path, *(simulated if session == "simulated" else recorded(session))
    )
    given = await material(library, "known", None)
    for chain in CHAINS if full_length else CHAINS[1:]:
        known = [k for k in known_of(given, chain) if k.limit < given.campaign.kpi_max]
        assert len(known) > 10
        if not full_length:
            known = known[:: -(-len(known) // IN_THE_GATE)]
        wrong, refused = await contradictions(library, given, chain, known)
        assert wrong == []
        assert refused < 0.5 * len(known)
    await library.close()


async def contradictions(
    library: Library, given: Material, chain: str, known: list[Known]
) -> tuple[list[tuple[Known, float, Estimate]], int]:
    """What is said against what samples know, with its probability; and how often nothing is."""
    request = Recommend("known", (f"p95<=100ms @ rate={known[0].wl:g}/s",), chain)
    order = recommending.order_of(given, request, library.workspace)
    targets = tuple(plan.target for plan in order.plans)
    examined = examine(order)
    profiles = await profiles_of(library, InlinePool(), given, targets, examined.kpis)
    candidates = Candidates.of(order, examined.question, profiles)
    beyond = given.campaign.beyond_alone(chain)
    said = f"Not judged, because never measured alone: {allotted_words(beyond)}."
    assert candidates.told_of_unreached(None) == (said if beyond else "")
    (cheapest,) = islice(candidates.singles(), 1)
    of_it = candidates.judge([cheapest])
    assert candidates.told_of_unreached(of_it.chosen or of_it.closest) == "", "it costs less"
    wrong, refused = [], 0
    for one in known:
        slas = (Sla(KPI, one.limit, "<=", one.wl),)
        question = replace(examined.question, slas=slas, limits=slas, wl=one.wl)
        deployment = Deployment(one.configuration.resources, {v.name: 1 for v in order.chain.vnfs})
        try:
            answer = replace(candidates, question=question).judge([deployment])
        except OutsideProfile:  # nothing is said, so that nothing is wrong
            refused += 1
            continue
        choice = answer.chosen or answer.closest
        assert choice is not None
        if choice.probability > 0.95 if not one.holds else choice.probability < 0.05:
            wrong.append((one, choice.probability, choice.kpis[KPI]))
    return wrong, refused
