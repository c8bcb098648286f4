"""Chains predicted from stored profiles, and compared with them: figures, marks, refusals."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from chain_session import (
    HANDOVER_MS,
    RIGHT,
    SESSION,
    TOO_MUCH,
    TRIED,
    UNMEASURED,
    WRONG,
    alone_ms,
    chain_campaign,
    chain_ms,
    host,
    write_chain_session,
)
from modelling_session import InlinePool

from workbench.domain import codec
from workbench.domain.campaign import TargetPlan
from workbench.domain.errors import OutsideProfile, PluginUnknown, UsageError
from workbench.domain.lab import HostNoise
from workbench.domain.questions import ChainQuery, CompareChain, PredictChain
from workbench.domain.topology import Target, Vnf
from workbench.engine.answers import predicting
from workbench.engine.answers.chain_comparing import compare_chain
from workbench.engine.answers.chain_inputs import terms_of
from workbench.engine.answers.chain_profiles import profiles_for
from workbench.engine.answers.predicting import predict_chain
from workbench.engine.learning import scoring
from workbench.engine.sessions.library import Library
from workbench.measuring import ab_test
from workbench.paths import Workspace

pytestmark = pytest.mark.asyncio(loop_scope="module")

OTHER = "elsewhere"
AT = "rate=200/s, filesize=10kB"
ASKED = PredictChain(ChainQuery(SESSION, RIGHT, "mean"), AT)
NOISE = HostNoise(
    "sim", "oha", 0.0, 10, 2, {}, {}, {}, {"mean_ms": 0.25, "p95_ms": 0.3}, 0.0, "EPYC", 2
)


def altered(asked: PredictChain, **change: Any) -> PredictChain:
    """With other fields, be they the query's or its own."""
    query = {name: change.pop(name) for name in [*change] if hasattr(asked.query, name)}
    return replace(asked, query=replace(asked.query, **query), **change)


