"""What a profile model must do: log KPI over a table of parameters and `wl`, with intervals.

Estimators follow scikit-learn: constructor parameters are only stored, learned state ends in `_`,
`clone` and `get_params` work. X has a row per sample and a column per parameter, the load last;
numbers are in natural logs where the table says so, categories (flavors) are whole codes. y is the
natural log of the KPI (METHOD.md 8). `workbench.models.table` makes both from samples. One
configuration is the case of a single column.

A model may take these constructor parameters; `fitted_to` sets those that it has:

=============  ==================================================================================
parameter      meaning
=============  ==================================================================================
`categorical`  tuple of int, the columns of X that hold codes of categories; default `()`
`ceiling`      float or None, log of the KPI ceiling: y never exceeds it; default None
`random_state` int, the same data give the same fit
=============  ==================================================================================
"""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


class ProfileModel(Protocol):
    """Registered under `workbench.models`: a class, or a function without arguments that makes one.

    Optional: `coefficients_`, ndarray of shape (k,), all that a fit has learned; it is stored, and
    a model that is fitted again is checked against it.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Self:
        """Fit log KPI `y` of shape (n,) to `X` of shape (n, d).

        `noise` of shape (n,) is the standard deviation of each y, where it is known. Rows that are
        equal are repetitions of one point.
        """
        ...

    def predict(self, X: ArrayLike) -> Floats:
        """Mean log KPI at `X` of shape (m, d), as shape (m,)."""
        ...

    def predict_band(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """Lower and upper 95 % bound of the *mean* log KPI at `X`, each of shape (m,).

        How well the long-run figure is known, not where the next window will lie: a sample
        measured there scatters around it by its own noise. A model without an interval of its own
        is wrapped in `workbench.models.conformal.Conformal`.
        """
        ...
