"""Files that are half written: hidden, and swept once who wrote them is dead."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from session_making import make_session

from workbench import files
from workbench.engine.core import Engine
from workbench.paths import Workspace

KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from workbench.store import bundle, flat
from workbench.store.session_file import SessionFile, import_bundle

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    kind, source, target = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    session = await SessionFile.open(source, read_only=True)
    if kind == "bundle":
        bundle._put_in_place = die
        await session.write_tables(target)
    elif kind == "csv":
        Path.replace = die
        await session.write_samples(target, "csv")
    else:
        bundle.refuse_nonsense = die
        await import_bundle(source, target)

asyncio.run(main())
"""


def dead() -> int:
    """A process that was."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def kill(kind: str, source: Path, target: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, kind, str(source), str(target)])
    assert done.returncode == -9
    assert [path for path in target.parent.iterdir() if path.name.startswith(".")]


async def test_what_killed_imports_and_exports_leave_goes_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(tmp_path / "w")
    workspace.sessions.mkdir(parents=True)
    workspace.exports.mkdir()
    session = await make_session(workspace.sessions / "s.duckdb")
    await session.write_tables(tmp_path / "s.bundle")
    await session.close()
    kill("bundle", session.path, workspace.exports / "s.bundle")
    kill("csv", session.path, workspace.exports / "s.csv")
    kill("import", tmp_path / "s.bundle", workspace.sessions / "new.duckdb")
    mine = files.partial(workspace.exports / "mine.csv")
    mine.touch()  # of a process that lives
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    engine = Engine(workspace)
    await engine.start()
    await engine.close()
    assert list(workspace.exports.iterdir()) == [mine]
    assert sorted(path.name for path in workspace.sessions.iterdir()) == ["s.duckdb"]


async def test_an_export_elsewhere_takes_away_what_an_earlier_one_left(tmp_path: Path) -> None:
    session = await make_session(tmp_path / "s.duckdb")
    await session.close()
    folder = tmp_path / "out"
    folder.mkdir()
    kill("bundle", session.path, folder / "s.bundle")
    opened = await session.open(session.path, read_only=True)
    await opened.write_tables(folder / "s.bundle")
    await opened.close()
    assert [path.name for path in folder.iterdir()] == ["s.bundle"]


def test_an_export_that_was_killed_as_it_took_its_place_keeps_the_one_before(
    tmp_path: Path,
) -> None:
    old = tmp_path / f".s.bundle.{dead()}.partial.old"
    old.mkdir()
    (old / "manifest.json").touch()
    assert files.sweep(tmp_path) == ()
    assert [path.name for path in tmp_path.rglob("*")] == ["s.bundle", "manifest.json"]


def test_what_release_0_1_left_goes_and_files_of_others_stay(tmp_path: Path) -> None:
    pid = dead()
    left = {f".s.duckdb.{pid}", f".s.duckdb.{pid}.wal", f".s.bundle.{pid}", f".s.csv.{pid}"}
    others = {".hidden", f"s.duckdb.{pid}", f".notes.{pid}", f".s.duckdb.{os.getpid()}"}
    for name in left | others:
        (tmp_path / name).touch()
    assert {path.name for path in files.sweep(tmp_path)} == left
    assert {path.name for path in tmp_path.iterdir()} == others


def test_folders_that_are_made_are_private_and_those_that_are_there_stay_open(
    tmp_path: Path,
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    files.make_folder(shared / "a" / "b")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (shared, shared / "a", shared / "a/b")]
    assert modes == [0o755, 0o700, 0o700]
    (shared / "file").touch()
    with pytest.raises(FileExistsError):
        files.make_folder(shared / "file")


def test_an_export_removes_nothing_that_is_not_its_own(tmp_path: Path) -> None:
    pid = dead()
    own = [tmp_path / f".s.csv.{pid}.partial", tmp_path / f".s.csv.wal.{pid}.partial"]
    others = [
        tmp_path / ".report.csv.20241101",
        tmp_path / f".s.csv.{pid}",
        tmp_path / f".t.csv.{pid}.partial",
    ]
    for path in own + others:
        path.touch()
    assert set(files.sweep(tmp_path, "s.csv")) == set(own)
    assert set(tmp_path.iterdir()) == set(others)