@pytest.fixture(autouse=True)
def one_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpolation is exact where it was measured; which model is best is not the point."""
    monkeypatch.setattr(scoring, "SHORT_LIST", ("interpolation",))
    monkeypatch.setattr(scoring, "FEW_CONFIGURATIONS", 0)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    (root / "sessions").mkdir()
    asyncio.run(write_chain_session(root / "sessions" / f"{SESSION}.duckdb", noise=NOISE))
    asyncio.run(write_chain_session(root / "sessions" / f"{OTHER}.duckdb", "Xeon"))
    return root


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def library(made: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Library]:
    """All tests share it: a model that one has made is there for the next."""
    root = tmp_path_factory.mktemp("shared")
    shutil.copytree(made, root, dirs_exist_ok=True)
    library = Library(Workspace(root))
    yield library
    await library.close()


# ------------------------------------------------------------------- predictions


async def test_a_chain_is_predicted_for_every_allocation_of_its_campaign(
    library: Library, pool: InlinePool
) -> None:
    reply = await predict_chain(library, pool, ASKED)
    said = {p.configuration.vcpu("tinyproxy"): p for p in reply.predictions}
    assert list(said) == [0.25, 0.5]
    for prediction in reply.predictions:
        mean = chain_ms(RIGHT, prediction.configuration, 200.0)
        assert prediction.value.value == pytest.approx(mean, rel=1e-6)
        assert prediction.value.low <= prediction.value.value <= prediction.value.high
        assert (prediction.rule, prediction.kpi, prediction.unit) == (
            "added-means",
            "mean_ms",
            "ms",
        )
        assert prediction.limiting == "tinyproxy"
        assert not prediction.extrapolates
        for function in prediction.functions:
            alone = alone_ms(function.vnf, prediction.configuration.vcpu(function.vnf), 200.0)
            assert function.value.value == pytest.approx(alone, rel=1e-6)
    step = said[0.25].next_step
    assert step is not None
    assert (step.key, step.before, step.after) == ("tinyproxy.vcpu", 0.25, 0.5)
    assert step.value.value == pytest.approx(said[0.5].value.value)
    assert said[0.5].next_step is None
    assert codec.loads(codec.dumps(codec.to_plain(reply)))


async def test_models_are_stored_once_and_an_observer_stores_none(
    made: Path, tmp_path: Path, pool: InlinePool
) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    library = Library(Workspace(tmp_path))
    try:
        looked = await predict_chain(library, pool, ASKED, store=False)
        assert {model.version for model in looked.models} == {0}
        assert any("not stored" in note for note in looked.notes)
        first = await predict_chain(library, pool, ASKED)
        assert {(m.target, m.kpi, m.version) for m in first.models} == {
            (target, kpi, 1)
            for target in ("haproxy", "tinyproxy")
            for kpi in ("mean_ms", "throughput_rps")
        }
        assert not first.notes
        pool.asked.clear()
        again = await predict_chain(library, pool, ASKED)
        assert again == first
        assert "row_of" not in pool.asked, "nothing is scored again"
    finally:
        await library.close()


async def test_percentiles_are_convolved_of_what_else_the_profiles_say(
    library: Library, pool: InlinePool
) -> None:
    reply = await predict_chain(library, pool, altered(ASKED, kpi=None))
    first = reply.predictions[0]
    assert (first.kpi, first.rule) == ("p95_ms", "convolved")
    alone = [function.value.value for function in first.functions]
    assert max(alone) < first.value.value < sum(alone)
    own = next(m for m in reply.models if (m.target, m.kpi) == ("haproxy", "p95_ms"))
    assert set(own.also) == {"p50_ms", "mean_ms"}
    weakest = await predict_chain(library, pool, altered(ASKED, kpi="p95", rule="weakest-link"))
    assert weakest.predictions[0].value.value == pytest.approx(max(alone))


async def test_one_allocation_may_be_asked_for_and_lie_between_the_profiled(
    library: Library, pool: InlinePool
) -> None:
    asked = altered(ASKED, allocation="haproxy=50%, tinyproxy=0.3")
    (said,) = (await predict_chain(library, pool, asked)).predictions
    assert said.configuration.resources == {"haproxy.vcpu": 0.5, "tinyproxy.vcpu": 0.3}
    assert not said.extrapolates
    assert said.next_step is not None
    assert said.next_step.after == 0.5
    beyond = altered(ASKED, allocation="haproxy=50%, tinyproxy=10%")
    (said,) = (await predict_chain(library, pool, beyond)).predictions
    assert said.extrapolates
    assert said.functions[1].extrapolated == ("tinyproxy.vcpu=0.1 is outside 0.25 to 0.5",)


async def test_a_template_is_predicted_for_all_that_its_functions_were_profiled_at(
    library: Library, pool: InlinePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = altered(ASKED, chain="tinyproxy-haproxy")
    reply = await predict_chain(library, pool, asked)
    assert {tuple(p.configuration.resources.values()) for p in reply.predictions} == {
        (tiny, ha) for tiny in (0.25, 0.5) for ha in (0.25, 0.5)
    }
    monkeypatch.setattr(predicting, "MOST_ALLOCATIONS", 3)
    fewer = await predict_chain(library, pool, asked)
    assert fewer.predictions == reply.predictions[:3]
    assert "1 of 4 allocations are left out; --allocate asks for one" in fewer.notes


async def test_a_function_that_cannot_carry_the_load_is_named(
    library: Library, pool: InlinePool
) -> None:
    reply = await predict_chain(library, pool, altered(ASKED, at="rate=3000/s"))
    for prediction in reply.predictions:
        before, behind = prediction.warnings
        assert "haproxy carries 2000 of 3000 requests/s: it is overloaded" in before
        assert "tinyproxy carries" in behind
        assert "of 2000 requests/s" in behind, "what haproxy does not pass spares it"
        assert prediction.value.unbounded, "it has no steady response time"
        assert prediction.limiting == "haproxy" or "tinyproxy carries" in behind
    asked = altered(ASKED, at="rate=3000/s", kpi="throughput")
    for prediction in (await predict_chain(library, pool, asked)).predictions:
        capacity = 2000.0 * prediction.configuration.vcpu("tinyproxy")
        assert prediction.value.value == pytest.approx(capacity, rel=0.2), "few loads"
        assert prediction.limiting == "tinyproxy"
        assert not prediction.warnings


async def test_what_passes_counts_in_an_open_loop_only() -> None:
    graph = chain_campaign().target_plan(RIGHT).target.graph
    hosts = {"session": host()}
    opened = terms_of(graph, "p95_ms", "", "open-constant", hosts, insisted=False)
    assert opened.chosen == ("p95_ms", "throughput_rps")
    assert set(opened.besides) == {"p50_ms", "mean_ms"}
    closed = terms_of(graph, "p95_ms", "", "closed", hosts, insisted=False)
    assert closed.chosen == ("p95_ms",)
    assert closed.besides == ("throughput_rps",)
    assert opened.visits == {"haproxy": 1.0, "tinyproxy": 1.0}


async def test_profiles_of_another_host_are_refused_or_marked(
    library: Library, pool: InlinePool
) -> None:
    asked = altered(ASKED, profiles=OTHER)
    with pytest.raises(UsageError, match=r"another host .* cpu_model Xeon instead of EPYC"):
        await predict_chain(library, pool, asked)
    assert pool.asked == ["terms_of"], "before any model is made"
    reply = await predict_chain(library, pool, altered(asked, insist=True))
    for prediction in reply.predictions:
        assert any("another host" in warning for warning in prediction.warnings)
        assert any("image of haproxy" in warning for warning in prediction.warnings)
    with pytest.raises(UsageError, match="another host"):
        await compare_chain(
            library, pool, CompareChain(ChainQuery(SESSION, RIGHT, "mean", profiles=OTHER))
        )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"chain": "tiny-hapoxy"}, "has a chain 'tiny-hapoxy'"),
        ({"chain": "study"}, "needs a stand-alone profile of study-tinyproxy"),
        ({"kpi": "p100"}, "no KPI"),
        ({"kpi": "jitter"}, "no sample of haproxy states jitter_ms"),
        ({"at": "rate=200/s, flows=3"}, "flows was not set in any profile"),
        ({"at": "speed=200/s"}, "names 'speed'; allowed: rate, filesize"),
        ({"at": "rate=200ms"}, "'ms' is not a unit of a rate"),
        ({"at": "filesize=10kB"}, "does not say the load"),
        ({"at": "fast"}, "must be NAME=VALUE"),
        ({"at": "rate=200/s, rate=300/s"}, "gives 'rate' twice"),
        (
            {"at": "rate=9999/s"},
            "a load of 9999 requests/s lies outside everything that was profiled",
        ),
        ({"at": "rate=1/s"}, r"which is \w+ at \d+ to \d+ requests/s, \w+ at \d+ to"),
        (
            {"at": "rate=200/s, filesize=1MB"},
            r"filesize=1MB lies .* profiled: \w+ and \w+ at 10kB",
        ),
        ({"rule": "longest-link"}, "nothing is registered as 'longest-link'"),
        ({"rule": "added-means", "kpi": "p95"}, "do not add"),
        ({"allocation": "haproxy=50%"}, "does not say tinyproxy.vcpu, of which 0.25, 0.5"),
        ({"allocation": "squid=50%"}, "names 'squid'; allowed: haproxy.vcpu"),
        ({"allocation": "tinyproxy=50ms"}, "tinyproxy is '50ms', but 'ms' is not a unit"),
        ({"allocation": "tinyproxy=0"}, "must be over 0"),
    ],
)
async def test_what_cannot_be_predicted_is_a_sentence_before_any_model(
    library: Library, pool: InlinePool, change: dict[str, Any], sentence: str
) -> None:
    with pytest.raises((UsageError, OutsideProfile, PluginUnknown), match=sentence) as raised:
        await predict_chain(library, pool, altered(ASKED, **change))
    assert raised.value.exit_code == 2
    assert set(pool.asked) <= {"terms_of"}


# ------------------------------------------------------------------- comparisons


async def test_a_chain_that_is_as_predicted_has_no_outliers(
    library: Library, pool: InlinePool
) -> None:
    reply = await compare_chain(library, pool, CompareChain(ChainQuery(SESSION, RIGHT, "mean")))
    found = reply.comparison
    assert (found.chain, found.kpi, found.rule) == (RIGHT, "mean_ms", "added-means")
    assert found.samples == 8, "overload only bounds response times"
    assert found.outliers == (), "nor does overload where no function has response times"
    assert found.rmse < 1e-3
    assert found.ab_floor == 0.25, "the host's own A/A run"
    assert found.baseline == "interpolation"
    assert found.baseline_rmse is not None
    assert found.baseline_rmse > found.rmse
    assert reply.weakest_link is not None
    assert reply.weakest_link.rule == "weakest-link"
    assert reply.weakest_link.mape > 0.2, "it forgets the faster function"
    assert codec.loads(codec.dumps(codec.to_plain(reply)))


async def test_a_chain_that_is_slower_than_its_functions_is_found_in_every_configuration(
    library: Library, pool: InlinePool
) -> None:
    reply = await compare_chain(library, pool, CompareChain(ChainQuery(SESSION, WRONG, "mean")))
    outliers = reply.comparison.outliers
    assert [o.verdict for o in outliers] == ["worse", "worse"]
    for outlier in outliers:
        true = chain_ms(WRONG, outlier.configuration, outlier.wl)
        assert outlier.ratio == pytest.approx(true / (true - HANDOVER_MS), rel=1e-3)
        assert TOO_MUCH not in outlier.loads
    assert len(reply.comparison.configurations) == 2
    assert reply.comparison.mad == pytest.approx(HANDOVER_MS, rel=1e-3)


async def test_canaries_of_a_template_are_compared_like_any_samples(
    library: Library, pool: InlinePool
) -> None:
    measured, tried = [
        (
            await compare_chain(library, pool, CompareChain(ChainQuery(SESSION, chain, "mean")))
        ).comparison
        for chain in (WRONG, TRIED)
    ]
    assert tried.samples == measured.samples
    assert tried.rmse == pytest.approx(measured.rmse)
    assert [o.ratio for o in tried.outliers] == pytest.approx([o.ratio for o in measured.outliers])
    assert tried.baseline == "interpolation", "the campaign's model"
    assert tried.baseline_rmse is not None


async def test_throughput_has_no_weakest_link_beside_it_and_elsewhere_the_floor_is_general(
    library: Library, pool: InlinePool
) -> None:
    reply = await compare_chain(library, pool, CompareChain(ChainQuery(OTHER, WRONG, "throughput")))
    assert reply.weakest_link is None
    assert reply.comparison.outliers == ()
    assert reply.comparison.ab_floor == ab_test.floor("throughput_rps", [None])
    assert ab_test.floor("mean_ms", [NOISE, None]) == ab_test.floor("mean_ms", [None])
    assert ab_test.floor("p50_ms", [NOISE]) == 0.25
    assert ab_test.floor("p99_ms", [NOISE]) == ab_test.floor("loss_pct", [NOISE]) == 0.3
    same = CompareChain(ChainQuery(SESSION, RIGHT, "mean", "weakest-link"))
    assert (await compare_chain(library, pool, same)).weakest_link is None


async def test_what_was_not_measured_cannot_be_compared(library: Library, pool: InlinePool) -> None:
    for chain, sentence in (
        (UNMEASURED, f"has no valid samples of {UNMEASURED}"),
        ("haproxy-tinyproxy", "has no valid samples of haproxy-tinyproxy"),
    ):
        with pytest.raises(UsageError, match=sentence) as raised:
            await compare_chain(library, pool, CompareChain(ChainQuery(SESSION, chain)))
        assert raised.value.exit_code == 2


# ------------------------------------------------------------------- which profile speaks


async def test_of_several_profiles_of_one_template_the_one_of_its_name_speaks() -> None:
    made = chain_campaign()
    plan = made.target_plan("haproxy")

    def alone(name: str) -> TargetPlan:
        return replace(plan, target=Target(name, Vnf(name, "haproxy")))

    own = made.target_plan(RIGHT).target
    with_front = replace(made, targets=(alone("front"), *made.targets))
    assert [t.name for t in profiles_for(with_front, own)] == ["haproxy", "tinyproxy"]
    front = with_front.target_plan("front").target
    assert [t.name for t in profiles_for(with_front, front)] == ["front"], "it was asked about"
    others = tuple(plan for plan in made.targets if plan.target.name != "haproxy")
    unclear = replace(made, targets=(alone("front"), alone("back"), *others))
    with pytest.raises(UsageError, match=r"several profiles of haproxy \(front, back\).*Call one"):
        profiles_for(unclear, own)
