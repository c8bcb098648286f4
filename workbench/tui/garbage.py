"""When a screen looks for what only Python's collector finds.

Nearly all that a screen makes is gone by itself once nobody refers to it. Looking for the rest goes
through everything there is: with a long session 0.1 s, in which no key is answered. By Python's own
thresholds that happens every few seconds while events come fast; here it happens while nobody
types.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

THRESHOLDS = (10_000, 20, 50)
"""New objects before the youngest are looked through, such searches before the next generation is,
and of those before everything is: for somebody who never stops typing."""
EVERY_S = 60.0
"""Between two looks through everything."""
QUIET_S = 1.0
"""Without a key, after which one may be held up."""


def seldom_search_garbage() -> None:
    """From now on; what there is already, such as modules, is never looked through again."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def search_garbage(quiet_s: float, search: Callable[[], object] = gc.collect) -> None:
    """Look through everything, unless somebody typed less than `QUIET_S` ago."""
    if quiet_s >= QUIET_S:
        search()
