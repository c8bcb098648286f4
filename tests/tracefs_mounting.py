"""The kernel's tracefs, mounted for tests: hosts mostly do not mount it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(place: Path) -> Iterator[Path]:
    """Mounted at a folder; a test that this user or kernel cannot mount it for is skipped."""
    if os.geteuid() != 0:
        pytest.skip("only root mounts tracefs")
    asked = ["mount", "-t", "tracefs", "nodev", str(place)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"this host's kernel has no tracefs to mount: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)
