"""Nobody who types waits for Python's collector, and nothing is kept for good."""

from __future__ import annotations

from workbench.tui.garbage import QUIET_S, search_garbage


def test_garbage_is_looked_for_while_nobody_types() -> None:
    searches: list[str] = []
    search_garbage(QUIET_S, lambda: searches.append("quiet"))
    search_garbage(0.0, lambda: searches.append("typing"))
    assert searches == ["quiet"]
