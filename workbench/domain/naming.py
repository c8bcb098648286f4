"""Names that somebody may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(given: str, known: Iterable[str]) -> str:
    """The known name that is most like the given one; empty where none is."""
    names = sorted(known)
    by_small = {name.lower(): name for name in names}
    close = difflib.get_close_matches(given, names, n=1)
    close = close or difflib.get_close_matches(given.lower(), by_small, n=1)
    return by_small.get(close[0], close[0]) if close else ""
