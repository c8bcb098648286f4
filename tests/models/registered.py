"""Names of registered models to go through in tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

OF_OTHER_DEGREE = ("lasso1", "lasso3")
"""They are `lasso2` but for one figure."""


def once_a_kind(names: Iterable[str]) -> list[Any]:
    """All of them in `make accept`."""
    return [
        pytest.param(name, marks=pytest.mark.long) if name in OF_OTHER_DEGREE else name
        for name in names
    ]
