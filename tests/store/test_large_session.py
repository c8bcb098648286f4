"""The session that benchmarks of large replays are made on, with few samples."""

from __future__ import annotations

from pathlib import Path

import pytest
from large_session import ROUND, make

from workbench.store.session_file import SessionFile


@pytest.mark.slow
async def test_its_samples_are_as_many_as_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "large.duckdb"
    await make(path, 2 * ROUND)
    file = await SessionFile.open(path, read_only=True)
    try:
        summary = await file.summary()
    finally:
        await file.close()
    assert summary.samples == 2 * ROUND
