"""What a model of one configuration must do: KPI over `wl`, with a band.

Estimators follow scikit-learn: constructor parameters are only stored, learned state ends in `_`.
Both axes are in logs by default (METHOD.md 8); `workbench.models.scales` converts.
"""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


class ProfileModel(Protocol):
    """Registered under `workbench.models`."""

    def fit(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Self:
        """Fit log KPI `y` of shape (n,) to log `wl` `X` of shape (n, 1).

        `noise` of shape (n,) is the standard deviation of each y, where it is known.
        """
        ...

    def predict(self, X: ArrayLike) -> Floats:
        """Mean log KPI at `X` of shape (m, 1), as shape (m,)."""
        ...

    def predict_band(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """Lower and upper 95 % bound of the *mean* log KPI at `X`, each of shape (m,)."""
        ...
