"""A table in the law's terms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.models.base import Floats


@dataclass
class Samples:
    """Place of the configuration, log wl, log KPI and its noise, each (n,)."""

    place: np.ndarray
    x: Floats
    y: Floats
    noise: Floats
    ceiling: float

    def __len__(self) -> int:
        return len(self.y)

    def of(self, rows: np.ndarray) -> Samples:
        """Those at `rows`, places or flags."""
        return Samples(self.place[rows], self.x[rows], self.y[rows], self.noise[rows], self.ceiling)
