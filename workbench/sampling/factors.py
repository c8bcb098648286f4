"""What varies over the configurations of a space, and where a point lies in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.domain.parameters import Configuration, ParameterValue, PrimaryWorkload
from workbench.models.base import Floats
from workbench.models.table import Column, columns_of
from workbench.sampling.intervals import axis


@dataclass(frozen=True)
class Factor:
    """A resource or workload parameter with more than one value; a flavor counts as one.

    `values` rise: numbers by size, flavors by what they allocate, other names as configured.
    """

    key: str
    values: tuple[ParameterValue, ...]
    log: bool

    def of(self, configuration: Configuration) -> ParameterValue:
        """The factor's value in a configuration."""
        found = configuration.resources.get(self.key, configuration.workload.get(self.key))
        assert found is not None, self.key
        return found

    def place(self, value: ParameterValue) -> float:
        """From 0 at the lowest value to 1 at the highest; names by rank, positive numbers in logs.

        On its own scale every factor then has a range of one, whatever its unit.
        """
        if isinstance(value, str):
            return self.values.index(value) / (len(self.values) - 1)
        low, high, at = (float(v) for v in (self.values[0], self.values[-1], value))
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return (at - low) / (high - low)


def factors_of(configurations: Sequence[Configuration]) -> tuple[Factor, ...]:
    """Parameters that vary, resources first, each group by key.

    Raises
    ------
    DataError
        If the configurations do not set the same parameters.
    """
    columns = columns_of(configurations)
    by_flavor: dict[str, list[str]] = {}
    for column in columns:
        if column.names and column.kind == "resource":
            by_flavor[column.key] = _allocated_by(column.key, columns, configurations)
    implied = {key for keys in by_flavor.values() for key in keys}
    found = []
    for column in columns:
        values = list(dict.fromkeys(_value(c, column.key) for c in configurations))
        if column.key in implied or len(values) < 2:
            continue
        if not column.names:
            values.sort(key=float)
        elif resources := by_flavor.get(column.key):
            amounts = {
                _value(c, column.key): [float(_value(c, key)) for key in resources]
                for c in configurations
            }
            values.sort(key=lambda name: amounts[name])
        found.append(Factor(column.key, tuple(values), column.log and not column.names))
    return tuple(found)


def _allocated_by(
    flavor: str, columns: Sequence[Column], configurations: Sequence[Configuration]
) -> list[str]:
    """Resources of the same function that a flavor sets: cores, then the others by key."""
    vnf = flavor.rpartition(".")[0]
    keys = []
    for column in columns:
        if column.names or column.key.rpartition(".")[0] != vnf:
            continue
        pairs = {(_value(c, flavor), _value(c, column.key)) for c in configurations}
        if len(pairs) == len({name for name, _ in pairs}):
            keys.append(column.key)
    return sorted(keys, key=lambda key: (not key.endswith(".vcpu"), key))


def _value(configuration: Configuration, key: str) -> ParameterValue:
    values = {**configuration.resources, **configuration.workload}
    return values[key]


class Coordinates:
    """Points of a space in the unit cube: one axis for each factor, `wl` last.

    Parameters
    ----------
    configurations : sequence of Configuration
    primary : PrimaryWorkload
    """

    def __init__(self, configurations: Sequence[Configuration], primary: PrimaryWorkload) -> None:
        self.factors = factors_of(configurations)
        self._low, self._high = axis(primary.low, primary), axis(primary.high, primary)
        self._primary = primary
        self._rows = {c: [f.place(f.of(c)) for f in self.factors] for c in configurations}

    def row(self, configuration: Configuration) -> list[float]:
        """Of a configuration: one number for each factor."""
        return self._rows[configuration]

    def load(self, wl: float) -> float:
        """Of a load: 0 at the low end of the range, 1 at the high end."""
        width = self._high - self._low
        return (axis(wl, self._primary) - self._low) / width if width else 0.0

    def at(self, share: float) -> float:
        """The load at a share of the range; the inverse of `load`."""
        place = self._low + share * (self._high - self._low)
        return math.exp(place) if self._primary.scale == "log" else place

    def of(self, configuration: Configuration, wl: float) -> Floats:
        """A point, of shape (factors + 1,)."""
        return np.array([*self._rows[configuration], self.load(wl)])
