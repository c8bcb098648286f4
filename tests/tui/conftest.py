"""What all tests of screens share: clock and characters that do not depend on the machine."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import textual.app
import textual.pilot
import textual.screen
from textual.pilot import Pilot
from waiting import wait_for_idle, wait_for_screen

PAINTED_S = 1 / 120
"""After which what has changed is laid out and painted: each key waits for it."""


@pytest.fixture(autouse=True)
def same_everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("WORKBENCH_GLYPHS", "braille")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(Pilot, "_wait_for_screen", wait_for_screen)
    monkeypatch.setattr(textual.screen, "UPDATE_PERIOD", PAINTED_S)
    for module in (textual.app, textual.pilot):
        monkeypatch.setattr(module, "wait_for_idle", wait_for_idle)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
