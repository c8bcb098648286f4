"""What `docs/cli.md` says of the fields that `--json` prints."""

from __future__ import annotations

import re
from typing import Any

from driving import REPOSITORY

KEYED_BY_DATA = {"resources", "workload", "allocation", "replicas", "usage", "kpis"}
"""Fields whose keys are parameters, functions and KPIs."""


def described(printed: Any, heading: str) -> None:
    """Every field of what was printed stands in that section."""
    assert sorted(fields_of(printed) - known(heading)) == []


def known(heading: str) -> set[str]:
    """The names that a section of `docs/cli.md` tells."""
    text = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^##+ {re.escape(heading)}$(.*?)(?=^##+ |\Z)", text, re.M | re.S)
    return set(re.findall(r"`(\w+)`", section))


def fields_of(value: Any) -> set[str]:
    if isinstance(value, list):
        return {field for one in value for field in fields_of(one)}
    if not isinstance(value, dict):
        return set()
    found = set(value)
    for key, inner in value.items():
        inside = inner.values() if key in KEYED_BY_DATA and isinstance(inner, dict) else [inner]
        found |= {field for one in inside for field in fields_of(one)}
    return found
