"""`counters --chain`: a topology that nobody trained on, held against the simulated lab."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from documented import described
from driving import Workbench, a_workbench
from published_counters import QuadraticModel
from session_making import measurement

from workbench.cli.context import settings
from workbench.cli.counter_chain_words import chain_text, measured_and_predicted
from workbench.cli.counters import CountersOfSession, CountersReading, MoreOfCounters, counters
from workbench.domain.errors import DataError, UsageError
from workbench.domain.parameters import Configuration, PrimaryWorkload
from workbench.domain.sample_review import SampleDetail
from workbench.domain.topology import Target, Vnf
from workbench.engine.answers.counted_chains import counted_function

CAMPAIGN = Path(__file__).with_name("counted_core.yaml")
P95 = CountersReading(kpi="p95")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a session of two functions and their chain, all on one core."""
    with a_workbench(tmp_path_factory.mktemp("counted")) as made:
        run = ("run", str(CAMPAIGN), "--session", "core", "--lab", "sim", "--headless")
        made.run(*run)
        return made.root


@pytest.fixture
def session(measured: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(settings, "workspace", measured)
    monkeypatch.setattr("workbench.models.counter_watch.OwnCounterModel", QuadraticModel)
    return "core"


def asked(
    session: str, chain: str, capsys: pytest.CaptureFixture[str], reading: CountersReading = P95
) -> dict[str, Any]:
    counters(of=CountersOfSession(session, chain=chain), reading=reading, json=True)
    said = capsys.readouterr()
    printed: dict[str, Any] = json.loads(said.out)
    printed["said"] = said.err
    described({name: one for name, one in printed.items() if name != "said"}, "`counters`")
    return printed


@pytest.mark.slow
def test_a_chain_on_a_shared_core_beside_competitors_is_predicted_without_its_samples(
    session: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = asked(session, "haproxy,tinyproxy", capsys)
    assert (told["chain"], told["kpi"]) == ("haproxy-tinyproxy", "p95_ms")
    assert told["topology_trained_on"] is False
    assert [one["target"] for one in told["functions"]] == ["haproxy", "tinyproxy"]
    assert set(told["functions"][0]["beside"]) == {"none", "cpu:20", "cpu:40", "cpu:60"}
    score = told["score"]
    assert score["judged"] + score["outside"] + score["overloaded"] == score["samples"] >= 12
    assert score["judged"] >= 6
    assert score["coverage"] >= 0.8
    ends = [one["value"]["high"] / one["value"]["low"] for one in told["points"] if one["value"]]
    assert min(ends) <= 1.0 + score["width"] <= max(ends), "upper / lower - 1, as of models"
    assert score["median_error"] < 0.25
    text = chain_text(told)
    heading = "haproxy-tinyproxy, a topology not trained on: p95_ms by the rule convolved, of"
    assert heading in " ".join(text.split())
    assert f"factor {1.0 + score['width']:.2g} end to end" in " ".join(text.split())
    assert len(measured_and_predicted(told)) == score["judged"]
    monkeypatch.setattr("workbench.cli.counter_chain_words.terminal_columns", lambda: 80)
    assert max(map(len, chain_text(told).splitlines())) <= 80


def test_a_chain_that_nobody_measured_is_told_and_held_against_nothing(
    session: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.cli.piece_progress.QUIET_S", 0.0)
    told = asked(session, "tinyproxy,haproxy", capsys, CountersReading(kpi="throughput"))
    assert told["chain"] == "tinyproxy-haproxy"
    assert told["score"] is None
    assert "12 of 24 operating points of the chain" in told["said"]
    assert "model 2 of 2: haproxy: throughput_rps from 16 windows" in told["said"]
    assert len(told["points"]) == 24, "four competitors, six loads"
    assert all(point["measured"] == [] for point in told["points"])
    most = max(point["value"]["value"] for point in told["points"] if point["value"])
    assert most > 260.0, "what p95 is cut at in milliseconds cuts no requests per second"
    text = chain_text(told)
    assert "nobody has measured this chain" in text
    assert "others take of its cores" in text
    assert measured_and_predicted(told) == []


def test_what_cannot_be_composed_is_a_sentence(session: str) -> None:
    def refused(match: str, chain: str, **more: Any) -> None:
        with pytest.raises(UsageError, match=match):
            counters(of=CountersOfSession(session, chain=chain), reading=P95, **more)

    refused("'nginx' was not measured alone", "haproxy,nginx")
    refused("names a function twice", "haproxy,haproxy")
    refused("is one function", "haproxy")
    refused("nothing else is asked with it", "a,b", more=MoreOfCounters(unseen="haproxy"))
    with pytest.raises(UsageError, match="nothing else is asked with it"):
        counters(of=CountersOfSession(chain="haproxy,tinyproxy"))


def test_of_a_simulated_function_no_counters_are_claimed(session: str) -> None:
    with pytest.raises(UsageError, match="simulated lab, where no kernel counts"):
        counters(of=CountersOfSession(session, function="haproxy"), reading=P95)


def test_samples_without_counters_teach_nothing() -> None:
    made = measurement("haproxy", Configuration({"haproxy.vcpu": 1.0}, {}), 100.0)
    bare = SampleDetail(replace(made.sample, usage={}), made.windows, None, None)
    primary = PrimaryWorkload("rate_rps", 100.0, 800.0)
    with pytest.raises(DataError, match="none of 1 samples has p50_ms, p95_ms, throughput_rps"):
        counted_function(Target("haproxy", Vnf("haproxy", "haproxy")), [bare], primary, "p95_ms")


def test_the_command_takes_it(workbench: Workbench) -> None:
    done = workbench.run("counters", "--chain", "a,b", expect=2)
    assert "a chain is composed of a session's functions" in done.stderr
