"""`models` by the installed command: table, model in force, influence, and what it refuses."""

from __future__ import annotations

import asyncio
import json

import chain_session
import pytest
from driving import Workbench
from modelling_session import SESSION, first, write_session
from session_making import closed_session

FIELDS = {
    "target", "kpi", "method", "samples", "rmse", "rmse_trimmed", "mae", "mad", "mape", "log_error",
    "coverage", "width", "fit_s", "best", "trouble", "version", "influence", "influence_basis",
    "formulas",
}  # fmt: skip


@pytest.mark.slow
def test_models_are_scored_on_a_recording_and_the_best_is_named(shared: Workbench) -> None:
    asked = ("models", "demo-real", "--target", "tinyproxy", "--kpi", "throughput")
    done = shared.run(*asked, "--methods", "short,lasso1", "--json")
    scores = json.loads(done.stdout)
    assert {frozenset(score) for score in scores} == {frozenset(FIELDS)}
    assert {score["target"] for score in scores} == {"tinyproxy"}
    assert {score["kpi"] for score in scores} == {"throughput_rps"}
    judged = [score for score in scores if not score["trouble"]]
    assert {s["method"] for s in judged} >= {"interpolation", "pooled", "lasso1"}
    assert [score["best"] for score in scores].count(True) == 1
    best = next(score for score in scores if score["best"])
    assert best["log_error"] <= 0.02 + min(score["log_error"] for score in judged)
    assert best["log_error"] < 0.3, "throughput follows the load up to capacity"
    for score in judged:
        assert score["mad"] <= score["rmse"]
        assert score["samples"] == best["samples"] > 10
        assert 0 <= score["coverage"] <= 1
        assert score["width"] > 0
        assert score["version"] is None, "a recording is not changed"
        for shares in score["influence"].values():
            assert abs(sum(shares.values()) - 1.0) < 1e-6
            assert shares.keys() == {"tinyproxy.vcpu", "rate"}
        assert score["influence_basis"] in ("edges", "all")
    by_method = {score["method"]: score["formulas"] for score in judged}
    assert by_method["interpolation"] == by_method["pooled"] == [], "no formula, no coefficients"
    assert "bundles are not changed" in done.stderr


def test_a_sessions_model_is_stored_once_and_its_influences_are_drawn(
    shared: Workbench,
) -> None:
    asyncio.run(write_session(shared.root / "sessions" / f"{SESSION}.duckdb", first()))
    asked = ("models", SESSION, "--target", "haproxy", "--methods", "short")
    text = shared.run(*asked).stdout
    assert "version 1, of 8 samples" in text
    assert "influence, by partial least squares on 4 edge samples" in text
    bars = [line.split() for line in text.splitlines() if "#" in line]
    assert {bar[0] for bar in bars} == {"haproxy.vcpu", "rate_rps"}
    assert all(abs(len(bar[1]) * 5 - int(bar[2].strip("%"))) <= 3 for bar in bars)
    assert max(map(len, text.split("influence")[1].split("\n\n")[0].splitlines())) < 80

    scores = shared.json(*asked, "--json")
    assert [s["version"] for s in scores if s["best"]] == [1]
    assert [s["version"] for s in scores if not s["best"]].count(None) == len(scores) - 1
    view = shared.json("show", SESSION, "--json")
    (model,) = view["models"]
    assert model["method"] == next(s["method"] for s in scores if s["best"])
    assert [(i["samples"], i["basis"]) for i in view["influences"]] == [(4, "edges")]
    assert view["state"] == "finished"


def test_a_catalogue_fit_is_exported_with_its_coefficients_and_their_errors(
    shared: Workbench,
) -> None:
    """Paper D's Algorithm 2 per KPI and region: p95 is a power law of the load in that session."""
    asyncio.run(write_session(shared.root / "sessions" / "catalogued.duckdb", first()))
    asked = ("models", "catalogued", "--target", "haproxy", "--methods", "catalogue")
    (score,) = shared.json(*asked, "--json")
    formulas = score["formulas"]
    assert [f["configuration"]["resources"]["haproxy.vcpu"] for f in formulas] == [0.125, 0.25]
    for formula in formulas:
        assert (formula["region"], formula["function"]) == ("whole range", "power")
        assert [formula["low"], formula["high"]] == pytest.approx([100.0, 800.0])
        factor, exponent = formula["coefficients"]
        assert abs(exponent["value"] - 1.5) < 0.01
        assert 0.0 <= exponent["error"] < 0.1
        assert factor["error"] is not None
        assert formula["standard_error"] < 0.05
    text = shared.run(*asked).stdout
    assert "functions of catalogue" in text
    assert f"whole range, 100 to 800: power, {formulas[0]['formula']}" in text
    shown = [line for line in text.splitlines() if "±" in line and " = " in line]
    assert len(shown) == len(formulas)


def test_what_cannot_be_scored_is_a_sentence(shared: Workbench) -> None:
    for wrong, sentence in (
        (("--target", "hapoxy"), "has no target 'hapoxy'"),
        (("--kpi", "p100"), "no KPI"),
        (("--methods", "laso2"), "no model is called 'laso2'"),
    ):
        failing = shared.run("models", "demo-real", *wrong, expect=2)
        assert sentence in failing.stderr
    failing = shared.run("models", "demo-real", "--kpi", "jitter", expect=None)
    assert failing.returncode != 0
    assert "samples states jitter_ms" in failing.stderr


def test_a_session_that_can_teach_no_model_is_wrong_use(shared: Workbench) -> None:
    async def write() -> None:
        sessions = shared.root / "sessions"
        await chain_session.write_chain_session(sessions / "unstated.duckdb")
        await closed_session(sessions / "begun.duckdb", until=0)

    asyncio.run(write())
    # The last target of that campaign was never measured: the others are refused all the same.
    refused = shared.run("models", "unstated", "--kpi", "jitter", expect=2)
    assert "samples states jitter_ms" in refused.stderr
    assert refused.stdout == ""
    assert "begun: has no samples" in shared.run("models", "begun", expect=2).stderr
