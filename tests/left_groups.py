"""Control groups that a test left behind; those of tests that run beside it are none of its own."""

from __future__ import annotations

import os

from workbench.labs.netns import groups


def left_groups(session: str = "") -> list[str]:
    """Names of groups made by this process, or of the dead ones of a session."""
    part = f".{session}." if session else f"{os.getpid()}."
    names = {folder.name for folder in groups.left(frozenset())}
    return sorted(n for n in names if (part in n if session else n.startswith(part)))
