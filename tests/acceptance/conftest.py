"""How long the reliability runs are: in `make accept`, in the gate, or as the command line says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pytest
from tally import MakeTally, Tally

SHORT = 0.0005
"""Of the full counts, in the run of every day; at least a few."""
FEW = 2


@pytest.fixture
def tally(pytestconfig: pytest.Config, full_length: bool) -> MakeTally:
    """Makes a tally of a kind with the full targets of its parts; see `--share` and others."""
    share = pytestconfig.getoption("--share") or (1.0 if full_length else SHORT)
    results = pytestconfig.getoption("--results")

    def made(kind: str, targets: Mapping[str, int]) -> Tally:
        wanted = {
            part: min(count, max(FEW, math.ceil(share * count))) for part, count in targets.items()
        }
        minutes = pytestconfig.getoption("--minutes")
        path = Path(pytestconfig.invocation_params.dir, results) if results else None
        return Tally(kind, targets if path else wanted, minutes, path)

    return made
