"""`workbench counters`: from published files to models, weights and a figure by one command."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from documented import described, known
from driving import Workbench
from published_counters import QuadraticModel, co_located, experiments

from workbench.cli.counter_words import text_of
from workbench.cli.counters import CountersOfSession, CountersReading, MoreOfCounters, counters
from workbench.domain.errors import UsageError


def test_rows_beside_competitors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("workbench.models.co_located.OwnCounterModel", QuadraticModel)
    monkeypatch.setattr("workbench.models.counter_models.GRID_FEW_ROWS", 1)  # each takes a second
    folder = co_located(tmp_path / "flowmon", 15)
    counters([folder], reading=CountersReading(seeds=1), json=True)
    said, told = capsys.readouterr()
    assert "read as co-located" in told
    assert "SLOMO's extrapolation needs runs that are not published" in told
    printed = json.loads(said)
    described(printed, "`counters`")
    models = {one["model"]: one for one in printed["models"]}
    assert printed["models"][0]["model"] == "ours"
    assert models["ours"]["rows"] == models["Yala"]["rows"] == 24
    assert 0.8 <= models["ours"]["coverage"] <= 1.0
    assert models.pop("the accelerator alone")["width"] is None, "it learns nothing"
    assert all(one["width"] > 0.0 for one in models.values()), "not ours alone has an interval"
    rows = {name: one["learned_from"] for name, one in models.items()}
    assert (rows["ours"], rows["Yala"], rows["Yala, of all rows"]) == (31, 15, 31)
    assert "MLP (paper C), of all rows" in rows
    assert "linear in cache references (Dobrescu), of all rows" in rows
    assert {"name": "pktsize", "why": "constant"} in printed["dropped"]
    assert len(printed["points"]) == 24
    narrow = text_of(printed, 80)
    assert max(map(len, narrow.splitlines())) <= 80
    assert "no room here for: learned from; MAPE: least; MAPE: most" in " ".join(narrow.split())


@pytest.mark.slow
def test_from_tables_to_models_and_figure(workbench: Workbench, tmp_path: Path) -> None:
    experiments(tmp_path / "bridge", 4, 12)
    shown = workbench.run("counters", str(tmp_path / "bridge"), "--plot")
    assert "4 files, read as table" in shown.stderr
    assert "48 rows read, 48 of 4 experiments predicted" in shown.stdout
    for name in ("ours", "MLP (paper C)", "boosting (SLOMO)", "linear in cache ref", "linear"):
        (line,) = re.findall(rf"^{re.escape(name)}.*  .*%$", shown.stdout, re.M)[:1]
        assert line.count("%") == 9, "errors, interval and width by experiment, errors by row"
    assert "bridge_cycles (same as bridge_instructions); bridge_mem-stores" in shown.stdout
    figure = shown.stdout.partition("predicted (up) over measured (across)")[2]
    assert len(figure.splitlines()) >= 20
    assert known("`counters`") >= {"by_row", "experiments"}


def test_of_a_session_whose_samples_have_no_counters(workbench: Workbench) -> None:
    bare = workbench.run("counters", "--session", "demo-real", "--function", "haproxy", expect=2)
    assert "has throughput_rps and counters of haproxy beside it" in bare.stderr
    strange = workbench.run("counters", "--session", "demo-real", "--unseen", "nginx", expect=2)
    assert "has no samples of nginx alone" in strange.stderr
    with pytest.raises(UsageError, match="a session is read by function"):
        counters(of=CountersOfSession("demo-real"))
    with pytest.raises(UsageError, match="there is nothing to read"):
        counters()


def test_what_it_cannot_use_is_a_sentence(workbench: Workbench, tmp_path: Path) -> None:
    two = experiments(tmp_path / "two", 2, 10)
    few = workbench.run("counters", *map(str, two), expect=2)
    assert "2 experiments" in few.stderr
    assert "Give more files" in few.stderr
    with pytest.raises(UsageError, match="gone: cannot be read: No such file"):
        counters([tmp_path / "gone"])
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="is no file but a pipe"):
        counters([tmp_path / "pipe"])
    with pytest.raises(UsageError, match="--unseen: names no function"):
        counters(two, more=MoreOfCounters(unseen=""))
    with pytest.raises(UsageError, match="--seeds: is of Yala's rows, and these are tables"):
        counters(two, reading=CountersReading(seeds=3))
    for of in (CountersOfSession("s", "haproxy"), CountersOfSession("s", chain="a,b")):
        with pytest.raises(UsageError, match="--seeds: is of Yala's rows, and a session is read"):
            counters(of=of, reading=CountersReading(seeds=10))
    with pytest.raises(UsageError, match="did you mean output_rate"):
        counters(two, reading=CountersReading(kpi="output"))
