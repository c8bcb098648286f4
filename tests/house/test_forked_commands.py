"""The tests' own forker outlives a command that nobody waits for, and shares what it imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from forked_commands import Forker, forker

WORKBENCH = str(Path(sys.executable).with_name("workbench"))


def test_a_command_that_took_too_long_costs_the_next_ones_nothing(tmp_path: Path) -> None:
    """It died of a broken pipe, and with it all tests that came after the first slow one."""
    for _ in range(3):
        with pytest.raises(subprocess.TimeoutExpired):
            forker.run([WORKBENCH, "run", "demo", "--lab", "sim"], os.environ, tmp_path, 0.0)
    done = forker.run([WORKBENCH, "--version"], os.environ, tmp_path, 60.0)
    assert done.returncode == 0
    assert done.stdout.startswith("workbench ")


def test_what_is_imported_once_serves_every_process_of_the_tests(tmp_path: Path) -> None:
    forker.begin()
    other = Forker()
    other._control = forker._control  # as in a process that is forked from this one
    for each in (forker, other, forker):
        assert each.run([WORKBENCH, "--version"], os.environ, tmp_path, 60.0).returncode == 0
    assert other.pid != forker.pid
    assert other._socket is not None
    other._socket.close()  # its commands end with it, and nobody else's
    assert forker.run([WORKBENCH, "--version"], os.environ, tmp_path, 60.0).returncode == 0
