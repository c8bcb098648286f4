"""What every cost must do; each check raises `AssertionError` with the sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from workbench.domain.errors import WorkbenchError
from workbench.domain.parameters import ParameterValue
from workbench.domain.resources import known
from workbench.sla.costs import Cost

Factory = Callable[[], Cost]
Check = Callable[[Factory], None]

SIZES: tuple[Mapping[str, ParameterValue], ...] = (
    {"vcpu": 0.25},
    {"vcpu": 1.0, "memory_bytes": 2.0**30},
    {key: 8.0 * one.priced_amount for key, one in known().items()},
)
STRANGE: tuple[Mapping[str, ParameterValue], ...] = ({}, {"flavor": "nobody-sells-this"})


def says_what_it_is_of(factory: Factory) -> None:
    """Its unit stands beside every figure."""
    unit = factory().unit
    assert isinstance(unit, str), "its unit is no text"
    assert unit.strip(), "it has no unit"


def an_instance_has_a_cost(factory: Factory) -> None:
    """A finite amount from 0 on, the same each time, or a sentence where there is no price."""
    cost = factory()
    for resources in (*SIZES, *STRANGE):
        amounts = [_amount(cost, resources) for _ in range(2)]
        assert amounts[0] == amounts[1], f"{dict(resources)} costs {amounts[0]}, then {amounts[1]}"
        if amounts[0] is not None:
            assert math.isfinite(amounts[0]), f"{dict(resources)} costs {amounts[0]}"
            assert amounts[0] >= 0.0, f"{dict(resources)} costs {amounts[0]}, which is below 0"


def _amount(cost: Cost, resources: Mapping[str, ParameterValue]) -> float | None:
    try:
        return float(cost.of_instance("function", resources))
    except WorkbenchError:
        return None


CHECKS: Mapping[str, Check] = {
    check.__name__: check for check in (says_what_it_is_of, an_instance_has_a_cost)
}
OPTIONAL = frozenset[str]()
