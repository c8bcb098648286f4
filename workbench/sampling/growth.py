"""Which configurations are sampled, and which values come next: Algorithm 3 of paper B."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from workbench.domain.parameters import ParameterValue
from workbench.domain.samples import Sample
from workbench.sampling.base import Space
from workbench.sampling.factors import Factor


class Growth:
    """Which configurations are sampled: values of every factor, more of them step by step.

    The product of the chosen values need not exist: what is not among the configurations of the
    space is left out, and in the end every value of a factor that is not stable is taken.
    """

    def __init__(
        self,
        space: Space,
        factors: Sequence[Factor],
        in_order: bool,
        level: Callable[[Sample], float],
    ) -> None:
        self._space = space
        self._factors = list(factors)
        self._in_order = in_order
        self._level = level
        self._chosen: dict[str, list[ParameterValue]] = {
            f.key: [f.values[len(f.values) // 2]] if in_order else _both_ends(f) for f in factors
        }
        self._waiting = list(factors)
        """Factors that may get more values; the first one is next."""
        if in_order:
            self._chosen[factors[0].key] = _both_ends(factors[0])
        self.selected = self._product()
        self._last: tuple[Factor, frozenset[int]] | None = None

    def grow(
        self,
        samples: Sequence[Sample],
        still_changes: Callable[[Factor, frozenset[int]], bool],
    ) -> bool:
        """Add a value of a factor, whose turn it is; False if none is left to add."""
        if self._last is not None:
            factor, new = self._last
            if not still_changes(factor, new) and factor in self._waiting:
                self._waiting.remove(factor)
        while self._waiting:
            factor = self._waiting[0]
            known = self.selected
            values = self._next_values(factor, samples)
            if not values:
                self._waiting.pop(0)
                continue
            self._chosen[factor.key] += values
            self.selected = self._product()
            self._last = (factor, self.selected - known)
            if not self._in_order:
                self._waiting.append(self._waiting.pop(0))
            if self._last[1]:
                return True
        return False

    def _next_values(self, factor: Factor, samples: Sequence[Sample]) -> list[ParameterValue]:
        chosen = self._chosen[factor.key]
        ends = [value for value in _both_ends(factor) if value not in chosen]
        return ends or next_value(factor, chosen, samples, self._level)

    def _product(self) -> frozenset[int]:
        """Places of the configurations whose values are all chosen."""
        return frozenset(
            place
            for place, c in enumerate(self._space.configurations)
            if all(f.of(c) in self._chosen[f.key] for f in self._factors)
        )


def next_value(
    factor: Factor,
    chosen: Sequence[ParameterValue],
    samples: Sequence[Sample],
    level: Callable[[Sample], float],
) -> list[ParameterValue]:
    """Algorithm 3: the middle value of the interval over which the mean KPI changes most.

    Parameters
    ----------
    chosen : values sampled so far, both ends among them.
    samples : all samples; the valid ones at a value make its mean, over all other parameters.
    level : log KPI of a valid sample.

    Returns
    -------
    list
        The value; empty if every one is sampled. Equal changes are taken from the widest interval,
        then from below; a value without a valid sample counts as not differing.
    """
    by_value: dict[ParameterValue, list[float]] = {}
    for sample in samples:
        if sample.valid:
            by_value.setdefault(factor.of(sample.point.configuration), []).append(level(sample))
    means = {value: sum(levels) / len(levels) for value, levels in by_value.items()}
    best: tuple[float, int, int] | None = None
    places = sorted(factor.values.index(value) for value in chosen)
    for low, high in pairwise(places):
        if high - low > 1:
            ends = [means.get(factor.values[place]) for place in (low, high)]
            change = abs(ends[0] - ends[1]) if None not in ends else 0.0  # type: ignore[operator]
            if best is None or (change, high - low) > best[:2]:
                best = (change, high - low, (low + high) // 2)
    return [] if best is None else [factor.values[best[2]]]


def _both_ends(factor: Factor) -> list[ParameterValue]:
    return [factor.values[0], factor.values[-1]]
