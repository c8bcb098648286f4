"""MLRsearch, imported without looking up the source of every caller: 10 s where much is loaded.

Its properties ask `inspect.stack` who defines them, and need no more than a frame.
"""

from __future__ import annotations

import inspect
import sys
from types import FrameType
from unittest import mock


def _two_frames() -> list[tuple[FrameType]]:
    """Who asks, and who called that one, as the first two of `inspect.stack` begin."""
    return [(sys._getframe(1),), (sys._getframe(2),)]


with mock.patch.object(inspect, "stack", _two_frames):
    from MLRsearch import (
        AbstractMeasurer,
        Config,
        MeasurementResult,
        MultipleLossRatioSearch,
        SearchGoal,
    )

__all__ = [
    "AbstractMeasurer",
    "Config",
    "MeasurementResult",
    "MultipleLossRatioSearch",
    "SearchGoal",
]
