"""What the session has measured of a chain speaks before its profiles; else its risk is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from chain_session import HANDOVER_MS, SESSION, UNMEASURED, WRONG, write_chain_session
from modelling_session import InlinePool

from workbench.domain.parameters import Configuration
from workbench.domain.questions import ChainQuery, ChartChain, PredictChain, Recommend
from workbench.domain.samples import Sample
from workbench.engine.answers.chain_charting import chart_chain
from workbench.engine.answers.predicting import predict_chain
from workbench.engine.answers.recommending import recommend
from workbench.engine.learning import scoring
from workbench.engine.learning.scoring import material
from workbench.engine.sessions.library import Library
from workbench.models.selection import stated
from workbench.paths import Workspace
from workbench.sla import max_load

pytestmark = pytest.mark.asyncio(loop_scope="module")

DEMO, DEMO_CHAIN = "demo-real", "tinyproxy-haproxy"


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which profile is best and how finely a margin is searched is not the point."""
    monkeypatch.setattr(max_load, "LOADS", 2)
    monkeypatch.setattr(max_load, "ROUNDS", 1)
    monkeypatch.setattr(scoring, "SHORT_LIST", ("interpolation",))
    monkeypatch.setattr(scoring, "FEW_CONFIGURATIONS", 0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def library(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Library]:
    root: Path = tmp_path_factory.mktemp("measured-first")
    (root / "sessions").mkdir()
    await asyncio.to_thread(
        lambda: asyncio.run(write_chain_session(root / "sessions" / f"{SESSION}.duckdb"))
    )
    library = Library(Workspace(root))
    yield library
    await library.close()


def no_lab(*_: object, **__: object) -> None:
    raise AssertionError("nothing is measured")


async def samples_of(library: Library, session: str, chain: str, kpi: str) -> list[Sample]:
    given = await material(library, session, kpi)
    own = (s for s in given.samples if s.point.target == chain)
    return [s for s in own if stated(s, kpi) is not None]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("session", "chain"),
    [
        pytest.param(DEMO, "tinyproxy-haproxy", marks=pytest.mark.long),
        pytest.param(DEMO, "haproxy-tinyproxy", marks=pytest.mark.long),
        ("chain-first", "haproxy-tinyproxy"),
        pytest.param("chain-first", "tinyproxy-haproxy", marks=pytest.mark.long),
    ],
)
async def test_no_answer_about_a_recorded_chain_is_contradicted_by_its_samples(
    library: Library, session: str, chain: str, full_length: bool
) -> None:
    """Asked with half of what was measured as the limit, at full length at every load."""
    pool, kpi = InlinePool(), "p95_ms"
    samples = await samples_of(library, session, chain, kpi)
    assert samples
    asked = sorted({s.point.wl: s for s in samples}.items())
    for wl, _ in asked if full_length else asked[:1]:
        here = [s for s in samples if s.point.wl == wl]
        worst: dict[Configuration, float] = {
            s.point.configuration: max(
                o.kpis[kpi].value for o in here if o.point.configuration == s.point.configuration
            )
            for s in here
        }
        limit = 0.5 * min(worst.values())
        request = Recommend(session, (f"p95<={limit:.6g}ms @ rate={wl:.6g}",), chain)
        found = (await recommend(library, pool, no_lab, request, store=False)).recommendation
        if found.chosen is not None:
            chosen = Configuration(found.chosen.allocation, here[0].point.configuration.workload)
            assert chosen not in worst, "it was measured, and misses the limit twice over"
    sample = asked[0][1]
    allocation = ",".join(
        f"{k.rpartition('.')[0]}={v}" for k, v in sample.point.configuration.resources.items()
    )
    query = ChainQuery(session, chain, kpi)
    question = PredictChain(query, f"rate={sample.point.wl:.10g}", allocation)
    (said,) = (await predict_chain(library, pool, question, store=False)).predictions
    assert said.rests_on == len(samples)
    assert said.value.low <= sample.kpis[kpi].value <= said.value.high


@pytest.mark.slow
async def test_the_demo_s_own_chain_is_not_called_fast_where_it_was_measured_slow(
    library: Library,
) -> None:
    """48 to 51 ms were measured at these loads; the profiles alone say 1 ms."""
    request = Recommend(DEMO, ("p95<=20ms @ rate=200",), DEMO_CHAIN)
    reply = await recommend(library, InlinePool(), no_lab, request, store=False)
    assert reply.recommendation.chosen is None
    assert "samples of tinyproxy-haproxy itself" in reply.recommendation.judged_by


async def test_an_unmeasured_chain_carries_the_hand_over_of_others(library: Library) -> None:
    asked = PredictChain(ChainQuery(SESSION, UNMEASURED, "mean"), "rate=100/s")
    reply = await predict_chain(library, InlinePool(), asked)
    for said in reply.predictions:
        assert said.rests_on == 0
        assert said.value.low < said.value.value < 3.0
        assert said.value.high > HANDOVER_MS, "a delayed acknowledgement is within it"
        assert said.canaries == 3, "that is not known without a canary"
    request = Recommend(SESSION, ("mean<=5ms @ rate=100",), UNMEASURED)
    found = (await recommend(library, InlinePool(), no_lab, request)).recommendation
    assert found.chosen is None
    assert "Nobody has measured ha-tiny-alone" in found.note
    ruled = replace(asked, query=replace(asked.query, rule="added-means"))
    by_rule = await predict_chain(library, InlinePool(), ruled)
    assert by_rule.predictions[0].value.high < 3.0, "what the profiles alone say"


async def test_beyond_what_is_carried_a_response_time_grows_without_bound(
    library: Library,
) -> None:
    charted = await chart_chain(
        library, InlinePool(), ChartChain(ChainQuery(SESSION, WRONG, "mean"))
    )
    for chart in charted.charts:
        curve = chart.predicted
        capacity = 2000.0 * chart.configuration.vcpu("tinyproxy")
        assert curve.overload is not None
        assert curve.overload <= 3000.0
        start = curve.wl.index(curve.overload)
        assert max(curve.mean[:start]) < 1e6
        assert set(curve.limiting[start:]) <= {"tinyproxy", "haproxy"}, "never nothing"
        assert curve.overload > 0.97 * capacity
