"""Allocations as people write them."""

from __future__ import annotations

import pytest

from workbench.descriptors.allocation_text import parse_allocation
from workbench.domain.errors import UsageError
from workbench.domain.parameters import Parameter


def test_an_allocation_has_flavors_memory_and_what_has_but_one_value() -> None:
    known = (
        Parameter(
            "ha.flavor", ("small", "large"), "", {"small": {"vcpu": 0.5, "memory_bytes": 1e8}}
        ),
        Parameter("tiny.vcpu", (0.25, 0.5)),
        Parameter("tiny.memory_bytes", (6.4e7,)),
        Parameter("squid.vcpu", (1.0,)),
    )
    assert parse_allocation("ha=small, tiny=25%, tiny.memory=32MB", known) == {
        "ha.flavor": "small",
        "ha.vcpu": 0.5,
        "ha.memory_bytes": 1e8,
        "tiny.vcpu": 0.25,
        "tiny.memory_bytes": 3.2e7,
        "squid.vcpu": 1.0,
    }
    for wrong, sentence in (
        ("ha=tiny", "ha is 'tiny'; allowed: small, large"),
        ("ha=small, ha=large", "gives 'ha' twice"),
        ("ha", "must be FUNCTION=VALUE"),
        ("x" * 3000, "must be an allocation"),
    ):
        with pytest.raises(UsageError, match=sentence):
            parse_allocation(wrong, known)
