"""How many, as people say it."""

from __future__ import annotations


def counted(many: int, thing: str) -> str:
    """`1 sample`, `2 samples`."""
    return f"{many} {thing}{'s' * (many != 1)}"
