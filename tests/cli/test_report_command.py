"""`report` by the installed command: one page of a session, chains compared and diagnosed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from chain_session import RIGHT, SESSION, WRONG, write_chain_session
from driving import Workbench
from session_making import closed_session


@pytest.mark.slow
def test_a_report_says_how_a_chain_compares_with_its_prediction(
    workbench: Workbench, tmp_path: Path
) -> None:
    asyncio.run(write_chain_session(workbench.root / "sessions" / f"{SESSION}.duckdb"))
    written = tmp_path / "report.html"
    assert workbench.run("report", SESSION, "--out", str(written)).stdout.strip() == str(written)
    page = written.read_text(encoding="utf-8")
    for chain in (RIGHT, WRONG):
        assert f"{chain}: predicted and measured" in page
        assert f"{chain}, " in page
    assert "Not as predicted, beyond both 95 % intervals" in page
    assert "predicted by" in page
    assert "<script" not in page


async def test_where_nothing_can_be_written_is_a_sentence(
    workbench: Workbench, tmp_path: Path
) -> None:
    await closed_session(workbench.root / "sessions" / "demo-1.duckdb")
    (tmp_path / "taken").touch()
    refused = workbench.run("report", "demo-1", "--out", str(tmp_path / "taken" / "x"), expect=3)
    assert "cannot be written" in refused.stderr
    assert "Choose another file (--out)" in refused.stderr
