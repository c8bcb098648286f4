"""Times as a user types them."""

from __future__ import annotations

import re


def seconds(text: str | None, option: str = "--budget") -> float | None:
    """`90`, `90s`, `30m`, `2h`, `1d` as seconds."""
    if text is None:
        return None
    from workbench.domain import limits
    from workbench.domain.errors import UsageError

    match = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,12})?)\s*(s|m|min|h|d)?\s*", text)
    if not match:
        raise UsageError(
            f"{text[:40]!r} is not a duration",
            where=option,
            remedy="Write it like 90s, 30m or 2h",
        )
    factor = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}[match[2] or "s"]
    found = float(match[1]) * factor
    try:
        limits.check("budget_s", found)
    except UsageError as error:
        raise UsageError(f"{text!r} {error.what}", where=option, remedy=error.remedy) from None
    return found
