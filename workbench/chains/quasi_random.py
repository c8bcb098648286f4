"""Random numbers that fill their space evenly: the same seed, the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice

import numpy as np

from workbench.models.base import Floats


def uniforms(points: int, columns: int, seed: int) -> Floats:
    """Quasi-random points of the unit cube, of shape (points, columns).

    Multiples of the square roots of primes, modulo 1 (Richtmyer's sequence: Niederreiter 1978,
    Bull. Amer. Math. Soc. 84(6)), shifted at random (Cranley & Patterson 1976, SIAM J. Numer. Anal.
    13(6)). Each column is then laid on the middles of `points` equal intervals in its own order, so
    that one column by itself is exact: a function alone keeps its interval to the digit that so
    many draws have. It needs nothing of `scipy.stats`, whose import takes seconds.
    """
    roots = np.sqrt(np.array(list(islice(_primes(), columns)), dtype=float))
    shift = np.random.default_rng(seed).random(columns)
    spread = np.mod(np.arange(1, points + 1)[:, None] * roots + shift, 1.0)
    ranks = np.argsort(np.argsort(spread, axis=0), axis=0)
    return np.asarray((ranks + 0.5) / points)


def _primes() -> Iterator[int]:
    found: list[int] = []
    for number in count(2):
        if all(number % prime for prime in found):
            found.append(number)
            yield number
