"""Columns as learners want them: numbers standardised, categories one-hot, constants left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.models.base import Floats


@dataclass(frozen=True)
class Encoding:
    """How rows of a table become rows of encoded columns; learned from the rows of a fit.

    Attributes
    ----------
    numbers : shape (k,), the numeric columns that vary.
    offset, scale : shape (k,), their means and standard deviations.
    names : a pair for each category that was seen: its column and its code. Columns with a single
        category are left out; one that was never seen has zeros in all of its column's places.
    """

    numbers: NDArray[np.int64]
    offset: Floats
    scale: Floats
    names: tuple[tuple[int, float], ...]

    @classmethod
    def of(cls, X: Floats, categorical: tuple[int, ...] = ()) -> Encoding:
        """Encoding of the rows `X` of shape (n, d), of which `categorical` columns hold codes."""
        varies = np.flatnonzero(np.ptp(X, axis=0) > 0.0)
        numbers = varies[~np.isin(varies, categorical)]
        names = tuple(
            (int(column), float(code))
            for column in varies
            if column in categorical
            for code in np.unique(X[:, column])
        )
        scale = X[:, numbers].std(axis=0)
        # Values that differ only in their last digits have a spread that underflows.
        return cls(numbers, X[:, numbers].mean(axis=0), np.where(scale > 0, scale, 1.0), names)

    def __call__(self, X: Floats) -> Floats:
        """Encoded rows of shape (m, k + len(names)): numbers first."""
        Z = (X[:, self.numbers] - self.offset) / self.scale
        if not self.names:
            return Z
        flags = [X[:, column] == code for column, code in self.names]
        return np.column_stack([Z, *flags]).astype(float)

    @property
    def groups(self) -> tuple[int | None, ...]:
        """For each encoded column: the category column it stems from, None for a number."""
        return (*(None for _ in self.numbers), *(column for column, _ in self.names))
