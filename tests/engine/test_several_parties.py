"""A chain of functions that several parties have profiled: whose figures speak, what is refused."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Never

import pytest
from chain_session import SESSION, alone_ms, chain_campaign, host, write_chain_session
from modelling_session import InlinePool

from workbench.domain import chain_figures, codec
from workbench.domain.errors import UsageError
from workbench.domain.parameters import Parameter
from workbench.domain.projection import SessionView
from workbench.domain.questions import (
    ChainQuery,
    PredictChain,
    Recommend,
    VerifyRecommendation,
)
from workbench.domain.requests import sessions_of
from workbench.domain.topology import Target, Vnf
from workbench.engine.answers.chain_models import speaks
from workbench.engine.answers.parties import parties_for
from workbench.engine.answers.predicting import predict_chain
from workbench.engine.answers.recommending import recommend, verify
from workbench.engine.learning import scoring
from workbench.engine.learning.scoring import Material
from workbench.engine.sessions.library import Library
from workbench.paths import Workspace

HA, TINY, FAR = "maker-of-ha", "maker-of-tiny", "maker-elsewhere"
CHAIN = "haproxy-tinyproxy"
ASKED = PredictChain(
    ChainQuery(HA, CHAIN, "mean", profiles=HA, more_profiles=(TINY,)), "rate=200/s, filesize=10kB"
)


def no_lab(*_: object) -> Never:
    raise AssertionError("the lab is not asked")


@pytest.fixture(autouse=True)
def one_candidate(few_candidates: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpolation is exact where it was measured; which model is best is not the point."""
    monkeypatch.setattr(scoring, "SHORT_LIST", ("interpolation",))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace(tmp_path_factory.mktemp("made"))
    workspace.sessions.mkdir()

    def write(name: str, cpu: str, only: str) -> None:
        path: Path = workspace.sessions / f"{name}.duckdb"
        asyncio.run(write_chain_session(path, cpu, only=only))

    write(HA, "EPYC", "haproxy")
    write(TINY, "EPYC", "tinyproxy")
    write(FAR, "Xeon", "tinyproxy")
    write(SESSION, "EPYC", "")
    return workspace


def of(*names: str, insist: bool = False) -> PredictChain:
    first, *more = names
    query = ChainQuery(HA, CHAIN, "mean", "", first, insist, tuple(more))
    return replace(ASKED, query=query)


async def test_each_function_is_of_who_profiled_it_and_that_is_said(
    library: Library, pool: InlinePool
) -> None:
    reply = await predict_chain(library, pool, ASKED)
    assert len(reply.predictions) == 4, "every combination of what each was profiled at"
    for prediction in reply.predictions:
        alone = [
            alone_ms(vnf, prediction.configuration.vcpu(vnf), 200.0)
            for vnf in ("haproxy", "tinyproxy")
        ]
        assert prediction.value.value == pytest.approx(sum(alone), rel=1e-6)
        assert not prediction.extrapolates
        assert not prediction.warnings
    asked_of = {model.target: model.whose for model in reply.models}
    assert asked_of == {"haproxy": HA, "tinyproxy": TINY}
    assert all(f" of {m.whose})" in chain_figures.model(m) for m in reply.models)
    assert codec.loads(codec.dumps(codec.to_plain(reply)))
    assert sessions_of(ASKED) == (HA, HA, TINY)
    assert not speaks(ASKED.query), "an accepted model is of one session's profiles"


async def test_another_host_is_refused_or_marked(library: Library, pool: InlinePool) -> None:
    with pytest.raises(UsageError, match=rf"session {FAR} was measured on another host .* Xeon"):
        await predict_chain(library, pool, of(HA, FAR))
    assert pool.asked == ["terms_of"], "before any model is made"
    reply = await predict_chain(library, pool, of(HA, FAR, insist=True))
    for prediction in reply.predictions:
        assert any("another host" in warning for warning in prediction.warnings)
        image = f"the image of haproxy in {FAR} is not the one that {HA} profiled"
        assert image in prediction.warnings


