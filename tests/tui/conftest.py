"""What all tests of screens share: clock and characters that do not depend on the machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import textual.app
import textual.pilot
import textual.screen
from textual._compositor import Compositor
from textual.pilot import Pilot
from textual.screen import Screen
from waiting import wait_for_idle, wait_for_screen

RENDER_UPDATE = Compositor.render_update
PAINTED_S = 1 / 60
"""After which what has changed is laid out and painted. Half of it costs a fifth more where a form
is filled in, and no key would wait for one that is longer than `waiting.SOON_S`."""


def paint_nothing(
    compositor: Compositor,
    full: bool = False,
    screen_stack: list[Screen[Any]] | None = None,
    simplify: bool = False,
) -> Any:
    """In place of `Compositor.render_update`, whose picture an app without a terminal throws away:
    a fifth of what the tests of screens cost. What they look at is rendered when they look."""
    if full:  # somebody looks
        return RENDER_UPDATE(compositor, full, screen_stack, simplify)
    compositor._dirty_regions.clear()
    return None


@pytest.fixture(autouse=True)
def same_everywhere(
    request: pytest.FixtureRequest, full_length: bool, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("WORKBENCH_GLYPHS", "braille")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(Pilot, "_wait_for_screen", wait_for_screen)
    monkeypatch.setattr(textual.screen, "UPDATE_PERIOD", PAINTED_S)
    if not full_length and request.node.get_closest_marker("painted") is None:
        monkeypatch.setattr(Compositor, "render_update", paint_nothing)
    for module in (textual.app, textual.pilot):
        monkeypatch.setattr(module, "wait_for_idle", wait_for_idle)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
