"""The tests' own forker outlives a command that nobody waits for any more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from forked_commands import forker

WORKBENCH = str(Path(sys.executable).with_name("workbench"))


def test_a_command_that_took_too_long_costs_the_next_ones_nothing(tmp_path: Path) -> None:
    """It died of a broken pipe, and with it all tests that came after the first slow one."""
    for _ in range(3):
        with pytest.raises(subprocess.TimeoutExpired):
            forker.run([WORKBENCH, "run", "demo", "--lab", "sim"], os.environ, tmp_path, 0.0)
    done = forker.run([WORKBENCH, "--version"], os.environ, tmp_path, 60.0)
    assert done.returncode == 0
    assert done.stdout.startswith("workbench ")
