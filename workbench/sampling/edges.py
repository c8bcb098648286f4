"""Where paper B begins: all combinations of the lowest and the highest value of every parameter.

"Optimized Sampling Strategies", 6.3. Where they are more than the budget, a regular fraction of
them of the highest resolution that fits (Box, Hunter, Hunter: Statistics for Experimenters).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations, islice, product

import numpy as np

from workbench.domain.parameters import Configuration
from workbench.sampling.base import Space
from workbench.sampling.factors import Coordinates
from workbench.sampling.intervals import ends

TRIED = 20_000
"""Sets of generators that are compared for a fraction, of odd ones and of all: all that there are
up to nine factors."""
WORDS = 2_000_000
"""Words of defining relations that are looked at for it: each added factor doubles them."""

Runs = tuple[tuple[int, ...], ...]
Point = tuple[Configuration, float]


def edges(space: Space, most: int | None = None) -> tuple[Point, ...]:
    """Points at which every factor and `wl` are low or high.

    Parameters
    ----------
    space : Space
        Its configurations may be any set; where a corner is not among them the nearest stands in.
    most : int, optional
        Budget in points.

    Returns
    -------
    tuple of (Configuration, float)
        Distinct points, at most `most`. Recorded loads are used where the space has some.
    """
    if not space.configurations or (most is not None and most < 1):
        return ()
    where = Coordinates(space.configurations, space.primary)
    rows = np.array([where.row(c) for c in space.configurations]).reshape(
        len(space.configurations), len(where.factors)
    )
    points = []
    for run in two_level(len(where.factors) + 1, most):
        distance = np.square(rows - np.array(run[:-1], dtype=float)).sum(axis=1)
        configuration = space.configurations[int(np.argmin(distance))]
        loads = ends(space.primary, space.loads.get(configuration, ()))
        points.append((configuration, loads[-1] if run[-1] else loads[0]))
    return tuple(dict.fromkeys(points))


def two_level(factors: int, most: int | None = None) -> Runs:
    """A two-level design: full where it fits, else the fraction of the highest resolution.

    Returns
    -------
    tuple of runs, each a tuple of `factors` zeros (low) and ones (high)
        At most `most`. Under resolution III no regular fraction exists: the smallest that does is
        cut then, and effects are confounded.
    """
    base = factors if most is None else max(most.bit_length() - 1, 1)
    while 2**base - 1 < factors:  # resolution III needs a word of its own for every factor
        base += 1
    if base >= factors:
        return tuple(product((0, 1), repeat=factors))[:most]
    return _fraction(factors, base)[:most]


def resolution(words: Sequence[int]) -> int:
    """Shortest word of the defining relation that these generators (bit masks) span."""
    return min(_lengths(words), default=0)


def _lengths(words: Sequence[int]) -> list[int]:
    spanned = [0]
    for word in words:
        spanned += [known ^ word for known in spanned]
    return sorted(word.bit_count() for word in spanned[1:])


@cache
def _fraction(factors: int, base: int) -> Runs:
    added = factors - base
    words = _generators(base, added)
    runs = []
    for levels in product((0, 1), repeat=base):
        run = list(levels)
        for word in words:
            members = [place for place in range(base) if word >> place & 1]
            # The product of levels written as -1 and 1 is high for an even number of low ones.
            run.append(1 - sum(1 - levels[place] for place in members) % 2)
        runs.append(tuple(run))
    return tuple(runs)


@cache
def _generators(base: int, added: int) -> tuple[int, ...]:
    """Words of the added factors: the longest shortest word, and the fewest words of that length.

    Bit i < base is a base factor, bit base + j the j-th added one.
    """
    interactions = sorted(
        (mask for mask in range(1, 2**base) if mask.bit_count() >= 2),
        key=lambda mask: (-mask.bit_count(), mask),
    )
    # With interactions of odd order all words are even, so that none is shorter than four: a fold-
    # over, which for many factors no search of ours would find.
    odd = [mask for mask in interactions if mask.bit_count() % 2]
    pools = (odd, interactions) if len(odd) >= added else (interactions,)
    tried = max(min(TRIED, WORDS >> added), 1)

    def worth(words: tuple[int, ...]) -> tuple[int, int]:
        lengths = _lengths(words)
        return lengths[0], -lengths.count(lengths[0])

    choices = [
        tuple(mask | 1 << base + j for j, mask in enumerate(chosen))
        for pool in pools
        for chosen in islice(combinations(pool, added), tried)
    ]
    return choices[0] if tried == 1 else max(choices, key=worth)
