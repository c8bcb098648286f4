"""`workbench import FILE.csv`: a session of somebody else's figures, or a word on why not."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from driving import Workbench
from published_counters import co_located, experiments

from workbench.cli import headless
from workbench.cli.context import settings
from workbench.cli.importing import import_table
from workbench.domain.errors import WRONG_USE, WorkbenchError

ROWS = "\n".join(
    f"mine,{clients},{rate},{1e3 * clients / rate:.6g},{share}"
    for share in (0.25, 0.5)
    for clients in (1, 16, 32, 64)
    for rate in (min(40 * clients, 2000 * share),)
)
MAPPING = """\
kind: mapping
columns: {target: function, wl: clients, throughput_rps: rps, p95_ms: latency, mine.vcpu: cpu}
load: {kind: closed}
"""


def test_a_table_becomes_a_session_of_all_its_rows(workbench: Workbench, tmp_path: Path) -> None:
    table, mapping = tmp_path / "theirs.csv", tmp_path / "theirs.yaml"
    table.write_text(f"function,clients,rps,latency,cpu\n{ROWS}\n", encoding="utf-8")
    mapping.write_text(MAPPING, encoding="utf-8")
    given = ("import", str(table), "--mapping", str(mapping))
    dry = workbench.run(*given, "--dry-run")
    assert "latency -> p95_ms" in dry.stderr
    assert "8 rows are used" in dry.stderr
    refused = workbench.run(*given, expect=3)
    assert "spread" in refused.stderr, "an interval is asked for, not made up"
    workbench.run(*given, "--spread", "0.1")
    samples = workbench.samples("theirs")
    assert {(s["wl"], s["mine.vcpu"]) for s in samples} == {
        (clients, share) for clients in (1.0, 16.0, 32.0, 64.0) for share in (0.25, 0.5)
    }
    assert all(s["valid"] and "assumed_interval" in s["labels"] for s in samples)
    assert "log-sd of 0.1" in workbench.run("show", "theirs").stdout
    again = workbench.run("import", str(tmp_path), "--dry-run", expect=2)
    assert "for CSV files" in again.stderr


@pytest.mark.parametrize("form", ["a table", "a folder of tables", "rows"])
def test_who_brings_counters_is_told_what_learns_from_them(
    workbench: Workbench, tmp_path: Path, form: str
) -> None:
    tables = experiments(tmp_path / "datasets", 2)
    given = {
        "a table": tables[0],
        "a folder of tables": tables[0].parent,
        "rows": co_located(tmp_path / "flowmon"),
    }[form]
    refused = workbench.run("import", str(given), expect=2)
    assert f"Learn from them: workbench counters {given}" in refused.stderr
    assert not list((workbench.root / "sessions").glob("*.duckdb"))


@pytest.fixture
def theirs(tmp_path: Path) -> tuple[Path, Path]:
    """A table, and the mapping that says what its columns are."""
    table, mapping = tmp_path / "theirs.csv", tmp_path / "theirs.yaml"
    table.write_text(f"function,clients,rps,latency,cpu\n{ROWS}\n", encoding="utf-8")
    mapping.write_text(MAPPING, encoding="utf-8")
    return table, mapping


def test_what_the_run_came_to_is_the_exit_code(
    theirs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failed(*_: object, **__: object) -> int:
        return 3

    monkeypatch.setattr(headless, "run_headless", failed)
    monkeypatch.setattr(settings, "workspace", tmp_path)
    table, mapping = theirs
    with pytest.raises(typer.Exit) as ended:
        import_table(table, None, str(mapping), 0.1, dry_run=False)
    assert ended.value.exit_code == 3


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("taken", "there is a session 'taken' already"),
        ("demo-real", "the name of a recording"),
        ("../../x", "cannot be the name of a session"),
        ("other", "is there already and says something else"),
    ],
)
def test_nothing_is_written_for_a_name_that_is_refused(
    theirs: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    phrase: str,
) -> None:
    root = tmp_path / "above" / "workspace"
    for file in ("sessions/taken.duckdb", "templates/campaigns/other.yaml"):
        (root / file).parent.mkdir(parents=True)
        (root / file).write_bytes(b"\xff")  # which is no UTF-8
    before = set(tmp_path.rglob("*"))
    monkeypatch.setattr(settings, "workspace", root)
    table, mapping = theirs
    with pytest.raises(WorkbenchError, match=phrase) as refused:
        import_table(table, name, str(mapping), 0.1, dry_run=False)
    assert refused.value.exit_code == WRONG_USE
    assert set(tmp_path.rglob("*")) == before
