"""Models of targets: chosen, stored, fitted again, checked; and what survives a kill."""

from __future__ import annotations

import asyncio
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from modelling_session import (
    CHEAP,
    LARGE,
    SESSION,
    SMALL,
    TARGET,
    InlinePool,
    first,
    make_workspace,
    measure_more,
    stored_view,
)
from session_making import facts

from workbench.domain.errors import DataError, PluginError, UsageError
from workbench.domain.events import TargetModelled
from workbench.domain.profiles import ModelScore, TargetModel
from workbench.domain.projection import SessionView
from workbench.domain.questions import ScoreModels
from workbench.domain.samples import Estimate
from workbench.engine.learning import modelling, scoring
from workbench.engine.learning.modelling import model_of, model_version, score
from workbench.engine.learning.refitting import StoredModel, fit_to_all, load
from workbench.engine.learning.scoring import table_for
from workbench.engine.sessions.library import Library
from workbench.models.forecast import Points
from workbench.paths import Workspace

POINTS: Points = [(SMALL, 150.0), (LARGE, 300.0), (LARGE, 5000.0)]
pytestmark = pytest.mark.usefixtures("few_candidates")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return make_workspace(tmp_path_factory.mktemp("made"), first())


def said(stored: StoredModel) -> tuple[np.ndarray, ...]:
    forecast = load(stored).forecaster.forecast(POINTS)
    return forecast.mean, forecast.low, forecast.high, forecast.extrapolates


async def test_the_best_is_fitted_to_all_samples_and_stored_once(
    workspace: Workspace, library: Library, pool: InlinePool
) -> None:
    first = await model_of(library, pool, SESSION, TARGET)
    model = first.model
    assert first.unstored == ""
    assert (model.version, model.origin, model.kpi) == (1, "profile", "p95_ms")
    assert model.method in CHEAP
    assert model.sample_ids == tuple(sample.id for sample in first.samples)
    assert len(model.sample_ids) == 8
    assert model.score.best
    assert model.score.log_error is not None
    assert {"scikit-learn", "numpy", "vnf-workbench"} <= model.libraries.keys()
    asked = len(pool.asked)
    again = await model_of(library, pool, SESSION, TARGET, "p95")
    assert again == first
    assert len(pool.asked) == asked, "nothing is compared or fitted where nothing is new"
    await library.close()

    view = await stored_view(workspace)
    assert view.seq == len(facts()) + 2
    assert [(m.version, m.method, m.samples) for m in view.models] == [(1, model.method, 8)]
    assert view.state == "finished"
    assert view.log[-1].text == f"haproxy: model 1 of p95_ms is {model.method}, fitted to 8 samples"
    assert (await stored_view(workspace, view.seq - 1)).models == []


async def test_stored_and_fitted_again_it_says_the_same(
    workspace: Workspace, library: Library, pool: InlinePool
) -> None:
    made = await model_of(library, pool, SESSION, TARGET)
    direct = said(made)
    await library.close()
    other = Library(workspace)
    found = await model_version(other, SESSION, TARGET, None, 1)
    await other.close()
    assert found.model == made.model
    assert load(found).warning == ""
    for one, again in zip(direct, said(found), strict=True):
        np.testing.assert_array_equal(one, again)
    assert direct[3].tolist() == [False, False, True]


async def test_a_fit_is_kept_for_the_next_question_and_not_for_other_samples(
    library: Library, pool: InlinePool
) -> None:
    stored = await model_of(library, pool, SESSION, TARGET)
    once, again = (load(stored).forecaster.model for _ in range(2))
    assert again is once
    slower = replace(stored.samples[0], kpis={"p95_ms": Estimate(90.0, 80.0, 100.0)})
    changed = load(replace(stored, samples=(slower, *stored.samples[1:])))
    assert changed.forecaster.model is not once
    assert "coefficient" in changed.warning
    assert load(stored).forecaster.model is once


