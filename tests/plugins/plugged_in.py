"""The command beside modules that lie in a folder, as a plug-in's would that is installed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from driving import COMMAND


def run(home: Path, *arguments: str, expect: int = 0) -> str:
    """What it prints; with its errors where it is to end otherwise."""
    done = subprocess.run(
        [COMMAND, "--workspace", str(home / "ws"), *arguments],
        env={**os.environ, "PYTHONPATH": str(home)},
        cwd=home,
        capture_output=True,
        text=True,
    )
    assert done.returncode == expect, done.stderr + done.stdout
    return done.stdout if expect == 0 else done.stdout + done.stderr
