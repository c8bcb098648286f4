"""Where nothing can be written (a full disk, somebody else's folder) whoever may read looks."""

from __future__ import annotations

import json
import os
import resource
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from driving import COMMAND, Workbench
from session_making import make_session


@pytest.fixture
async def killed(workbench: Workbench) -> Path:
    """A session in the workspace whose process was killed, with its write-ahead log."""
    folder = workbench.root / "sessions"
    session = await make_session(workbench.root / "made.duckdb")
    for suffix in ("", ".wal", ".acknowledged"):
        shutil.copy(f"{session.path}{suffix}", folder / f"killed.duckdb{suffix}")
    await session.close()
    return folder


def without_room(workbench: Workbench, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command on a disk that takes not one byte more."""
    return subprocess.run(
        [COMMAND, *arguments],
        env=workbench.environment,
        capture_output=True,
        text=True,
        timeout=workbench.longest_s,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )


@pytest.mark.slow
def test_a_full_disk_lets_everybody_look(workbench: Workbench, killed: Path) -> None:
    before = {path.name: path.read_bytes() for path in killed.iterdir()}
    listed = without_room(workbench, "ls", "--json")
    assert listed.returncode == 0, listed.stderr
    assert {"killed", "demo-real"} <= {row["name"] for row in json.loads(listed.stdout)}
    shown = without_room(workbench, "show", "killed")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "haproxy" in shown.stdout
    sampled = without_room(workbench, "samples", "killed", "--format", "csv")
    assert len(sampled.stdout.splitlines()) == 13
    refused = without_room(workbench, "import", str(workbench.root), "--session", "x")
    assert refused.returncode == 3
    assert "the workspace cannot be written: File too large" in refused.stderr
    assert {path.name: path.read_bytes() for path in killed.iterdir()} == before


def test_a_workspace_that_cannot_be_made_still_shows_the_recordings(workbench: Workbench) -> None:
    # Even root may not create folders in sysfs.
    rows = workbench.json("--workspace", "/sys/kernel", "ls", "--json")
    assert "demo-real" in {row["name"] for row in rows}
    assert "demo-real" in workbench.run("--workspace", "/sys/kernel", "show", "demo-real").stdout


def test_a_fleet_in_a_workspace_that_cannot_be_written_is_one_sentence_without_a_log(
    workbench: Workbench,
) -> None:
    hosts = workbench.root / "hosts.yaml"
    hosts.write_text("kind: hosts\nhosts: {alpha: {kind: simulated}}\n")
    for words in ("up", "hold alpha"):
        command, *names = words.split()
        asked = ("--workspace", "/sys/kernel", "fleet", command, *names, str(hosts))
        refused = workbench.run(*asked, expect=3)
        said = " ".join(refused.stderr.split())
        assert said.startswith("/sys/kernel: the workspace cannot be written: "), said
        assert said.endswith("Choose another one with --workspace DIR."), said


@pytest.mark.slow
def test_readers_say_what_a_damaged_log_has_lost(workbench: Workbench, killed: Path) -> None:
    log, beside = killed / "killed.duckdb.wal", killed / "killed.duckdb.acknowledged"
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
    before = {path.name: path.read_bytes() for path in killed.iterdir()}
    said = "come from the second copy; no event is lost"
    assert said in workbench.run("ls").stderr
    assert said in workbench.run("show", "killed").stdout
    done = workbench.run("samples", "killed", "--format", "csv")
    assert said in done.stderr
    assert len(done.stdout.splitlines()) == 13
    assert said in workbench.run("export", "killed", "--as", "csv").stderr
    for command in (
        "compare killed demo-real",
        "models killed --target none",
        "predict killed --chain tinyproxy-haproxy --at rate=300/s",
        "recommend killed --sla p95<=50ms@rate=300/s",
    ):
        assert said in workbench.run(*command.split(), expect=None).stderr, command
    catalogue = killed / ".catalogue.json"
    assert stat.S_IMODE(catalogue.stat().st_mode) == 0o600
    catalogue.unlink()
    assert {path.name: path.read_bytes() for path in killed.iterdir()} == before

    beside.write_bytes(beside.read_bytes()[:21])  # without a second copy
    for command in ("ls", "show killed", "samples killed", "export killed --as csv"):
        done = workbench.run(*command.split())
        assert "to 40 are lost" in done.stdout + done.stderr, command


@pytest.mark.slow
def test_what_is_made_is_its_owners_alone(workbench: Workbench, small_campaign: Path) -> None:
    shutil.rmtree(workbench.root / "sessions")
    process = subprocess.run(
        [COMMAND, "run", str(small_campaign), "--lab", "sim", "--headless", "--session", "own"],
        env=workbench.environment,
        capture_output=True,
        text=True,
        timeout=workbench.longest_s,
        preexec_fn=lambda: os.umask(0),  # type: ignore[arg-type, return-value]
    )
    assert process.returncode == 0, process.stderr
    made = [workbench.root / "sessions", workbench.root / ".workbench"]
    made += [path for folder in made for path in folder.rglob("*")]
    assert {path.name for path in made} >= {"own.duckdb", "workbench.log", "audit.log"}
    for path in made:
        mode = stat.S_IMODE(path.lstat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), f"{path}: {mode:o}"