@pytest.mark.parametrize(
    "method",
    ["interpolation", "pooled", "gaussian-process-a", "curve-fit", "catalogue", "multi-lasso"],
)
async def test_methods_of_every_make_are_data_that_can_be_fitted_again(
    library: Library, method: str
) -> None:
    given = await scoring.material(library, SESSION, None)
    table = table_for(given.campaign, TARGET, given.of(TARGET), "p95_ms")
    fit = fit_to_all(table, method, given.of(TARGET))
    assert not {"categorical", "ceiling"} & fit.parameters.keys()
    assert all(math.isfinite(value) for value in fit.coefficients)
    model = TargetModel(
        TARGET, "p95_ms", 1, "profile", method, fit.parameters, given.campaign.kpi_max,
        table.sample_ids, fit.coefficients, fit.coefficient_count,
        ModelScore(TARGET, "p95_ms", method, 8), fit.libraries, fit.formulas,
    )  # fmt: skip
    assert bool(fit.formulas) == (method in ("curve-fit", "catalogue"))
    assert {f.configuration for f in fit.formulas} <= {SMALL, LARGE}
    assert all(c.error is not None for f in fit.formulas for c in f.coefficients)
    assert load(StoredModel(given.campaign, model, given.of(TARGET))).warning == ""


async def test_what_was_changed_is_noticed_and_what_is_to_blame_is_named(
    library: Library, pool: InlinePool
) -> None:
    stored = await model_of(library, pool, SESSION, TARGET)
    model, direct = stored.model, said(stored)

    def warned(**changed: object) -> str:
        loaded = load(replace(stored, model=replace(model, **changed)))  # type: ignore[arg-type]
        np.testing.assert_array_equal(loaded.forecaster.forecast(POINTS).mean, direct[0])
        return loaded.warning

    last = model.coefficients[-1]
    tampered = (*model.coefficients[:-1], last * 1.01)
    text = warned(coefficients=tampered)
    assert f"model 1 of haproxy, p95_ms ({model.method})" in text
    assert f"coefficient {len(tampered)} of {len(tampered)}" in text
    assert "no library has changed" in text
    older = {**model.libraries, "scikit-learn": "0.1"}
    text = warned(coefficients=tampered, libraries=older)
    assert f"scikit-learn is {model.libraries['scikit-learn']} and was 0.1" in text
    assert "coefficients are stored" in warned(coefficients=model.coefficients[:-1])
    assert "has no parameter gone" in warned(parameters={**model.parameters, "gone": 1})
    assert warned(libraries=older) == "", "another version that fits the same is no matter"
    assert warned(coefficients=(*model.coefficients[:-1], last * (1 + 1e-7))) == ""

    fewer = load(replace(stored, samples=stored.samples[1:]))
    assert "1 of its 8 samples cannot be used" in fewer.warning


async def test_samples_that_came_since_make_a_new_version(
    library: Library, pool: InlinePool
) -> None:
    first = await model_of(library, pool, SESSION, TARGET)
    await measure_more(library, 600.0)
    second = await model_of(library, pool, SESSION, TARGET)
    assert (second.model.version, len(second.model.sample_ids)) == (2, 9)
    assert first.model.method in {s.method for s in await scores_of_last(library)}
    old = await model_version(library, SESSION, TARGET, None, 1)
    assert old.model == first.model
    assert load(old).warning == ""
    with pytest.raises(UsageError, match=r"no version 7.*Stored are: 1, 2"):
        await model_version(library, SESSION, TARGET, None, 7)
    throughput = await model_of(library, pool, SESSION, TARGET, "throughput")
    assert (throughput.model.version, throughput.model.kpi) == (1, "throughput_rps")
    assert throughput.model.kpi_max == 800.0, "of another KPI every figure counts"


