"""`predict` and `compare --chain` by the installed command: tables, JSON, refusals, exit codes."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from chain_session import RIGHT, SESSION, UNMEASURED, WRONG, write_chain_session
from driving import Workbench

AT = "rate=300/s, filesize=10kB"
PREDICTED = {
    "chain", "kpi", "unit", "rule", "configuration", "wl", "value", "functions", "limiting",
    "takeovers", "curve", "next_step", "extrapolates", "warnings", "note", "models",
    "model_version", "rests_on", "canaries", "shared_cores",
}  # fmt: skip
COMPARED = {
    "chain", "kpi", "rule", "buckets", "ab_floor", "mae", "mad", "rmse", "mape", "log_error",
    "baseline_rmse", "configurations", "outliers", "model_version",
}  # fmt: skip


@pytest.fixture(scope="module")
def measured(shared: Workbench) -> Workbench:
    """A workspace with a session of two functions and chains of them."""
    asyncio.run(write_chain_session(shared.root / "sessions" / f"{SESSION}.duckdb"))
    return shared


@pytest.mark.slow
def test_a_chain_of_the_recording_is_predicted_within_80_columns(shared: Workbench) -> None:
    narrow = replace(shared, variables={"COLUMNS": "80", "NO_COLOR": "1"})
    asked = (
        "--chain",
        "tinyproxy-haproxy",
        "--at",
        AT,
        "--kpi",
        "mean",
    )  # fitted for the next, too
    done = narrow.run("predict", "demo-real", *asked)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in done.stdout
    assert lines[3].split()[:3] == ["tinyproxy", "haproxy", "mean_ms"], "in the chain's order"
    assert " is outside 500 to" in " ".join(done.stdout.split()), "wherever it wraps"
    assert "bundles are not changed" in done.stderr


def test_the_recorded_chain_that_waits_for_acknowledgements_is_a_finding(
    shared: Workbench,
) -> None:
    done = shared.run(
        "compare", "demo-real", "--chain", "tinyproxy-haproxy", "--kpi", "mean", "--json", expect=1
    )
    found = json.loads(done.stdout)
    assert found.keys() == COMPARED
    assert (found["chain"], found["kpi"], found["rule"]) == (
        "tinyproxy-haproxy", "mean_ms", "added-means",
    )  # fmt: skip
    assert {outlier["verdict"] for outlier in found["outliers"]} == {"worse"}
    assert max(outlier["ratio"] for outlier in found["outliers"]) > 20.0
    assert found["baseline_rmse"] < found["rmse"]
    assert sum(row["samples"] for row in found["buckets"]) == sum(
        row["samples"] for row in found["configurations"]
    )
    errors = [row["mape"] for row in found["configurations"]]
    assert errors == sorted(errors, reverse=True)


def test_a_session_answers_in_tables_and_json_and_keeps_the_models(measured: Workbench) -> None:
    asked = ("predict", SESSION, "--chain", RIGHT, "--at", AT, "--kpi", "mean")
    predictions = measured.json(*asked, "--json")
    assert [frozenset(p) for p in predictions] == [frozenset(PREDICTED)] * 2
    for prediction in predictions:
        assert len(prediction["curve"]["wl"]) == len(prediction["curve"]["mean"]) <= 200
        assert {model["version"] for model in prediction["models"]} == {1}

    agrees = measured.run("compare", SESSION, "--chain", RIGHT, "--kpi", "mean")
    assert "In no configuration is the chain better or worse" in agrees.stdout
    assert "trained directly" in agrees.stdout
    assert "weakest-link" in agrees.stdout
    deviates = measured.run("compare", SESSION, "--chain", WRONG, "--kpi", "mean", expect=1)
    assert "slower" in deviates.stdout.partition("predicted by")[0], "outliers come first"
    assert not [line for line in deviates.stdout.splitlines() if len(line) > 80]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (("predict", SESSION, "--chain", RIGHT, "--at", "rate=300 ms"), "not a unit of a rate"),
        (("predict", SESSION, "--chain", "nobody", "--at", AT), "has a chain 'nobody'"),
        (("predict", SESSION, "--chain", RIGHT, "--at", "rate=90000/s"), "outside everything"),
        (
            ("predict", "science-open", "--chain", "tinyproxy-haproxy", "--at", "rate=300/s"),
            "does not say filesize, which was profiled at 10kB, 100kB. Add it, as filesize=10kB.",
        ),
        (("compare", SESSION, "--chain", UNMEASURED), "has no valid samples of"),
        (("compare", SESSION, SESSION, "--chain", RIGHT), "--profiles"),
        (("compare", SESSION), "Give two sessions"),
        (("compare", SESSION, SESSION, "--kpi", "mean"), "Give two sessions"),
    ],
)
def test_wrong_use_is_a_sentence_and_exits_with_2(
    measured: Workbench, asked: tuple[str, ...], sentence: str
) -> None:
    assert sentence in measured.run(*asked, expect=2).stderr
