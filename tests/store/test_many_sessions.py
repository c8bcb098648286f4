"""Questions to all sessions of a workspace: figures, what changes, what cannot be asked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from driving import REPOSITORY, Workbench

from workbench.domain.errors import SessionBusy, UsageError
from workbench.locks import FileLock, own
from workbench.paths import Workspace
from workbench.store import many_sessions
from workbench.store.bundle import make_session
from workbench.store.many_sessions import elsewhere, remembered, spread, written
from workbench.store.session_file import open_session

RECORDING = REPOSITORY / "sessions/recorded/demo-real"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    found = Workspace(tmp_path_factory.mktemp("many"))
    found.sessions.mkdir()
    make_session(RECORDING, found.sessions / "one.duckdb")
    shutil.copy(found.sessions / "one.duckdb", found.sessions / "two.duckdb")
    return found


def test_quantiles_are_those_of_the_samples(workspace: Workspace) -> None:
    folder, problems = remembered(workspace)
    assert problems == ()
    stored = open_session(workspace.sessions / "one.duckdb", read_only=True)
    _, measurements = stored.everything()
    stored.shut()
    own = [m.sample for m in measurements if m.sample.purpose == "profile" and m.sample.valid]
    values = [
        s.kpis["p95_ms"].value for s in own if s.point.target == "tinyproxy" and "p95_ms" in s.kpis
    ]

    (row,) = spread(written(folder), "p95_ms", ("target",), "tinyproxy")
    assert (row.group, row.sessions, row.samples) == (("tinyproxy",), 2, 2 * len(values))
    assert row.median == pytest.approx(np.quantile([*values, *values], 0.5))
    assert row.high == pytest.approx(np.quantile([*values, *values], 0.95))
    by_session = spread(written(folder), "p95_ms", ("session", "load"), "tinyproxy")
    assert {row.group[0] for row in by_session} == {"one", "two"}
    assert sum(row.samples for row in by_session) == 2 * len(values)


def test_a_session_is_read_again_when_it_has_changed_and_forgotten_with_its_file(
    workspace: Workspace,
) -> None:
    folder, _ = remembered(workspace)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    remembered(workspace)
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    shutil.copy(workspace.sessions / "one.duckdb", workspace.sessions / "three.duckdb")
    os.utime(workspace.sessions / "one.duckdb", ns=(1, 1))
    remembered(workspace)
    assert len(list(folder.iterdir())) == 3
    assert not {n for n in before if n.startswith("one.")} & {p.name for p in folder.iterdir()}
    (workspace.sessions / "three.duckdb").unlink()
    remembered(workspace)
    assert len(list(folder.iterdir())) == 2


def test_what_cannot_be_asked_is_said(workspace: Workspace, tmp_path: Path) -> None:
    folder, _ = remembered(workspace)
    with pytest.raises(UsageError, match="nothing to group by"):
        spread(written(folder), "p95_ms", ("host; DROP TABLE x",))
    with pytest.raises(UsageError, match="no session has a valid p95_ms of x'y"):
        spread(written(folder), "p95_ms", (), "x'y")
    with pytest.raises(UsageError, match="no session yet"):
        written(tmp_path)
    (workspace.sessions / "broken.duckdb").write_bytes(b"no session")
    _, problems = remembered(workspace)
    (workspace.sessions / "broken.duckdb").unlink()
    assert len(problems) == 1
    assert problems[0].startswith("broken is left out")


def test_what_our_own_engine_has_open_is_said_as_that(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> None:
        raise SessionBusy("is open in another process, PID 7")

    monkeypatch.setattr(many_sessions, "_make", busy)
    for path in workspace.sessions.glob("*.duckdb"):
        os.utime(path, ns=(5, 5))
    _, problems = remembered(workspace)
    assert problems
    assert all(each.endswith("is open in another process, PID 7") for each in problems)
    lock = FileLock(workspace.engine_lock)
    assert lock.take(own(workspace.root))
    _, problems = remembered(workspace)
    lock.free()
    engine = f"this workspace's engine (PID {os.getpid()}) has it open; ask again later"
    assert problems
    assert all(engine in each for each in problems)


def test_files_elsewhere_are_read_and_what_is_none_is_said(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = remembered(workspace)
    (one,) = folder.glob("one.*")
    away = tmp_path / "away [1]"
    away.mkdir()
    shutil.copy(one, away)
    here = spread(written(folder), "p95_ms", ("target",), "tinyproxy")
    there = spread(elsewhere([str(away)]), "p95_ms", ("target",), "tinyproxy")
    assert (there[0].sessions, there[0].median) == (1, here[0].median)
    both = spread(elsewhere([str(away), str(one)]), "p95_ms", (), "tinyproxy")
    assert both[0].samples == 2 * there[0].samples
    with pytest.raises(UsageError, match="No files found"):
        spread(elsewhere([str(tmp_path / "nowhere")]), "p95_ms", ())
    (tmp_path / "text.parquet").write_text("no Parquet")
    with pytest.raises(UsageError, match="Parquet file"):
        spread(elsewhere([str(tmp_path / "text.parquet")]), "p95_ms", ())
    samples = RECORDING / "samples.parquet"
    with pytest.raises(UsageError, match="other columns than `query` writes"):
        spread(elsewhere([str(samples)]), "p95_ms", ())
    monkeypatch.setenv("HOME", str(tmp_path))  # where DuckDB keeps what somebody has installed
    for far in ("s3://bucket/kpis/*.parquet", "https://host.example/one.parquet"):
        with pytest.raises(UsageError, match="httpfs, which is not installed"):
            spread(elsewhere([far]), "p95_ms", ())


def test_the_command_prints_a_table(workbench: Workbench) -> None:
    make_session(RECORDING, workbench.root / "sessions" / "one.duckdb")
    table = workbench.run(*"query --kpi p95 --vnf tinyproxy --by load".split()).stdout
    assert table.splitlines()[0].split() == "load sessions samples median p95_ms 5 % 95 %".split()
    rows = workbench.json(*"query --vnf tinyproxy --json".split())
    assert rows[0]["sessions"] == 1
    kept = workbench.json(*"query --vnf tinyproxy --json --from .workbench/kpis".split())
    assert kept == rows
    refused = workbench.run("query", "--kpi", "nonsense", expect=2)
    assert "no KPI is called" in refused.stderr
