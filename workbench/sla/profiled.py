"""What samples were taken of, so that an answer can say where it rests on none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, ParameterValue
from workbench.domain.recommendations import Deployment
from workbench.models.forecast import Points

Allotment = frozenset[tuple[str, ParameterValue]]


@dataclass(frozen=True)
class Profiled:
    """The operating points that were measured, function by function or as a chain.

    Attributes
    ----------
    primary : name of `wl`, as an SLA writes it.
    wl : the lowest and the highest load.
    integer : whether loads come whole (clients do).
    workloads : values of each workload parameter, by function; empty for what is of no function.
    allotments : the resources of one function that were measured together.
    ceilings : by KPI, the figure above which samples were not told apart, in the KPI's unit.
    loads : the lowest and the highest load of each function.
    """

    primary: str
    wl: tuple[float, float]
    integer: bool = False
    workloads: Mapping[str, Mapping[str, tuple[ParameterValue, ...]]] = field(default_factory=dict)
    allotments: frozenset[Allotment] = frozenset()
    ceilings: Mapping[str, float] = field(default_factory=dict)
    loads: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        points: Points,
        primary: str,
        *,
        integer: bool = False,
        ceilings: Mapping[str, float] | None = None,
    ) -> Profiled:
        """What these operating points cover. Raises `DataError` if there are none."""
        if not points:
            raise DataError("nothing was profiled", remedy="Measure some samples first")
        workloads: dict[str, dict[str, set[ParameterValue]]] = {}
        allotments: set[Allotment] = set()
        by_configuration: dict[Configuration, list[float]] = {}
        for configuration, wl in points:
            by_configuration.setdefault(configuration, []).append(wl)
        loads: dict[str, list[float]] = {}
        for configuration, wls in by_configuration.items():
            deployment = Deployment(configuration.resources)
            for key, value in configuration.workload.items():
                owner = key.rpartition(".")[0]
                for function in (owner,) if owner else deployment.functions or ("",):
                    workloads.setdefault(key, {}).setdefault(function, set()).add(value)
            allotments |= {frozenset(own.items()) for own in deployment.functions.values()}
            for function in deployment.functions:
                loads.setdefault(function, []).extend(wls)
        return cls(
            primary,
            _range(wl for _, wl in points),
            integer,
            {
                key: {function: _sorted(values) for function, values in by.items()}
                for key, by in workloads.items()
            },
            frozenset(allotments),
            dict(ceilings or {}),
            {function: _range(wls) for function, wls in loads.items() if function},
        )

    @cached_property
    def workload(self) -> dict[str, tuple[ParameterValue, ...]]:
        """Values of each workload parameter, whatever function was given them."""
        return {
            key: _sorted({value for values in by.values() for value in values})
            for key, by in self.workloads.items()
        }

    def covers(self, deployment: Deployment) -> bool:
        """Whether each function was measured with its own part of the allocation."""
        return all(
            frozenset(own.items()) in self.allotments for own in deployment.functions.values()
        )

    def outside(
        self, deployment: Deployment, workload: Mapping[str, ParameterValue], wl: float
    ) -> tuple[str, ...]:
        """Keys of what lies beyond every value that was measured, and `wl`'s name if that does."""
        known: dict[str, list[ParameterValue]] = {k: list(v) for k, v in self.workload.items()}
        for allotment in self.allotments:
            for key, value in allotment:
                known.setdefault(key, []).append(value)
        given = {**deployment.allocation, **workload}
        beyond = [key for key, value in given.items() if not within(value, known.get(key, ()))]
        return (*beyond, *([] if within(wl, self.wl) else [self.primary]))


def _range(loads: Iterable[float]) -> tuple[float, float]:
    known = tuple(loads)
    return min(known), max(known)


def _sorted(values: Iterable[ParameterValue]) -> tuple[ParameterValue, ...]:
    return tuple(sorted(values, key=_order))


def _order(value: ParameterValue) -> tuple[bool, float, str]:
    named = isinstance(value, str)
    return named, 0.0 if named else float(value), str(value)


def within(value: ParameterValue, known: list[ParameterValue] | tuple[ParameterValue, ...]) -> bool:
    """Whether a number lies between known ones, or a name is among them."""
    if isinstance(value, str):
        return value in known
    numbers = [other for other in known if not isinstance(other, str)]
    # Round-off of units must not put a value outside of itself.
    slack = 1e-9 * abs(value)
    return bool(numbers) and min(numbers) - slack <= value <= max(numbers) + slack
