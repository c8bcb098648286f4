"""Curves of a chain for screens: what was measured, what is planned, and what cannot be told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from chain_session import (
    HANDOVER_MS,
    LOADS,
    RIGHT,
    SESSION,
    TRIED,
    UNMEASURED,
    WRONG,
    alone_ms,
    chain_ms,
    write_chain_session,
)
from modelling_session import InlinePool

from workbench.domain import codec
from workbench.domain.errors import UsageError
from workbench.domain.parameters import Configuration
from workbench.domain.questions import ChainCharted, ChainQuery, ChartChain
from workbench.engine.answers import chain_charting
from workbench.engine.answers.chain_charting import chart_chain
from workbench.engine.learning import scoring
from workbench.engine.sessions.library import Library
from workbench.paths import Workspace

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(autouse=True)
def one_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpolation is exact where it was measured."""
    monkeypatch.setattr(scoring, "SHORT_LIST", ("interpolation",))
    monkeypatch.setattr(scoring, "FEW_CONFIGURATIONS", 0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def library(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Library]:
    root: Path = tmp_path_factory.mktemp("charting")
    (root / "sessions").mkdir()
    await asyncio.to_thread(
        lambda: asyncio.run(write_chain_session(root / "sessions" / f"{SESSION}.duckdb"))
    )
    library = Library(Workspace(root))
    yield library
    await library.close()


@pytest.fixture
def pool() -> InlinePool:
    return InlinePool()


async def test_predicted_measured_and_alone_over_the_loads(
    library: Library, pool: InlinePool
) -> None:
    reply = await chart_chain(library, pool, ChartChain(ChainQuery(SESSION, WRONG, "mean")))
    assert (reply.kpi, reply.rule, reply.method) == ("mean_ms", "added-means", "interpolation")
    assert reply.rules[0] == "added-means"
    assert "weakest-link" in reply.rules
    assert "convolved" not in reply.rules, "it is for percentiles"
    assert [chart.configuration.vcpu("tinyproxy") for chart in reply.charts] == [0.25, 0.5]
    for chart in reply.charts:
        assert chart.predicted.wl[0] == LOADS[0]
        true = chain_ms(WRONG, chart.configuration, LOADS[0])
        assert chart.profiles is not None
        assert chart.profiles.mean[0] == pytest.approx(true - HANDOVER_MS, rel=1e-6)
        assert chart.predicted.mean[0] == pytest.approx(true, rel=0.02), "it was measured"
        assert chart.rests_on == 8
        assert chart.measured is not None
        assert chart.measured.mean[0] == pytest.approx(true, rel=1e-6)
        assert chart.measured.wl[-1] == LOADS[-1], "overload states no response time"
        tiny, ha = chart.functions
        assert (tiny.vnf, ha.vnf) == ("tinyproxy", "haproxy")
        own = alone_ms("tinyproxy", chart.configuration.vcpu("tinyproxy"), LOADS[0])
        assert tiny.mean[0] == pytest.approx(own, rel=1e-6)
    plain = codec.message_to_plain(reply)
    assert codec.message_of(codec.dumps(plain)) == reply


async def test_the_cpu_of_each_function_alone_and_chained(
    library: Library, pool: InlinePool
) -> None:
    reply = await chart_chain(library, pool, ChartChain(ChainQuery(SESSION, RIGHT, "mean")))
    contrasts = [contrast for chart in reply.charts for contrast in chart.cpu]
    assert {contrast.vnf for contrast in contrasts} <= {"haproxy", "tinyproxy"}
    for contrast in contrasts:
        assert contrast.alone.low <= contrast.alone.value <= contrast.alone.high
        assert contrast.chained > 0.0


async def test_what_was_never_measured_is_predicted_as_it_is_planned(
    library: Library, pool: InlinePool
) -> None:
    reply = await chart_chain(library, pool, ChartChain(ChainQuery(SESSION, UNMEASURED, "mean")))
    assert len(reply.charts) == 2
    assert {chart.measured for chart in reply.charts} == {None}
    assert reply.method == ""
    wanted = Configuration(
        {"haproxy.vcpu": 0.5, "tinyproxy.vcpu": 0.4}, reply.charts[0].configuration.workload
    )
    asked = ChartChain(ChainQuery(SESSION, UNMEASURED, "mean"), configurations=(wanted,))
    assert [c.configuration for c in (await chart_chain(library, pool, asked)).charts] == [wanted]


async def test_canaries_of_a_template_have_curves(library: Library, pool: InlinePool) -> None:
    reply = await chart_chain(library, pool, ChartChain(ChainQuery(SESSION, TRIED, "mean")))
    assert all(chart.measured is not None for chart in reply.charts)


async def test_more_than_an_answer_holds_is_left_out_and_said(
    library: Library, pool: InlinePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_charting, "MOST_CHARTS", 1)
    reply: ChainCharted = await chart_chain(
        library, pool, ChartChain(ChainQuery(SESSION, WRONG, "mean"))
    )
    assert len(reply.charts) == 1
    assert "1 of 2 configurations are left out" in reply.notes


async def test_a_chain_without_samples_or_plan_is_refused(
    library: Library, pool: InlinePool
) -> None:
    with pytest.raises(UsageError, match="has no samples of haproxy-tinyproxy") as raised:
        await chart_chain(
            library, pool, ChartChain(ChainQuery(SESSION, "haproxy-tinyproxy", "mean"))
        )
    assert "workbench canary" in (raised.value.remedy or "")
