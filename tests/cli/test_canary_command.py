"""`canary` and `models --rollback` by the installed command, headless on the simulated lab."""

from __future__ import annotations

import json

import pytest
from driving import REPOSITORY, Workbench

CAMPAIGN = REPOSITORY / "tests" / "engine" / "canary_functions.yaml"
CHAIN = ("--chain", "tinyproxy-haproxy")
FIELDS = {
    "chain", "kpi", "samples", "before", "after", "decision", "version", "proposal", "decided",
    "canary", "drift", "notes",
}  # fmt: skip


@pytest.fixture(scope="module")
def profiled(shared: Workbench) -> Workbench:
    """A workspace with the session `f`, in which both functions are profiled alone."""
    shared.run("run", str(CAMPAIGN), "--session", "f", "--lab", "sim", "--seed", "3", "--headless")
    return shared


@pytest.mark.slow
def test_what_cannot_be_done_is_a_sentence_with_an_exit_code(profiled: Workbench) -> None:
    for wrong, sentence in (
        (("f", *CHAIN, "--accept", "--reject"), "accepted and rejected"),
        (("f", *CHAIN, "--reject"), "does not say why"),
        (("f", *CHAIN, "--guard", "mean<200"), "--guard: compares with '<'"),
        (("f", *CHAIN, "--guard", "p95<=100ms @ rate=9/s"), "names a load"),
        (("f", *CHAIN, "--budget", "soon"), "is not a duration"),
        (("f", *CHAIN, "--steps", "999999999"), "a whole number from 0 to 1000"),
        (("demo-real", *CHAIN), "bundle"),
    ):
        failing = profiled.run("canary", *wrong, expect=2)
        assert sentence in failing.stderr
        assert not failing.stdout
    failing = profiled.run("models", "f", "--rollback", "1", expect=2)
    assert "no retrained model" in failing.stderr


@pytest.mark.slow
def test_a_canary_is_measured_accepted_and_rolled_back(profiled: Workbench) -> None:
    asked = ("canary", "f", *CHAIN, "--guard", "mean<=200ms", "--steps", "5")
    done = profiled.run(
        *asked, "--budget", "5m", "--allocate", "tinyproxy=50%, haproxy=25%", "--json"
    )
    told = json.loads(done.stdout)
    assert told.keys() == FIELDS
    assert (told["chain"], told["kpi"], told["samples"]) == ("tinyproxy-haproxy", "mean_ms", 5)
    assert told["after"]["rmse"] < 0.5 * told["before"]["rmse"]
    assert told["before"].keys() >= {"rmse", "mape", "log_error", "samples"}
    assert (told["decision"], told["version"], told["decided"]) == ("proposed", 0, None)
    assert [step["verdict"] for step in told["canary"]["steps"]] == ["kept"] * 5

    text = profiled.run("canary", "f", *CHAIN, "--accept", "--why", "as measured").stdout
    assert f"proposal {told['proposal']['id']} for mean_ms" in text
    assert "as measured" in text
    assert "In force: version 1" in text
    assert max(map(len, text.splitlines())) <= 120

    failing = profiled.run("models", "f", "--rollback", "4", expect=2)
    assert "has no version 4" in failing.stderr
    assert "stand-alone profiles" in profiled.run("models", "f", "--rollback", "0").stderr
    view = profiled.json("show", "f", "--json")
    (models,) = view["chain_models"]
    assert models["current"] == 0
    assert models["versions"][0]["decision"]["why"] == "as measured"
    assert models["versions"][0]["decision"]["by"]
    assert view["canaries"][0]["ending"]["state"] == "done"


def test_a_guard_that_trips_is_a_finding(profiled: Workbench) -> None:
    order = ("--chain", "haproxy-tinyproxy")
    asked = ("canary", "f", *order, "--guard", "throughput>=49", "--guard", "mean<=0.4ms")
    done = profiled.run(*asked, "--steps", "2", expect=1)
    assert "nothing is proposed" in done.stdout
    assert "mean_ms" in done.stdout
