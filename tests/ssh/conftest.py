"""One server for tests that leave nothing behind, and a server of their own for the others."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from driving import COMMAND, Workbench
from ssh_door import Door, open_door


@pytest.fixture(scope="module")
def shared_door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    root = tmp_path_factory.mktemp("ssh")
    (root / "sessions").mkdir()
    runtime = Path(tempfile.mkdtemp(prefix="wb-"))
    workbench = Workbench(root, runtime)
    with open_door(workbench) as door:
        yield door
    subprocess.run([COMMAND, "engine", "stop"], env=workbench.environment, capture_output=True)
    shutil.rmtree(runtime, ignore_errors=True)


@pytest.fixture
def door(workbench: Workbench) -> Iterator[Door]:
    with open_door(workbench) as made:
        yield made
