"""Folds that keep repetitions of a point together: none ever straddles train and test."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from workbench.models.base import Floats

Ints = NDArray[np.int64]


def point_numbers(X: Floats) -> Ints:
    """Equal rows get equal numbers, from 0, as shape (n,)."""
    return np.unique(X, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def folds_of(groups: Ints, count: int, seed: int) -> Ints:
    """The fold of each row, of shape (n,): groups are dealt out by the seed.

    At most `count` folds, fewer where there are fewer groups; their sizes, in groups, differ by
    at most one.
    """
    numbers = np.unique(groups, return_inverse=True)[1].reshape(-1)
    total = int(numbers.max()) + 1
    dealt = np.random.default_rng(seed).permutation(total) % min(count, total)
    return np.asarray(dealt[numbers], dtype=np.int64)


def splits_of(folds: Ints) -> list[tuple[Ints, Ints]]:
    """Pairs of training and held-out rows, one for each fold, as scikit-learn's `cv` takes them."""
    return [
        (np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in np.unique(folds)
    ]
