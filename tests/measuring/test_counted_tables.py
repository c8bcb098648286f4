"""Tables of counters-science.md: each figure can be made again from the rows that are kept."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import counted_pages
import counted_sessions
import designed_stimuli
import kept_counters
import numpy as np
import pytest
from counted_pages import PAGE, HeldOut, published, read_results, write_results
from counted_sessions import of_kept
from doc_blocks import with_blocks
from kept_counters import KeptFunction, keep, read_kept, rows_of_kept, taken_from
from published_counters import LineModel
from session_making import EPOCH, created
from test_held_out_competitors import taken

from workbench.domain.campaign import TargetPlan
from workbench.domain.errors import DataError
from workbench.domain.events import (
    CampaignPlanned,
    ConfigurationStarted,
    RunStarted,
    SampleTaken,
    TargetDeployed,
)
from workbench.domain.parameters import Parameter, PrimaryWorkload
from workbench.domain.samples import Finding, Measurement
from workbench.domain.sessions import Plan, PlannedConfiguration
from workbench.domain.topology import Target, Vnf
from workbench.models.counter_models import CounterLine
from workbench.models.counter_rows import without_idle_features
from workbench.models.counter_scores import out_of_group
from workbench.store.session_file import SessionFile

BLOCKS = tuple(
    f"counted: {name}" for name in ("by experiment", "held out", "unseen", "designed", "explained")
)
KINDS = ("none", "cpu", "memory")


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results and page of their own, and models that are lines, which take no time."""
    for module, name in (
        (counted_pages, "RESULTS"), (kept_counters, "KEPT"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, tmp_path / Path(getattr(module, name)).name)
    monkeypatch.setattr("workbench.models.counter_watch.OwnCounterModel", LineModel)
    monkeypatch.setattr(designed_stimuli, "OwnCounterModel", LineModel)
    makers = {"ours": LineModel, "linear": CounterLine}
    monkeypatch.setattr(counted_sessions, "makers_for", lambda _: makers)
    return tmp_path


def function(name: str, seed: int, waited_s: float = 2e-4) -> KeptFunction:
    """As it is taken from a small session."""
    draw = np.random.default_rng(seed)
    session = [
        taken(beside, float(draw.uniform(100, 1000)), block, waited_s * factor)
        for factor, beside in zip((0.5, 1.0, 1.5), KINDS, strict=True)
        for block in range(2)
        for _ in range(5)
    ]
    return replace(taken_from({"made": session}, "web"), name=name)


def run_sessions(**given: object) -> None:
    plain = {"function": "a", "sessions": [], "keep": False, "unseen": "", "publish": False}
    plain |= {"explain": False}
    counted_sessions.run(Namespace(**{**plain, **given}))


async def stored(path: Path, measured: Sequence[Measurement]) -> None:
    """A session of these samples of `web`, each configuration in one go."""
    begun = created()
    assert begun.campaign is not None
    wl = PrimaryWorkload("rate_rps", 100.0, 1000.0, "log", "requests/s")
    web = Target("web", Vnf("web", "haproxy"))
    size = Parameter("web.vcpu", (0.5,), "cores")
    campaign = replace(begun.campaign, targets=(TargetPlan(web, (size,), wl),))
    configurations = dict.fromkeys(one.sample.point.configuration for one in measured)
    planned = tuple(PlannedConfiguration(0, "web", c, 10, 34.0) for c in configurations)
    file = await SessionFile.create(path, replace(begun, campaign=campaign), at=EPOCH)
    try:
        plan = Plan("small", "sim", planned, len(measured), 102.0)
        await file.append(CampaignPlanned(plan), at=EPOCH)
        await file.append(RunStarted(False, None), at=EPOCH)
        for configuration in configurations:
            await file.append(TargetDeployed("web", "simulated 1", True, "answers"), at=EPOCH)
            await file.append(ConfigurationStarted("web", configuration), at=EPOCH)
            for one in measured:
                if one.sample.point.configuration == configuration:
                    await file.append(SampleTaken(one.sample), at=EPOCH, measurement=one)
    finally:
        await file.close()


def test_rows_are_taken_from_a_session_as_it_is_stored(
    there: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what cannot be used of it; the figures of its tables are those of the rows it left."""
    draw = np.random.default_rng(4)
    measured = [
        taken(beside, float(draw.uniform(100, 1000)), 0, 2e-4 * (1 + place))
        for place, beside in enumerate(KINDS)
        for _ in range(6)
    ]
    findings = (Finding("source_saturated", 1.0, 0.5, "its thread was busy"),)
    measured[3] = replace(measured[3], sample=replace(measured[3].sample, findings=findings))
    asyncio.run(stored(there / "made.duckdb", measured))
    run_sessions(function="web", sessions=[there / "made.duckdb"], keep=True)
    assert "17 windows of 18 samples of web are kept" in capsys.readouterr().out
    kept = read_kept()["web"]
    assert kept.set_aside == {"source_saturated": 1}
    assert {one.session for one in kept.windows} == {"made"}
    straight = taken_from({"made": measured}, "web")
    by_load = {one.wl: (one.kpis, one.counted) for one in straight.windows}
    assert {one.wl: (one.kpis, one.counted) for one in kept.windows} == by_load
    with pytest.raises(DataError, match="no sample of nginx alone"):
        run_sessions(function="nginx", sessions=[there / "made.duckdb"], keep=True)


def test_rows_come_back_as_they_were_measured(tmp_path: Path) -> None:
    path = tmp_path / "kept.parquet"
    first, second = function("a", 1), replace(function("b", 2), set_aside={"errors": 2})
    for one in (first, second):
        keep(one, path)
    back = read_kept(path)
    assert (back["a"], back["b"]) == (first, second)
    assert back["b"].samples == 32
    assert back["a"].fingerprint == first.fingerprint
    own, again = (rows_of_kept(one.windows, "throughput_rps").rows for one in (first, back["a"]))
    assert np.array_equal(own.x, again.x)
    assert np.array_equal(own.groups, again.groups)
    keep(function("a", 3), path)
    assert set(read_kept(path)) == {"a", "b"}, "another's rows stay"
    assert read_kept(path)["a"].fingerprint != first.fingerprint
    assert [p.name for p in tmp_path.iterdir()] == ["kept.parquet"]


def test_a_window_has_all_its_kpis_and_a_spoiled_sample_none() -> None:
    spoiled = taken("cpu", 300.0, 0, 1e-4)
    sample = replace(spoiled.sample, findings=(Finding("source_saturated", 1.0, 0.5, ""),))
    kept = taken_from(
        {"made": [taken("none", 300.0, 0, 1e-4), replace(spoiled, sample=sample)]}, "web"
    )
    (window,) = kept.windows
    assert window.kpis == {"throughput_rps": 300.0}
    assert set(window.counted) >= {"rx_packets", "cpu_wait_s"}
    assert (kept.set_aside, kept.samples) == ({"source_saturated": 1}, 2)
    with pytest.raises(DataError, match="no sample of nginx alone"):
        taken_from({"made": [spoiled]}, "nginx")


def test_tables_are_made_of_kept_rows_and_written_into_the_page(
    there: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("a", "b", "c")
    for number, name in enumerate(names):
        keep(function(name, number), kept_counters.KEPT)
    with pytest.raises(DataError, match=r"has no rows of d, but of a, b, c.*--keep"):
        of_kept(["d"], kept_counters.KEPT)
    for name in names:
        run_sessions(function=name)
    run_sessions(unseen="a,b,c")
    designed_stimuli.run(Namespace(function="a", sessions=[], kpi=""))
    write_results(
        {"explained": {"a": {"rows": "x", "kpi": "p95_ms", "windows": 30, "mean_error": 0.337,
         "beside": [{"competitor": "cpu", "name": "cpu_wait_s", "says": "waiting for CPU",
                     "alike": ["x"], "moved": 14.2, "factor": 1.11}],
         "components": [{"number": 2, "counters": ["cpu_wait_s"], "share": 0.11, "pearson": 0.78,
                         "low": 0.61, "high": 0.92, "told": 0.62}]}}}
    )  # fmt: skip
    found = read_results()
    assert set(found["functions"]) == set(names) == set(found["unseen"]["functions"])
    said = capsys.readouterr().out
    page = "\n".join(
        f"<!-- {name} -->\nFORMER\n<!-- end of what is written by it -->" for name in BLOCKS
    )
    told = published(page, found)
    assert "FORMER" not in told
    assert told == published(told, found)
    of = found["functions"]["a"]["kpis"]["throughput_rps"]
    assert f"| a | {of['windows']}, {of['counters']} | " in told
    assert "linear on " in told
    assert "| `cpu` | waiting for CPU (and 1 that go with it) | 14.2 times | 1.11 times |" in told
    assert "correlates with p95 by +0.78 (+0.61 to +0.92); together they tell 62%" in told
    assert "| a: `memory` | throughput | 10 |" in told
    assert "of 6 lose" in told
    every = [HeldOut(**one) for of in found["functions"].values()
             for one in of["kpis"]["throughput_rps"]["held_out"]]  # fmt: skip
    answered, held = sum(one.answered for one in every), sum(one.held for one in every)
    assert f"of all {answered} windows that were answered {held} held" in told
    for name in {one.competitor for one in every}:
        of_it = [one for one in every if one.competitor == name]
        answered, held = sum(one.answered for one in of_it), sum(one.held for one in of_it)
        assert not answered or f"| `{name}` | {answered} | {held} ({held / answered:.1%}) |" in told
    for row in found["designed"]["a"]["kpis"]["throughput_rps"]["shares"]:
        assert f"| {row['given']} | {row['random']:.1%} |" in said
        assert f"| {row['given']} | {row['random']:.1%} |" in told
    with pytest.raises(ValueError, match="has no '<!-- counted: unseen -->'"):
        published(page.replace(BLOCKS[2], "x"), found)


def test_a_page_keeps_what_nothing_was_found_of(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert published(page, read_results(tmp_path / "none.json")) == page
    assert with_blocks(page, {}) == page
    for name in BLOCKS:
        assert with_blocks(page, {name: "x"}) != page


def test_the_docs_have_the_tables_that_the_results_have() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert published(page, read_results()) == page, "counted_sessions.py --publish writes them"


def test_the_results_are_of_the_rows_that_are_kept() -> None:
    """And a model that takes no time gives the same figures again."""
    kept, found = read_kept(), read_results()
    for part in (found["functions"], found["designed"], found["explained"]):
        assert {name: of["rows"] for name, of in part.items()} == {
            name: kept[name].fingerprint for name in part
        }
    rows_of_unseen = found["unseen"].get("rows", {})
    assert rows_of_unseen == {name: kept[name].fingerprint for name in rows_of_unseen}
    for name, of in found["functions"].items():
        for kpi, told in of["kpis"].items():
            rows = without_idle_features(rows_of_kept(kept[name].having(kpi), kpi).rows)[0]
            assert (len(rows.y), len(rows.features)) == (told["windows"], told["counters"])
            off = np.abs(out_of_group(rows, CounterLine, 0) / rows.y - 1.0)
            assert float(np.median(off)) == pytest.approx(
                told["models"]["linear"]["median"], rel=0.01
            )
