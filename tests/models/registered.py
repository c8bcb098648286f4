"""Names of registered models to go through in tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

OF_OTHER_DEGREE = ("lasso1", "lasso3")
"""They are `lasso2` but for one figure."""


CHEAPER = {"trees": 20, "starts": 1, "restarts": 0, "penalties": 20}
"""Fewer of what only makes a fit better, for tests of what holds of every fit."""


def cheaper(model: Any) -> Any:
    """The same with these, where it has them."""
    own = model.get_params()
    return model.set_params(
        **{k: CHEAPER[last] for k in own if (last := k.rpartition("__")[2]) in CHEAPER}
    )


def once_a_kind(names: Iterable[str]) -> list[Any]:
    """All of them in `make accept`."""
    return [
        pytest.param(name, marks=pytest.mark.long) if name in OF_OTHER_DEGREE else name
        for name in names
    ]
