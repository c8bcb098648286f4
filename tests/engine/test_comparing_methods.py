"""Methods compared on the samples of a target: which is chosen, and what that leaves behind."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from modelling_session import CHEAP, SESSION, TARGET, InlinePool, first, make_workspace, stored_view
from session_making import campaign, facts, measurement

from workbench import plugins
from workbench.domain.errors import UsageError
from workbench.domain.events import InfluenceMeasured, TargetModelled
from workbench.domain.profiles import ParameterInfluence
from workbench.domain.questions import ScoreModels
from workbench.domain.samples import Estimate
from workbench.engine.learning import scoring
from workbench.engine.learning.modelling import _influence_kept, model_of, score
from workbench.engine.learning.scoring import (
    all_methods,
    ceiling_of,
    influence_in,
    row_of,
    short_list,
    table_for,
)
from workbench.engine.sessions.library import Library
from workbench.paths import Workspace

pytestmark = pytest.mark.usefixtures("few_candidates")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return make_workspace(tmp_path_factory.mktemp("made"), first())


async def test_a_comparison_stores_what_it_chose_and_what_moves_the_kpis(
    library: Library, pool: InlinePool
) -> None:
    asked = ScoreModels(SESSION, TARGET, methods=("short",))
    steps: list[str] = []
    reply = await score(library, pool, asked, say=steps.append)
    assert steps == [
        "haproxy, p95_ms: interpolation (1 of 2)",
        "haproxy, p95_ms: curve-fit (2 of 2)",
    ]
    assert reply.notes == ()
    (model,) = reply.models
    assert (model.version, model.samples) == (1, 8)
    assert model.method == next(s.method for s in reply.scores if s.best)
    (influence,) = reply.influences
    assert influence.kpis == ("p95_ms", "throughput_rps")
    assert (influence.basis, influence.samples) == ("edges", 4), "both allocations, both ends"
    assert [f.method for f in reply.formulas] == ["curve-fit"], "the other has no formula"
    assert influence.parameters == ("haproxy.vcpu", "rate_rps"), "a size of one value moves nothing"
    assert influence.weights[0][1] > influence.weights[0][0] > 0.1
    assert influence.weights[1] == pytest.approx((0.0, 1.0), abs=1e-6)
    async with library.borrow(SESSION) as channel:
        assert channel.view.influences == [influence]
        seq = channel.view.seq
    again = await score(library, pool, asked)
    assert again.models == reply.models
    async with library.borrow(SESSION) as channel:
        assert channel.view.seq == seq, "nothing new, nothing stored"


async def test_an_influence_rests_on_all_samples_where_a_corner_was_not_measured(
    library: Library,
) -> None:
    given = await scoring.material(library, SESSION, None)
    whole = given.of(TARGET)
    corner = next(s for s in whole if s.point.wl == 800.0)
    lost = tuple(s for s in whole if s != corner)
    found = influence_in(given.campaign, TARGET, lost, 0)
    assert (found.basis, found.samples) == ("all", 7)
    rejected = tuple(replace(s, valid=s != corner) for s in whole)
    assert influence_in(given.campaign, TARGET, rejected, 0) == found


async def test_an_influence_of_as_many_other_samples_takes_the_place_of_the_stored_one(
    library: Library,
) -> None:
    """Somebody rejected one sample and took another back: neither number nor names have changed."""

    def saying(share: float) -> ParameterInfluence:
        return ParameterInfluence(
            TARGET, ("haproxy.vcpu", "rate_rps"), ("p95_ms",), ((share, 1.0 - share),), 4, "edges"
        )

    for share in (0.4, 0.4 + 1e-9, 0.6):
        assert await _influence_kept(library, SESSION, saying(share)) == ""
    await _influence_kept(library, SESSION, replace(saying(0.6), basis="all"))
    async with library.borrow(SESSION) as channel:
        events = await channel.file.events(len(facts()) + 1)
        assert channel.view.influences == [replace(saying(0.6), basis="all")]
    shares = [e.fact.influence.weights[0][0] for e in events]  # type: ignore[union-attr]
    assert shares == [0.4, 0.6, 0.6], "another rounding is nothing new"


@pytest.mark.parametrize(
    ("kpi", "ceiling"),
    [
        ("p95_ms", 5000.0),
        ("mean_ms", 20_000.0),
        ("jitter_ms", 20_000.0),
        ("loss_pct", 30.0),
        ("throughput_rps", 800.0),
    ],
)
def test_what_the_campaign_says_nothing_of_has_the_ceiling_of_the_papers(
    kpi: str, ceiling: float
) -> None:
    own = replace(campaign(), kpi_max=5000.0)
    configuration = own.configurations(own.targets[0])[0]
    samples = [
        replace(
            measurement(TARGET, configuration, wl).sample,
            kpis={
                name: Estimate(value, 0.9 * value, 1.1 * value)
                for name, value in (
                    ("p95_ms", 100.0 * wl), ("mean_ms", 80.0 * wl), ("jitter_ms", 90.0 * wl),
                    ("loss_pct", wl / 10.0), ("throughput_rps", wl),
                )
            },
        )
        for wl in (10.0, 100.0, 800.0)
    ]  # fmt: skip
    assert ceiling_of(own, samples, kpi) == ceiling
    assert table_for(own, TARGET, samples, kpi).y.max() == pytest.approx(math.log(ceiling))


async def test_a_comparison_that_leaves_candidates_out_changes_nothing(
    library: Library, pool: InlinePool
) -> None:
    reply = await score(library, pool, ScoreModels(SESSION, TARGET, methods=("curve-fit",)))
    assert reply.models == ()
    (note,) = reply.notes
    assert "interpolation was not compared" in note
    made = await model_of(library, pool, SESSION, TARGET)
    after = await score(library, pool, ScoreModels(SESSION, TARGET, methods=("curve-fit",)))
    assert [m.version for m in after.models] == [made.model.version]
    by = ScoreModels(SESSION, TARGET, by="configuration", methods=("short",))
    assert [m.version for m in (await score(library, pool, by)).models] == [1]


async def test_a_wider_comparison_may_find_a_better_one(library: Library, pool: InlinePool) -> None:
    made = await model_of(library, pool, SESSION, TARGET)
    everybody = (*CHEAP, "gaussian-process")
    wide = await score(library, pool, ScoreModels(SESSION, TARGET, methods=everybody))
    best = next(s.method for s in wide.scores if s.best)
    assert best == "gaussian-process", "the law is smooth"
    assert [(m.version, m.method) for m in wide.models] == [(2, "gaussian-process")]
    assert made.model.method != "gaussian-process"
    narrow = await score(library, pool, ScoreModels(SESSION, TARGET, methods=("short",)))
    assert [(m.version, m.method) for m in narrow.models] == [(2, "gaussian-process")]
    assert "gaussian-process was not compared" in narrow.notes[0]


async def test_an_observer_gets_the_table_and_leaves_no_trace(
    workspace: Workspace, library: Library, pool: InlinePool
) -> None:
    asked = ScoreModels(SESSION, TARGET, methods=("short",))
    reply = await score(library, pool, asked, store=False)
    assert len(reply.scores) == 2
    assert len(reply.influences) == 1
    assert (await model_of(library, pool, SESSION, TARGET, store=False)).model.version == 0
    await library.close()
    assert (await stored_view(workspace)).seq == len(facts()) + 1


async def test_every_target_gets_a_model_and_its_influences(
    library: Library, pool: InlinePool
) -> None:
    reply = await score(library, pool, ScoreModels(SESSION, methods=("short",)))
    assert {m.target for m in reply.models} == {"haproxy", "tiny-ha"}
    assert {i.target for i in reply.influences} == {"haproxy", "tiny-ha"}
    async with library.borrow(SESSION) as channel:
        events = await channel.file.events(len(facts()) + 1)
    assert [type(event.fact) for event in events] == [TargetModelled, InfluenceMeasured] * 2


def test_all_registered_models_are_compared_unless_some_are_named() -> None:
    assert all_methods(()) == plugins.names("models")
    assert all_methods(("short", "lasso2")) == ("short", "lasso2")
    with pytest.raises(UsageError, match=r"no model is called 'laso2'.*lasso2"):
        all_methods(("laso2",))


def test_the_short_list_leaves_out_what_fits_many_configurations_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = short_list(campaign(), TARGET, "lasso2", "not installed")
    assert few == (*CHEAP, "gaussian-process", "lasso2"), "the campaign samples with the third"
    monkeypatch.setattr(scoring, "FEW_CONFIGURATIONS", 2)
    assert "catalogue" in short_list(campaign(), TARGET)


async def test_a_large_table_is_compared_on_whole_points_of_it(library: Library) -> None:
    given = await scoring.material(library, SESSION, None)
    repeated = [
        measurement(TARGET, s.point.configuration, s.point.wl, repetition).sample
        for s in given.of(TARGET)
        for repetition in range(3)
    ]
    table = table_for(given.campaign, TARGET, repeated, "p95_ms")
    one, other = (row_of(table, "interpolation", "point", 10).scores for _ in range(2))
    assert one is not None
    assert other is not None
    assert one.n == 9, "three points of three repetitions"
    assert one.rmse == other.rmse
