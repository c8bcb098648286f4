"""The factor between two hosts as commands tell it, read back."""

from __future__ import annotations

import re

from workbench.domain import kpis


def interval_told(text: str, host: str, figure: str) -> tuple[float, float] | None:
    """The 95 % interval of a host's factor over the first in a figure (a KPI's name); None where
    the text does not tell it."""
    short = re.escape(kpis.of(figure).short)
    found = re.search(
        rf"\b{short} of {re.escape(host)} is [\d.]+ times as \w+ \(([\d.]+) to ([\d.]+)\)", text
    )
    return (float(found[1]), float(found[2])) if found else None
