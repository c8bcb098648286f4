"""What a model was made with, as plain values that JSON keeps."""

from __future__ import annotations

import math
from typing import Any

from workbench.domain.profiles import Setting

IMPLIED = ("categorical", "ceiling")
"""Parameters that the table sets (`workbench.models.base`)."""


def settings_of(model: Any) -> dict[str, Setting]:
    """Plain parameters of a model and of those inside of it, without what the table implies.

    Each of its own kind: `set_params` of an unfitted model of the method makes the same one again.
    """
    offered = model.get_params(deep=True) if hasattr(model, "get_params") else {}
    return {
        str(name): value
        for name, value in sorted(offered.items())
        if name.rpartition("__")[2] not in IMPLIED
        and (value is None or isinstance(value, bool | int | float | str))
        and not (isinstance(value, float) and not math.isfinite(value))
    }
