"""The command beside modules that lie in a folder, as a plug-in's would that is installed."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

import driving
from driving import COMMAND, LONGEST_COMMAND_S
from forked_commands import Forker


def run(home: Path, *arguments: str, expect: int = 0) -> str:
    """What it prints; with its errors where it is to end otherwise."""
    argv = [COMMAND, "--workspace", str(home / "ws"), *arguments]
    environment = beside(home)
    if driving.forked:
        done = forker(home).run(argv, environment, home, LONGEST_COMMAND_S)
    else:
        done = subprocess.run(argv, env=environment, cwd=home, capture_output=True, text=True)
    assert done.returncode == expect, done.stderr + done.stdout
    return done.stdout if expect == 0 else done.stdout + done.stderr


def beside(home: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(home)}


@cache
def forker(home: Path) -> Forker:
    """Of commands that find these modules: what is installed is looked up once per process."""
    return Forker(beside(home))
