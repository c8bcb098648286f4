"""The recorded lab: what was measured before answers (`--lab recorded:NAME`).

`NAME` is a session, a bundle or a CSV file. A point that was measured is answered with exactly
what was stored; between two of them the answer is interpolated and says so.
"""

from workbench.labs.recorded.lab import RecordedLab

__all__ = ["RecordedLab"]
