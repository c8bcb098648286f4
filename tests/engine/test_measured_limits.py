"""What a chain was measured to fail at is an upper end of what is recommended of it."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from pathlib import Path
from typing import Never

import pytest
import recommending_session as pair
from bench_truth.playing import play
from modelling_session import InlinePool
from session_making import EPOCH, append_all, created

from workbench import paths
from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign
from workbench.domain.events import ModelFitted, SampleTaken, SessionCreated
from workbench.domain.parameters import Configuration, Parameter
from workbench.domain.profiles import Breakpoint
from workbench.domain.questions import Recommend, Recommended
from workbench.domain.recommendations import Choice, gives_at_least
from workbench.domain.samples import Measurement, Sample
from workbench.engine.answers.recommending import recommend
from workbench.engine.learning import scoring
from workbench.engine.sessions.library import Library
from workbench.paths import Workspace
from workbench.sla import max_load
from workbench.store.recordings import read_whole
from workbench.store.session_file import SessionFile

CHAIN = "tinyproxy-haproxy"


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which profile is best and how finely a margin is searched is not the point."""
    monkeypatch.setattr(scoring, "SHORT_LIST", ("interpolation",))
    monkeypatch.setattr(scoring, "FEW_CONFIGURATIONS", 0)
    monkeypatch.setattr(max_load, "LOADS", 9)
    monkeypatch.setattr(max_load, "ROUNDS", 8)


async def told_of(
    where: Path, campaign: Campaign, samples: list[Sample], sla: str, chain: str = CHAIN
) -> Recommended:
    workspace = Workspace(where)
    workspace.sessions.mkdir(parents=True)
    begun = replace(created(), campaign=campaign)
    file = await SessionFile.create(workspace.sessions / "known.duckdb", begun, at=EPOCH)
    await append_all(file, [(SampleTaken(one), Measurement(one, (), ())) for one in samples])
    await file.close()
    library = Library(workspace)
    try:
        asked = Recommend("known", (sla,), chain)
        return await recommend(library, InlinePool(), _no_lab, asked)
    finally:
        await library.close()


def _no_lab(*_: object, **__: object) -> Never:
    raise AssertionError("nothing is measured")


@pytest.fixture(scope="module")
def chain_alone() -> tuple[Campaign, list[Sample]]:
    """The chain as the only target on the simulated lab."""
    demo = load_campaign("demo", workspace=Workspace(Path())).campaign
    plan = demo.target_plan(CHAIN)
    cores = {"tinyproxy": (0.25, 0.5), "haproxy": (0.125, 0.25)}
    own = tuple(Parameter(f"{vnf}.vcpu", values, "cores") for vnf, values in cores.items())
    demo = replace(demo, targets=(replace(plan, resources=own),))
    return demo, asyncio.run(play(demo, demo.targets[0], 7, ""))[0]


async def test_allocations_that_were_measured_to_fail_are_no_outsiders(
    tmp_path: Path, chain_alone: tuple[Campaign, list[Sample]]
) -> None:
    campaign, samples = chain_alone
    found = (await told_of(tmp_path, campaign, samples, "p95<=100ms @ rate=700/s")).recommendation
    assert found.chosen is not None
    assert found.chosen.allocation == {"tinyproxy.vcpu": 0.5, "haproxy.vcpu": 0.25}
    assert "outside of the samples" not in found.note
    # The third breaks it within the interval of its breakpoint: less likely than not to hold.
    assert "2 cheaper allocations were measured and do not hold." in found.note


@pytest.mark.slow
async def test_what_is_carried_is_not_above_what_measured_breakpoints_allow(tmp_path: Path) -> None:
    events, measurements = read_whole(paths.shipped("sessions") / "chain-real")
    facts = [event.fact for event in events]
    campaign = next(fact.campaign for fact in facts if isinstance(fact, SessionCreated))
    broke: dict[Configuration, Breakpoint] = {
        fact.configuration: one
        for fact in facts
        if isinstance(fact, ModelFitted) and fact.target == CHAIN
        for one in fact.breakpoints
        if one.rule == "sla" and one.wl is not None
    }
    assert len(broke) == 2
    samples = [taken.sample for taken in measurements]
    found = (await told_of(tmp_path, campaign, samples, "p95<=100ms @ rate=500/s")).recommendation
    assert found.chosen is not None
    bounded = 0
    for choice in (found.chosen, *found.runners_up):
        for configuration, one in broke.items():
            if not gives_at_least(configuration.resources, choice.allocation):
                continue
            assert one.wl is not None
            assert one.low is not None
            sd = (math.log(one.wl) - math.log(one.low)) / 1.96
            allowed = one.wl * math.exp(-1.64 * sd)
            assert carried(choice) <= 1.01 * allowed, choice.allocation
            bounded += 1
    assert bounded >= 3, "both of tinyproxy 25 %, and one that nobody measured below them"


@pytest.mark.parametrize(
    ("limit", "breaks", "unknown"),
    [
        # At 100 clients one core of tinyproxy takes 1 s, and at 400 a quarter of haproxy's 1.6 s.
        (
            "1100ms",
            "12 cheaper allocations (tinyproxy at 100 clients: 9, haproxy at 400 clients: 3)",
            "6 cheaper allocations. tinyproxy was measured up to 100 clients; at 133.3 to 400",
        ),
        # Of two or three tinyproxies each has its share of the clients: that was not measured.
        (
            "900ms",
            "14 cheaper allocations (tinyproxy at 100 clients: 12, haproxy at 400 clients: 2",
            "4 cheaper allocations. tinyproxy was measured up to 100 clients; at 133.3 to 200",
        ),
    ],
)
async def test_what_a_function_alone_breaks_with_fewer_clients_fails_and_the_rest_is_named(
    tmp_path: Path, limit: str, breaks: str, unknown: str
) -> None:
    campaign = pair.campaign()
    samples = [
        pair.sample(plan, configuration, wl).sample
        for plan in campaign.targets
        for configuration in campaign.configurations(plan)
        for wl in pair.LOADS
        if wl <= 100.0 or plan.target.name == "haproxy"
    ]
    asked = f"p95<={limit} @ concurrent=400"
    found = (await told_of(tmp_path, campaign, samples, asked, pair.CHAIN)).recommendation
    assert found.chosen is not None
    assert f"Failing, because one function alone breaks a limit already: {breaks}" in found.note
    assert f"Not judged, because outside of the samples: {unknown} nobody knows." in found.note


def carried(choice: Choice) -> float:
    assert choice.margin_wl is not None
    return 500.0 + choice.margin_wl
