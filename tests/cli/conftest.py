"""One workspace and engine for tests that leave nothing behind which another would trip over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from driving import Workbench, a_workbench


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """Its engine runs: commands are spared its start, and its worker's imports."""
    with a_workbench(tmp_path_factory.mktemp("shared")) as made, made.serving():
        yield made
