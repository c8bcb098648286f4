"""What is said where a door cannot be opened."""

from __future__ import annotations

from workbench.domain.errors import UsageError


def cannot_listen(error: OSError | UnicodeError, host: str, port: int, remedy: str) -> UsageError:
    """To be raised; the system's own reason stands in it."""
    if isinstance(error, UnicodeError):  # two dots in a row, or a part that is too long
        reason = "no host can be called so"
    else:
        reason = error.strerror or str(error)
    return UsageError(f"cannot listen there: {reason}", where=f"{host}:{port}", remedy=remedy)
