"""Whatever is pressed: no screen fails, nothing hangs, the application goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
import textual.screen
from monkey import play
from tally import MakeTally

from workbench.tui.commands.catalogue import SCREENS

pytestmark = pytest.mark.painted

PRESSES = 1000
SEEDS = 20
SELDOM_S = 0.2
"""How often is painted in the short run: nearly all of its time would be that."""


@pytest.mark.slow
async def test_random_keys_break_nothing(
    full_length: bool, tally: MakeTally, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")  # what it starts is simulated
    monkeypatch.setenv("EDITOR", "true")
    if not full_length:
        monkeypatch.setattr(textual.screen, "UPDATE_PERIOD", SELDOM_S)
    visited: set[str] = set()
    failures: list[str] = []
    counts = tally("random keys", {f"seeds of {PRESSES:,} presses": SEEDS}, few=1)
    for seed in counts.numbers(*counts.targets):
        found = await play(tmp_path / str(seed), seed, PRESSES, recordings=full_length)
        assert found.presses == PRESSES
        visited |= {screen for screen, presses in found.screens.items() if presses >= 10}
        failures += [f"seed {seed}, {failure}" for failure in found.failures]
    assert not failures, f"{len(failures)} failures\n" + "\n".join(failures[:10])
    assert {screen.name for screen in SCREENS} <= visited
    counts.keep()