async def test_who_is_named_first_speaks_and_who_is_not_needed_is_told(
    library: Library, pool: InlinePool
) -> None:
    reply = await predict_chain(library, pool, of(HA, SESSION, TINY))
    assert {m.target: m.whose for m in reply.models} == {"haproxy": HA, "tinyproxy": SESSION}
    said = reply.predictions[0].warnings
    assert (
        f"{SESSION} has a profile of haproxy, too: that of {HA} speaks, which is named first"
        in said
    )
    assert f"{TINY} has no profile that is used for {CHAIN}" in said


@pytest.mark.parametrize(("named", "missing"), [((HA,), "tinyproxy"), ((TINY, FAR), "haproxy")])
async def test_a_function_that_nobody_profiled_is_named(
    library: Library, pool: InlinePool, named: tuple[str, ...], missing: str
) -> None:
    with pytest.raises(UsageError, match=f"needs a stand-alone profile of {missing}"):
        await predict_chain(library, pool, of(*named))
    assert pool.asked == []


async def test_an_allocation_is_recommended_from_the_profiles_of_several(
    library: Library, pool: InlinePool
) -> None:
    asked = Recommend(HA, ("mean<=100ms @ rate=200/s, filesize=10kB",), CHAIN, profiles=HA)
    both = replace(asked, more_profiles=(TINY,))
    found = (await recommend(library, pool, no_lab, both)).recommendation
    assert found.whose == {"haproxy": HA, "tinyproxy": TINY}
    assert f"haproxy by {HA}, tinyproxy by {TINY}" in found.judged_by
    assert found.chosen is not None
    vcpus = {k.partition(".")[0]: v for k, v in found.chosen.allocation.items()}
    alone = [alone_ms(vnf, vcpus[vnf], 200.0) for vnf in ("haproxy", "tinyproxy")]
    assert found.chosen.kpis["mean_ms"].value == pytest.approx(sum(alone), rel=1e-6)
    assert sessions_of(both) == (HA, HA, TINY)
    with pytest.raises(UsageError, match="needs a stand-alone profile of tinyproxy"):
        await recommend(library, pool, no_lab, asked)
    with pytest.raises(UsageError, match="another host"):
        await recommend(library, pool, no_lab, replace(asked, more_profiles=(FAR,)))
    with pytest.raises(UsageError, match="not tried on the lab"):
        await recommend(library, pool, no_lab, replace(both, verify=True))
    with pytest.raises(UsageError, match="not tried on the lab"):
        await verify(library, pool, no_lab, VerifyRecommendation(HA, found.id))


# ------------------------------------------------------------------- what does not meet


def party(name: str, template: str, target: str = "", **change: object) -> Material:
    made = chain_campaign()
    plan = made.target_plan(template)
    own = replace(plan, target=Target(target or template, Vnf(template, template)))
    view = SessionView(name, host=host())
    campaign = replace(made, targets=(own,), **change)  # type: ignore[arg-type]
    return Material(name, view, campaign, "mean_ms", ())


def chain() -> Target:
    return next(p.target for p in chain_campaign().targets if len(p.target.vnfs) == 2)


def test_workload_parameters_and_loads_must_be_the_same() -> None:
    other = (Parameter("connections", (1.0,)),)
    with pytest.raises(UsageError, match=r"other workload parameters \(connections, filesize_byte"):
        parties_for((party("a", "haproxy"), party("b", "tinyproxy", workload=other)), chain())
    packets = party("b", "tinyproxy")
    (plan,) = packets.campaign.targets
    clients = replace(plan, primary=replace(plan.primary, name="clients", unit="clients"))
    odd = replace(packets, campaign=replace(packets.campaign, targets=(clients,)))
    with pytest.raises(UsageError, match="over different loads"):
        parties_for((party("a", "haproxy"), odd), chain())


def test_two_functions_of_one_name_are_refused() -> None:
    pair = (party("a", "haproxy", "edge"), party("b", "tinyproxy", "edge"))
    with pytest.raises(UsageError, match="a and b both call their target edge"):
        parties_for(pair, chain())


def test_values_at_which_either_profiled_are_known() -> None:
    more = (Parameter("filesize_bytes", (100_000.0,), "bytes"),)
    parties = parties_for((party("a", "haproxy"), party("b", "tinyproxy", workload=more)), chain())
    assert [p.values for p in parties.campaign.workload] == [(10_000.0, 100_000.0)]
    assert [plan.target.name for plan in parties.campaign.targets] == ["haproxy", "tinyproxy"]
