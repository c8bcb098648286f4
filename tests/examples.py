"""On how many random examples a property is tried: all of them in `make accept`, a part before.

They are the same in each run (`derandomize`), so that what they find is found by the first run
after a change; a gate that runs on each change needs the fewer.
"""

from __future__ import annotations

SHARE_IN_THE_GATE = 0.1
FEW = 8
"""Of each property at least."""
full_length = False
"""Set before test modules are imported."""


def examples(full: int = 100) -> int:
    """Of `full` examples, those that this run tries."""
    return full if full_length else min(full, max(FEW, round(SHARE_IN_THE_GATE * full)))