async def scores_of_last(library: Library) -> tuple[ModelScore, ...]:
    async with library.borrow(SESSION) as channel:
        (event,) = await channel.file.events(channel.view.seq - 1, 1)
    assert isinstance(event.fact, TargetModelled)
    return event.fact.scores


async def test_two_who_ask_at_once_make_one_version(
    workspace: Workspace, library: Library, pool: InlinePool
) -> None:
    asked = [model_of(library, pool, SESSION, TARGET) for _ in range(2)]
    tables = [score(library, pool, ScoreModels(SESSION, TARGET, methods=("short",)))]
    one, other, _ = await asyncio.gather(*asked, *tables)
    assert one == other
    await library.close()
    assert len((await stored_view(workspace)).models) == 1


async def test_a_bundle_is_computed_and_said_not_to_be_stored(
    workspace: Workspace, library: Library, pool: InlinePool, tmp_path: Path
) -> None:
    bundle = tmp_path / "shipped.bundle"
    async with library.borrow(SESSION) as channel:
        await channel.file.write_tables(bundle)
    found = await model_of(library, pool, str(bundle), TARGET)
    assert found.model.version == 0
    assert "is a bundle, and bundles are not changed" in found.unstored
    assert said(found)[0].shape == (3,)
    reply = await score(library, pool, ScoreModels(str(bundle), TARGET, methods=("short",)))
    assert reply.models == ()
    assert [s.best for s in reply.scores].count(True) == 1
    assert reply.notes == (found.unstored,)


async def test_a_bundle_of_a_modelled_session_carries_its_models(
    library: Library, pool: InlinePool, tmp_path: Path
) -> None:
    made = await model_of(library, pool, SESSION, TARGET)
    async with library.borrow(SESSION) as channel:
        await channel.file.write_tables(tmp_path / "with.bundle")
    found = await model_of(library, pool, str(tmp_path / "with.bundle"), TARGET)
    assert found == made


async def test_a_stored_catalogue_keeps_its_functions_and_their_standard_errors(
    catalogued: Workspace, pool: InlinePool
) -> None:
    library = Library(catalogued)
    made = await model_of(library, pool, SESSION, TARGET)
    assert made.unstored == ""
    await library.close()
    library = Library(catalogued)
    stored = await model_version(library, SESSION, TARGET, None, 1)
    await library.close()
    formulas = stored.model.formulas
    assert formulas == made.model.formulas
    assert [f.configuration for f in formulas] == [SMALL, LARGE]
    assert {(f.function, f.region) for f in formulas} == {("power", "whole range")}
    for formula in formulas:
        exponent = formula.coefficients[1]
        assert exponent.value == pytest.approx(1.5, rel=1e-3), "p95 is a power law"
        assert exponent.error is not None
        assert exponent.error < 0.1


@pytest.fixture(scope="module")
def catalogued(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return make_workspace(tmp_path_factory.mktemp("catalogued"), first("catalogue"))


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Workspace]:
    """Workspaces whose campaign names its model."""
    return {
        name: make_workspace(tmp_path_factory.mktemp(name), first(name))
        for name in ("interpolation", "gone")
    }


async def test_the_method_that_a_campaign_names_is_taken_though_others_are_better(
    named: dict[str, Workspace], pool: InlinePool
) -> None:
    library = Library(named["interpolation"])
    found = await model_of(library, pool, SESSION, TARGET)
    assert found.model.method == "interpolation"
    reply = await score(library, pool, ScoreModels(SESSION, TARGET, methods=("short",)))
    assert next(s.method for s in reply.scores if s.best) != "interpolation"
    assert [(m.method, m.version) for m in reply.models] == [("interpolation", 1)]
    await library.close()


async def test_a_named_method_that_fails_is_named_and_others_are_compared(
    named: dict[str, Workspace], pool: InlinePool
) -> None:
    library = Library(named["gone"])
    found = await model_of(library, pool, SESSION, TARGET)
    assert found.model.method in CHEAP
    async with library.borrow(SESSION) as channel:
        assert channel.view.log[-1].level == "warning"
        assert "the campaign's model 'gone' fails" in channel.view.log[-1].text
    await library.close()


