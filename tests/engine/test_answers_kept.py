"""What was computed for a question is not computed again, and no result is another for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from modelling_session import InlinePool
from recommending_session import CHAIN, SESSION, make_workspace

from workbench.domain.questions import ChainQuery, Recommend
from workbench.engine.answers import performance
from workbench.engine.answers.chain_inputs import compose, gather, subject_of
from workbench.engine.answers.recommending import recommend
from workbench.engine.learning import refitting
from workbench.engine.sessions.library import Library
from workbench.models.forecast import ProfileForecaster
from workbench.paths import Workspace
from workbench.sla import max_load

SLA = "p95<=1000ms @ concurrent=80, filesize=10kB"
pytestmark = pytest.mark.usefixtures("few_candidates")


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(max_load, "LOADS", 5)
    monkeypatch.setattr(max_load, "ROUNDS", 5)
    monkeypatch.setattr(performance, "LOADS", 5)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return make_workspace(tmp_path_factory.mktemp("made"))


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Methods that are fitted to a whole table, as they are; nothing is kept from before."""
    found: list[str] = []
    real = refitting._fitted_anew

    def counting(table: Any, method: str, settings: Any) -> Any:
        found.append(method)
        return real(table, method, settings)

    monkeypatch.setattr(refitting, "_kept_fits", {})
    monkeypatch.setattr(refitting, "_fitted_anew", counting)
    return found


def no_lab(*_: object, **__: object) -> None:
    raise AssertionError("nothing is measured")


@pytest.mark.parametrize("store", [True, False])
async def test_a_question_asked_twice_scores_and_fits_nothing_again(
    library: Library, pool: InlinePool, fits: list[str], store: bool
) -> None:
    """Whether the session keeps its models or, as a recording, does not."""
    asked = Recommend(SESSION, (SLA,), CHAIN)
    first = await recommend(library, pool, no_lab, asked, store=store)
    assert pool.asked.count("row_of") > 0
    once = len(fits)
    before = list(pool.asked)
    second = await recommend(library, pool, no_lab, asked, store=store)
    assert "row_of" not in pool.asked[len(before) :]
    assert len(fits) == once
    ours = second.recommendation
    assert replace(ours, id="", at=0.0) == replace(first.recommendation, id="", at=0.0)


async def test_who_loads_what_was_just_chosen_does_not_fit_it_again(
    library: Library, pool: InlinePool, fits: list[str]
) -> None:
    question = ChainQuery(SESSION, CHAIN)
    basis = await gather(library, pool, await subject_of(library, question), question)
    chosen = len(fits)
    assert chosen == len(basis.profiles.models)
    assert compose(basis).warnings == ()
    besides = len(basis.profiles.besides) * len(basis.profiles.targets)
    assert len(fits) - chosen <= besides, "only KPIs whose models are not chosen are fitted"


async def test_a_point_asked_again_is_told_again(
    library: Library, pool: InlinePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = ChainQuery(SESSION, CHAIN)
    basis = await gather(library, pool, await subject_of(library, question), question)
    chain = compose(basis).by("")
    points = [(s.point.configuration, s.point.wl) for s in basis.profiles.samples[:1]]
    part = next(iter(chain.parts.values()))
    own = [(part.configuration(c, part.vnf), wl) for c, wl in points]
    forecaster = part.forecasters[basis.kpi]
    once = forecaster.forecast(own)

    def never(*_: object) -> None:
        raise AssertionError("predicted again")

    monkeypatch.setattr(ProfileForecaster, "_said", never)
    assert forecaster.forecast(own) is once
    with pytest.raises(ValueError, match="read-only"):
        once.mean[0] = 0.0


async def test_what_is_kept_of_forecasts_is_bounded(
    library: Library, pool: InlinePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = ChainQuery(SESSION, CHAIN)
    basis = await gather(library, pool, await subject_of(library, question), question)
    part = next(iter(compose(basis).by("").parts.values()))
    forecaster = part.forecasters[basis.kpi]
    monkeypatch.setattr("workbench.models.forecast.MOST_KEPT", 10)
    configuration = next(
        s.point.configuration for s in basis.profiles.samples if s.point.target == part.target
    )
    for wl in np.linspace(5.0, 90.0, 25):
        forecaster.forecast([(configuration, float(wl))])
    assert isinstance(forecaster, ProfileForecaster)
    assert sum(len(told.mean) for told in forecaster._told.values()) <= 10
