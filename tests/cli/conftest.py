"""One workspace and engine for tests that leave nothing behind which another would trip over."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from driving import Workbench


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """Its engine runs: commands are spared its start, and its worker's imports."""
    runtime = Path(tempfile.mkdtemp(prefix="wb-"))  # a socket's path is short
    made = Workbench(tmp_path_factory.mktemp("shared"), runtime)
    (made.root / "sessions").mkdir()
    engine = made.start("engine", "serve")
    yield made
    made.run("engine", "stop", expect=None)
    engine.communicate(timeout=60)
    shutil.rmtree(runtime, ignore_errors=True)