async def test_nothing_to_learn_from_is_a_sentence(library: Library, pool: InlinePool) -> None:
    with pytest.raises(DataError, match="states jitter_ms"):
        await model_of(library, pool, SESSION, TARGET, "jitter")
    with pytest.raises(UsageError, match="has no target 'hapoxy'"):
        await model_of(library, pool, SESSION, "hapoxy")
    with pytest.raises(UsageError, match="no KPI"):
        await model_of(library, pool, SESSION, TARGET, "p100")


async def test_models_that_hang_are_named_and_hold_up_nobody(
    library: Library, pool: InlinePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(scoring, "PATIENCE_S", 0.0)
        with pytest.raises(DataError, match="no model can be fitted"):
            await model_of(library, pool, SESSION, TARGET)
        reply = await score(library, pool, ScoreModels(SESSION, TARGET, methods=("short",)))
    assert [s.trouble for s in reply.scores] == ["has not answered for 0 s."] * 2
    assert (await model_of(library, pool, SESSION, TARGET)).model.version == 1


async def test_formulas_that_cannot_be_told_cost_nobody_his_scores(
    library: Library, pool: InlinePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(*_: object) -> None:
        raise PluginError("has not answered")

    monkeypatch.setattr(modelling, "formulas_in", hangs)
    reply = await score(library, pool, ScoreModels(SESSION, TARGET, methods=("short",)))
    assert [m.version for m in reply.models] == [1]
    assert reply.formulas == ()
    (note,) = reply.notes
    assert "what the methods come to cannot be told: has not answered" in note


async def test_what_is_acknowledged_survives_a_kill(
    workspace: Workspace, library: Library, pool: InlinePool, tmp_path: Path
) -> None:
    made = await model_of(library, pool, SESSION, TARGET)
    # What lies on the disk in this moment is what a killed engine leaves behind.
    left = Workspace(tmp_path / "after the kill")
    shutil.copytree(workspace.sessions, left.sessions)
    other = Library(left)
    assert await model_of(other, pool, SESSION, TARGET) == made
    await other.close()


async def test_a_kill_between_scoring_and_storing_leaves_the_session_as_it_was(
    workspace: Workspace,
    library: Library,
    pool: InlinePool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await model_of(library, pool, SESSION, TARGET)
    await measure_more(library, 600.0)
    before = await before_the_kill(library)

    async def killed(*_: object) -> None:
        raise ConnectionAbortedError

    with monkeypatch.context() as patch:
        patch.setattr(modelling, "recorded", killed)
        with pytest.raises(ConnectionAbortedError):
            await model_of(library, pool, SESSION, TARGET)
    await library.close()
    assert await stored_view(workspace) == before
    after = Library(workspace)
    assert (await model_of(after, pool, SESSION, TARGET)).model.version == 2
    await after.close()


async def before_the_kill(library: Library) -> SessionView:
    async with library.borrow(SESSION) as channel:
        return channel.snapshot()


async def test_replay_at_any_event_is_the_fold_up_to_it(
    workspace: Workspace, library: Library, pool: InlinePool
) -> None:
    await score(library, pool, ScoreModels(SESSION, TARGET, methods=("short",)))
    await measure_more(library, 600.0)
    await score(library, pool, ScoreModels(SESSION, TARGET, methods=("short",)))
    async with library.borrow(SESSION) as channel:
        live = channel.view
        assert live == await channel.file.view()
        for until in range(len(facts()), live.seq + 1):
            seen = await channel.file.view(until)
            assert [m.seq for m in seen.models] == [m.seq for m in live.models if m.seq <= until]
    assert [m.version for m in live.models] == [1, 2]
    assert [(i.target, i.samples) for i in live.influences] == [(TARGET, 4)], "of the edges"
