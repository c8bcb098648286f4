"""Which cores a competitor gets; needs no engine."""

from __future__ import annotations

import pytest

from workbench.domain.errors import LabError
from workbench.domain.topology import Series, Target, Vnf
from workbench.labs.components.competing import cores_at

CHAIN = Target("two", Series((Vnf("first", "haproxy"), Vnf("second", "tinyproxy"))))
ENDS = {"source": (0,), "sink": (0,)}


def test_places_are_cores_of_functions_of_their_ends_and_of_nobody() -> None:
    pins = {**ENDS, "first": (1,), "second": (1, 2)}
    assert cores_at("function", pins, CHAIN, 4) == (1, 2)
    assert cores_at("neighbours", pins, CHAIN, 4) == (0,)
    assert cores_at("others", pins, CHAIN, 4) == (3,)


def test_a_function_that_is_pinned_nowhere_may_run_on_any_core() -> None:
    pins = {**ENDS, "first": (1,)}
    assert cores_at("function", pins, CHAIN, 4) == (0, 1, 2, 3)
    with pytest.raises(LabError, match="cores that nobody else has"):
        cores_at("others", pins, CHAIN, 4)
