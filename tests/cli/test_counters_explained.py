"""`workbench counters --explain --unseen`: what moved a prediction, and who was not trained on."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from documented import described
from published_counters import LineModel, chain_table

from workbench.cli.counter_explaining import says
from workbench.cli.counter_words import text_of
from workbench.cli.counters import MoreOfCounters, counters
from workbench.domain.errors import DataError


def test_what_moved_a_prediction_and_a_function_that_was_not_trained_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    functions = ("bridge", "router", "firewall")
    for level in range(1, 9):
        chain_table(tmp_path / "linear" / f"exp-{level}.csv", functions, 3, level)
    for room in ("counter_scores", "counter_watch"):
        monkeypatch.setattr(f"workbench.models.{room}.OwnCounterModel", LineModel)
    # The network is only beside ours.
    monkeypatch.setattr("workbench.models.counter_models.GRID_FEW_ROWS", 1)
    counters([tmp_path / "linear"], more=MoreOfCounters(True, "router"), json=True)
    printed = json.loads(capsys.readouterr().out)
    described(printed, "`counters`")
    assert printed["explained"]["rows"] == 24
    strongest = printed["explained"]["counters"][0]
    assert strongest["factor"] > 1.05
    assert strongest["says"].partition(": ")[0] in functions
    assert printed["explained"]["beside"] == []
    assert printed["components"][0]["share"] > 0.9
    found = printed["transfer"]
    assert (found["function"], found["learned_from"]) == ("router", ["bridge", "firewall"])
    text = text_of(printed)
    assert "router, not trained on: output_rate by 2 counters of bridge, firewall" in text
    assert "if nothing counted as outside" in text
    assert "principal components" in text
    for columns in (60, 80):
        assert max(map(len, text_of(printed, columns).splitlines())) <= columns
    assert re.search(r"^\w+_\S+ +\w+: perf: instructions +×1\.\d+ +raises it", text, re.M)


def test_a_function_with_one_experiment_is_told_by_others_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("workbench.models.counter_watch.OwnCounterModel", LineModel)
    files = [
        chain_table(tmp_path / f"exp-{level}.csv", ("bridge", "router"), 6, level)
        for level in range(1, 7)
    ]
    one = chain_table(tmp_path / "firewall.csv", ("firewall",), 12, 3)
    counters([*files, one], more=MoreOfCounters(unseen="firewall"), plot=True)
    said = capsys.readouterr()
    assert "1 experiment: too few for models of its own" in said.err
    assert "firewall, not trained on: output_rate by 2 counters of bridge, router" in said.out
    assert re.search(r"^  12 of 12 rows: median error \d\.\d %", said.out, re.M)
    assert re.search(r"^1 +\d+\.\d % +[+-]\d\.\d\d +- ", said.out, re.M), "no interval of one"


def test_without_the_extra_nothing_is_learned_before_that_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(DataError, match="which is not installed") as caught:
        counters([tmp_path / "gone"], more=MoreOfCounters(explain=True))
    assert "vnf-workbench[explain]" in str(caught.value.remedy)


def test_counters_are_told_in_the_words_of_why() -> None:
    assert says("cpu_wait_s") == "waiting for CPU, over all threads"
    assert says("host softirqs NET_RX") == "host: deferred work, by kind (NET_RX)"
    assert says("cpu_cores") == "CPU that it used"
    assert says("payload_scan_cache-misses") == "payload_scan: perf: missed the last cache"
    assert says("wss") == says("bridge_uops") == ""
