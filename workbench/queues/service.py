"""Service-time distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ServiceTime:
    """CPU seconds that one request costs.

    Attributes
    ----------
    mean_s : mean, seconds.
    cv : coefficient of variation; 0 is a constant.
    law : `lognormal` (CPU work of a proxy: skewed, never tiny) or `gamma`, which with `cv` 1 is
        the exponential of product-form networks and below 1 close to an Erlang.
    """

    mean_s: float
    cv: float = 0.0
    law: Literal["lognormal", "gamma"] = "lognormal"

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Independent draws, seconds, shape (size,)."""
        if self.cv == 0.0:
            return np.full(size, self.mean_s)
        if self.law == "gamma":
            shape = 1.0 / self.cv**2
            return rng.gamma(shape, self.mean_s / shape, size)
        # Mean e^(μ+σ²/2) and cv² = e^σ²-1, solved for μ and σ.
        variance = math.log1p(self.cv**2)
        return rng.lognormal(math.log(self.mean_s) - variance / 2.0, math.sqrt(variance), size)
