"""What all tests of screens share: clock and characters that do not depend on the machine."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from textual.pilot import Pilot
from waiting import wait_for_screen


@pytest.fixture(autouse=True)
def same_everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("WORKBENCH_GLYPHS", "braille")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(Pilot, "_wait_for_screen", wait_for_screen)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
