"""What `make` does where something is missing, says meanwhile and ends with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.needs("make")


def make(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """On its own: not as a part of the `make` that runs these tests."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", "--no-print-directory", "-C", ROOT, *arguments],
        env=own,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_without_ensurepip_every_call_says_the_same(tmp_path: Path) -> None:
    """`python -m venv` leaves a Python without pip behind then."""
    folder = tmp_path / "venv"
    python = script(
        tmp_path / "python",
        f'[ "$1" = -c ] || {{ mkdir -p {folder}/bin; touch {folder}/bin/python; exit 1; }}',
    )
    for _ in range(2):
        done = make(f"PYTHON={python}", f"VENV={folder}", f"{folder}/bin/python")
        assert done.returncode != 0
        assert "apt install python3-venv" in done.stderr
        assert not (folder / "bin").exists()


def test_an_installation_says_what_it_does_and_for_how_long(tmp_path: Path) -> None:
    """Before pip, which is silent for as long as it takes."""
    said = make("-n", f"VENV={tmp_path}/venv", f"{tmp_path}/venv/.tools").stdout
    before_pip = said.partition("-m pip install")[0]
    assert "installing what the workbench needs" in before_pip
    assert "about 20 s" in before_pip


@pytest.mark.parametrize(("code", "error"), [(0, False), (1, False), (3, True)])
def test_a_demo_with_findings_is_no_error(tmp_path: Path, code: int, error: bool) -> None:
    script(tmp_path / "bin" / "workbench", f"exit {code}")
    done = make("-o", f"{tmp_path}/.runtime", f"VENV={tmp_path}", "demo")
    assert bool(done.returncode) is error, done.stderr


def test_what_make_test_leaves_out_the_gate_runs() -> None:
    assert '-m "not docker and not slow"' in make("--dry-run", "unit", "SLOW=").stdout
    assert '-m "not docker" ' in make("--dry-run", "unit", "SLOW=1").stdout
    assert "make unit SLOW=1" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
