"""What is said where a door cannot be opened."""

from __future__ import annotations

from workbench.domain.errors import UsageError


def cannot_listen(error: OSError, host: str, port: int, remedy: str) -> UsageError:
    """To be raised; the system's own reason stands in it."""
    return UsageError(
        f"cannot listen there: {error.strerror or error}", where=f"{host}:{port}", remedy=remedy
    )
