"""`scripts/fresh_demo.py`: late is told only where nobody else kept the host busy."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import fresh_demo


@pytest.mark.parametrize(
    ("picture_s", "sample_s", "load", "late"),
    [
        (45.0, 180.0, 0.3, ""),
        (46.0, 180.0, 1.9, "the first picture came after 46 s, to be there within 45 s"),
        (30.0, 200.0, 1.9, "the first sample came after 200 s, to be there within 180 s"),
        (101.0, 292.0, 2.0, ""),
        (20.0, None, 0.3, ""),  # that is told by itself
    ],
)
def test_late_is_told_of_a_quiet_host(
    picture_s: float, sample_s: float | None, load: float, late: str
) -> None:
    demo: Any = SimpleNamespace(picture_s=picture_s, sample_s=sample_s)
    assert fresh_demo.verdict(demo, load, 2) == late
