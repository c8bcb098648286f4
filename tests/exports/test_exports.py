"""Exports, loaded by their entry points: what is written can be read by others and by us."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from session_making import EPOCH, closed_session, created, facts, make_session

from workbench import plugins
from workbench.domain.errors import DataError
from workbench.domain.observations import Observation
from workbench.domain.projection import SessionView
from workbench.domain.tables import flat_columns_and_rows
from workbench.exports.base import Export, ExportSource
from workbench.measuring.histograms import build
from workbench.store.session_file import SessionFile

SIMULATED = "this rests on a simulation: no real function was measured"
"""Where a reader looks first, as the session is of the simulated lab."""


@pytest.fixture
async def source(tmp_path: Path) -> AsyncIterator[ExportSource]:
    await closed_session(tmp_path / "demo-1.duckdb")
    session = await SessionFile.open(tmp_path / "demo-1.duckdb", read_only=True)
    yield session
    await session.close()


def export(name: str) -> Export:
    loaded: Export = plugins.load("exports", name)
    return loaded


async def test_csv_has_one_line_per_sample(source: ExportSource, tmp_path: Path) -> None:
    (written,) = await export("csv")(source, tmp_path / "exports")
    assert written == tmp_path / "exports" / "demo-1.csv"
    with written.open(newline="") as file:
        names, *lines = csv.reader(file)
    columns, rows = flat_columns_and_rows(await source.samples())
    assert names == ["caution", *columns]
    texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
    assert lines == [[SIMULATED, *row] for row in texts]


async def test_parquet_is_typed(source: ExportSource, tmp_path: Path) -> None:
    (written,) = await export("parquet")(source, tmp_path / "mine.parquet")
    assert written == tmp_path / "mine.parquet"
    columns, rows = flat_columns_and_rows(await source.samples())
    with duckdb.connect() as connection:
        found = connection.execute(f"FROM '{written}'").fetchall()
        types = dict(
            connection.execute(
                f"SELECT column_name, column_type FROM (DESCRIBE FROM '{written}')"
            ).fetchall()
        )
    assert [list(row) for row in found] == [[SIMULATED, *row] for row in rows]
    assert list(types) == ["caution", *columns]
    assert types["wl"] == types["p95_ms_low"] == types["haproxy.vcpu"] == "DOUBLE"
    assert types["ha.flavor"] == types["labels"] == "VARCHAR"
    assert (types["valid"], types["repetition"]) == ("BOOLEAN", "BIGINT")


async def test_a_bundle_opens_as_a_session(source: ExportSource, tmp_path: Path) -> None:
    (tmp_path / "exports").mkdir()
    folder, *files = await export("bundle")(source, tmp_path / "exports")
    assert folder == tmp_path / "exports" / "demo-1.bundle"
    assert sorted(files) == sorted(folder.iterdir())
    manifest = (folder / "manifest.json").read_text()
    assert manifest.splitlines()[1] == f' "caution": "{SIMULATED}",'
    opened = await SessionFile.open(folder)
    assert await opened.measurements() == await source.measurements()
    again, *_ = await export("bundle")(opened, folder)
    assert again == folder
    await opened.close()


@pytest.mark.parametrize("name", ["csv", "parquet", "bundle"])
async def test_exports_replace_what_they_wrote(
    source: ExportSource, tmp_path: Path, name: str
) -> None:
    destination = tmp_path / f"out.{name}"
    first = await export(name)(source, destination)
    assert await export(name)(source, destination) == first
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


async def test_a_session_without_samples_is_exported_too(tmp_path: Path) -> None:
    session = await make_session(tmp_path / "new.duckdb", until=1)
    for name in ("csv", "parquet"):
        (written,) = await export(name)(session, tmp_path)
        assert written.stat().st_size > 0
    folder, *_ = await export("bundle")(session, tmp_path / "new.bundle")
    opened = await SessionFile.open(folder)
    assert opened.last_seq == 2
    await opened.close()
    await session.close()


async def test_curves_are_the_figures_that_the_screens_draw(
    source: ExportSource, tmp_path: Path
) -> None:
    (written,) = await export("curves")(source, tmp_path / "exports")
    assert written == tmp_path / "exports" / "demo-1.curves.csv"
    with written.open(newline="") as file:
        names, *lines = csv.reader(file)
    columns = ["target", "configuration", "kpi", "model", "wl", "mean", "low", "high"]
    assert names == ["caution", *columns]
    assert {line[0] for line in lines} == {SIMULATED}
    drawn = [c for c in (await source.view()).configurations if c.curve is not None]
    assert len(drawn) > 0
    expected = [
        [SIMULATED, c.target, c.configuration.key, c.curve.kpi, c.curve.model, *map(str, figures)]
        for c in drawn
        if c.curve is not None
        for figures in zip(c.curve.wl, c.curve.mean, c.curve.low, c.curve.high, strict=True)
    ]
    assert lines == expected


async def test_a_load_that_went_through_a_logarithm_is_exported_as_it_was_asked_for(
    source: ExportSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = await source.view()
    for shown in view.configurations:
        if shown.curve is not None:
            shown.curve = replace(shown.curve, wl=(49.99999999999999, 100.0, 200.0, 400.0))

    async def as_stored(until: int | None = None) -> SessionView:
        return view

    monkeypatch.setattr(source, "view", as_stored)
    (written,) = await export("curves")(source, tmp_path)
    with written.open(newline="") as file:
        assert {line["wl"] for line in csv.DictReader(file)} == {"50.0", "100.0", "200.0", "400.0"}


async def test_curves_of_which_there_are_none_are_refused_and_not_an_empty_table(
    tmp_path: Path,
) -> None:
    session = await make_session(tmp_path / "new.duckdb", until=1)
    with pytest.raises(DataError, match=r"no curve can be written.*workbench samples"):
        await export("curves")(session, tmp_path / "exports")
    assert not (tmp_path / "exports").exists()
    await session.close()


async def test_evidence_has_every_counter_and_says_what_was_missing(tmp_path: Path) -> None:
    seen = (
        Observation(0, "ha", "delayed_acks", 33.0),
        Observation(1, "host", "softirq_s", 0.25, "core 1"),
        Observation(1, "ha", "oom_kills", None, "no control group"),
    )
    session = await SessionFile.create(tmp_path / "seen.duckdb", created(), at=EPOCH)
    taken = []
    for number, (fact, measured) in enumerate(facts(), 1):
        if measured is not None:
            measured = replace(measured, observations=seen)
            taken.append(measured.sample)
        await session.append(fact, at=EPOCH + number, measurement=measured)
    (written,) = await export("evidence")(session, tmp_path / "exports")
    await session.close()
    assert written == tmp_path / "exports" / "seen.evidence.csv"
    with written.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["sample"] for row in rows[::3]] == [sample.id for sample in taken]
    assert len(rows) == 3 * len(taken) > 0
    names = ("window", "component", "name", "detail", "value", "unit", "missing")
    assert [tuple(row[name] for name in names) for row in rows[:3]] == [
        ("0", "ha", "delayed_acks", "", "33.0", "segments", ""),
        ("1", "host", "softirq_s", "core 1", "0.25", "s", ""),
        ("1", "ha", "oom_kills", "", "", "processes", "no control group"),
    ]
    assert {row["caution"] for row in rows} == {SIMULATED}


async def test_a_session_without_evidence_gives_the_headings_alone(
    source: ExportSource, tmp_path: Path
) -> None:
    (written,) = await export("evidence")(source, tmp_path / "exports")
    assert len(written.read_text().splitlines()) == 1


async def test_verdicts_have_a_row_for_each_cause_of_each_sample(
    tmp_path: Path,
) -> None:
    slow = build(np.linspace(0.0425, 0.0455, 33))
    session = await SessionFile.create(tmp_path / "seen.duckdb", created(), at=EPOCH)
    taken = []
    for number, (fact, measured) in enumerate(facts(), 1):
        if measured is not None:
            windows = tuple(replace(w, response=slow, service=slow) for w in measured.windows)
            acks = tuple(
                Observation(window, name, "delayed_acks", 33.0 if name == "ha" else 0.0)
                for window in range(len(windows))
                for name in measured.sample.usage
            )
            taken.append(measured.sample)
            late = len(taken) > 1
            measured = replace(measured, windows=windows, observations=acks if late else ())
        await session.append(fact, at=EPOCH + number, measurement=measured)
    (written,) = await export("verdicts")(session, tmp_path / "exports")
    await session.close()
    assert written == tmp_path / "exports" / "seen.verdicts.csv"
    with written.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(dict.fromkeys(row["sample"] for row in rows)) == [sample.id for sample in taken]
    first, *_ = rows
    assert "delayed_acks" in first["not_judged"].split()
    found = [row for row in rows if row["cause"] == "delayed acknowledgement"]
    assert {row["sample"] for row in found} <= {sample.id for sample in taken[1:]}
    assert {(row["target"], row["component"], row["place"]) for row in found} >= {
        ("tiny-ha", "ha", "1")
    }
    assert all(
        row["answer"].startswith("Delayed acknowledgements") for row in found if row["place"] == "1"
    )
    assert all(row["remedy"] and row["rival"] and row["tells_apart"] for row in found)
    assert {row["failed"] for row in rows} == {""}
    assert {row["caution"] for row in rows} == {SIMULATED}


def test_every_format_says_what_it_is_and_not_how_it_is_called() -> None:
    for said in plugins.meanings("exports").values():
        assert ": " in said, "its kind, and what of a session it holds"
        assert "destination" not in said
