"""Names, paths and lists: what is there is found, and no file is opened without need."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from session_making import closed_session, make_session

from workbench.domain.errors import SessionUnknown, UsageError
from workbench.paths import Workspace
from workbench.store import catalogue
from workbench.store.session_file import SessionFile

NOBODY = 65534
"""The user of that name."""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "sessions").mkdir()
    return Workspace(tmp_path)


@pytest.fixture
async def recordings(tmp_path: Path) -> Path:
    session = await SessionFile.open(await closed_session(tmp_path / "shipped.duckdb"))
    await session.write_tables(tmp_path / "recorded" / "haproxy-sim")
    await session.close()
    return tmp_path / "recorded"


@pytest.mark.parametrize("name", ["demo-1", "a", "A.b_c-9", "x" * 64])
def test_names_that_may_be(name: str) -> None:
    catalogue.check_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        ".hidden",
        "-rf",
        "a/b",
        "../up",
        "a..b",
        "a b",
        "ünïcode",
        "tab\t",
        "line\n",
        "\x1b[31mred",
        "\x9b31m",
        "nul\0",
        "x" * 65,
        "demo.duckdb",
        "demo.bundle",
        "demo.",
    ],
)
def test_names_that_may_not_be(name: str) -> None:
    with pytest.raises(UsageError, match="letters, digits") as refused:
        catalogue.check_name(name)
    assert str(refused.value).isprintable()
    assert str(refused.value).isascii()


async def test_fresh_names_count_on(workspace: Workspace) -> None:
    assert catalogue.fresh_name(workspace, "demo") == "demo-1"
    for name in ("demo-1", "demo-7", "demo-x", "demo-closed-12"):
        (workspace.sessions / f"{name}.duckdb").touch()
    assert catalogue.fresh_name(workspace, "demo") == "demo-8"
    assert catalogue.fresh_name(workspace, "demo-closed") == "demo-closed-13"
    assert catalogue.fresh_name(Workspace(workspace.root / "none"), "demo") == "demo-1"


async def test_names_and_paths_are_resolved(
    workspace: Workspace, recordings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(name: str) -> Path:
        return catalogue.resolve(workspace, name, recordings)

    session = await make_session(workspace.sessions / "mine.duckdb", until=1)
    await session.write_tables(workspace.sessions / "packed.bundle")
    await session.close()
    (tmp_path / "table.csv").write_text("target,wl,p95_ms\n")
    assert resolve("mine") == workspace.sessions / "mine.duckdb"
    assert resolve("packed") == workspace.sessions / "packed.bundle"
    assert resolve("haproxy-sim") == recordings / "haproxy-sim"
    assert resolve(str(recordings / "haproxy-sim")) == recordings / "haproxy-sim"
    monkeypatch.chdir(tmp_path)
    assert resolve("table.csv") == tmp_path / "table.csv"
    assert resolve("sessions/mine.duckdb") == workspace.sessions / "mine.duckdb"
    for name in ("nobody", "sessions", "\x1b[2J"):
        with pytest.raises(SessionUnknown, match="haproxy-sim, mine, packed") as unknown:
            resolve(name)
        assert str(unknown.value).isprintable()


async def test_the_list_holds_sessions_then_recordings(
    workspace: Workspace, recordings: Path
) -> None:
    await closed_session(workspace.sessions / "old.duckdb", until=6)
    await closed_session(workspace.sessions / "new.duckdb")
    found = catalogue.list_sessions(workspace, recordings)
    assert [(s.name, s.state, s.kind, s.samples) for s in found] == [
        ("new", "finished", "session", 12),
        ("old", "interrupted", "session", 1),
        ("haproxy-sim", "finished", "bundle", 12),
    ]
    assert catalogue.list_sessions(Workspace(workspace.root / "none"), recordings) == found[2:]


async def test_a_name_stands_once_for_what_it_opens(workspace: Workspace, recordings: Path) -> None:
    await closed_session(workspace.sessions / "haproxy-sim.duckdb", until=6)
    shutil.copytree(recordings / "haproxy-sim", workspace.sessions / "haproxy-sim.bundle")
    (found,) = catalogue.list_sessions(workspace, recordings)
    assert Path(found.path) == catalogue.resolve(workspace, "haproxy-sim", recordings)
    assert found.kind == "session"


async def test_listing_again_opens_no_file(workspace: Workspace, recordings: Path) -> None:
    await closed_session(workspace.sessions / "s.duckdb")
    first = catalogue.list_sessions(workspace, recordings)
    listing = (
        "import sys\n"
        "from pathlib import Path\n"
        "from workbench.paths import Workspace\n"
        "from workbench.store.catalogue import list_sessions\n"
        "found = list_sessions(Workspace(Path(sys.argv[1])), Path('nowhere'))\n"
        "assert 'duckdb' not in sys.modules\n"
        "print(*(f'{s.name} {s.samples} {s.state}' for s in found))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", listing, str(workspace.root)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\n")[0] == "s 12 finished"
    assert catalogue.list_sessions(workspace, recordings) == first


async def test_a_changed_session_is_read_anew(workspace: Workspace, tmp_path: Path) -> None:
    none = tmp_path / "none"
    path = workspace.sessions / "s.duckdb"
    await closed_session(path, until=6)
    (before,) = catalogue.list_sessions(workspace, none)
    path.unlink()
    await closed_session(path)
    (after,) = catalogue.list_sessions(workspace, none)
    assert (before.samples, after.samples) == (1, 12)
    path.unlink()
    assert catalogue.list_sessions(workspace, none) == ()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"sessions": 3}', '{"sessions": {"s.duckdb": {}}}']
)
async def test_a_broken_catalogue_is_made_anew(
    workspace: Workspace, tmp_path: Path, content: str
) -> None:
    await closed_session(workspace.sessions / "s.duckdb")
    expected = catalogue.list_sessions(workspace, tmp_path / "none")
    kept = workspace.sessions / catalogue.CATALOGUE
    kept.write_text(content)
    assert catalogue.list_sessions(workspace, tmp_path / "none") == expected
    assert json.loads(kept.read_text())["sessions"].keys() == {"s.duckdb"}
    assert len(list(workspace.sessions.iterdir())) == 2


async def test_a_moved_workspace_keeps_its_catalogue(workspace: Workspace, tmp_path: Path) -> None:
    await closed_session(workspace.sessions / "s.duckdb")
    catalogue.list_sessions(workspace, tmp_path / "none")
    moved = Workspace(tmp_path / "elsewhere")
    moved.root.mkdir()
    workspace.sessions.rename(moved.sessions)
    (found,) = catalogue.list_sessions(moved, tmp_path / "none")
    assert found.path == str(moved.sessions / "s.duckdb")


async def test_a_session_that_is_being_written_is_listed(
    workspace: Workspace, tmp_path: Path
) -> None:
    session = await make_session(workspace.sessions / "s.duckdb", until=6)
    (found,) = catalogue.list_sessions(workspace, tmp_path / "none")
    assert (found.state, found.samples) == ("running", 1)
    await session.close()


async def test_a_session_of_another_process_is_listed_as_remembered(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = workspace.sessions / "s.duckdb"
    session = await make_session(path, until=6)
    catalogue.record(workspace, await session.summary())
    await session.close()
    (workspace.sessions / "unknown.duckdb").write_bytes(path.read_bytes())
    holding = (
        "import duckdb, sys; held = [duckdb.connect(p) for p in sys.argv[1:]];"
        "held[0].execute('CREATE TABLE later (a INT)'); print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holding, path, path.with_name("unknown.duckdb")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        found = {s.name: s for s in catalogue.list_sessions(workspace, tmp_path / "none")}
        assert (found["s"].state, found["s"].samples) == ("running", 1)
        assert (found["unknown"].state, found["unknown"].samples) == ("running", 0)
        other.communicate()
    found = {s.name: s for s in catalogue.list_sessions(workspace, tmp_path / "none")}
    assert (found["s"].state, found["s"].samples) == ("interrupted", 1)
    assert (found["unknown"].state, found["unknown"].samples) == ("interrupted", 1)


async def test_a_file_that_cannot_be_read_is_listed_with_its_reason(
    workspace: Workspace, tmp_path: Path
) -> None:
    (workspace.sessions / "bad.duckdb").write_text("not a database")
    (found,) = catalogue.list_sessions(workspace, tmp_path / "none")
    assert (found.name, found.state) == ("bad", "failed")
    assert found.campaign == "cannot be read: is not a session file"


async def test_the_engine_s_word_is_remembered(workspace: Workspace, tmp_path: Path) -> None:
    session = await make_session(workspace.sessions / "s.duckdb")
    await session.close()
    session = await SessionFile.open(workspace.sessions / "s.duckdb", read_only=True)
    summary = await session.summary()
    await session.close()
    catalogue.record(workspace, summary)
    assert catalogue.list_sessions(workspace, tmp_path / "none") == (summary,)


async def test_a_bundle_with_a_link_that_leads_nowhere_is_listed(
    workspace: Workspace, recordings: Path
) -> None:
    bundle = shutil.copytree(recordings / "haproxy-sim", workspace.sessions / "linked.bundle")
    (bundle / "notes.txt").symlink_to("nowhere")
    (workspace.sessions / "itself").symlink_to("itself")
    listed = {summary.name: summary for summary in catalogue.list_sessions(workspace, recordings)}
    assert listed.keys() == {"linked", "haproxy-sim"}
    assert listed["linked"].size_bytes == listed["haproxy-sim"].size_bytes


@pytest.fixture
def of_another() -> Iterator[Path]:
    """A folder that may be listed, in which `sessions/closed` may not be looked into."""
    with tempfile.TemporaryDirectory(prefix="wb-") as folder:
        closed = Path(folder, "sessions", "closed")
        closed.mkdir(parents=True)
        Path(folder).chmod(0o755)
        closed.chmod(0)
        is_root = os.geteuid() == 0
        if is_root:  # whom no mode stops
            os.seteuid(NOBODY)
        yield Path(folder)
        if is_root:
            os.seteuid(0)
        closed.chmod(0o700)


def test_a_folder_that_may_not_be_looked_into_is_left_out(of_another: Path) -> None:
    workspace, none = Workspace(of_another), of_another / "none"
    assert catalogue.list_sessions(workspace, none) == ()
    assert catalogue.fresh_name(workspace, "demo") == "demo-1"
