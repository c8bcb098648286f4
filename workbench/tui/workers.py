"""Work that goes on beside the drawing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol


class Worker(Protocol):
    """An application, a screen or a widget: its work ends with it."""

    def run_worker(
        self, work: Any, *, group: str = ..., exit_on_error: bool = ..., exclusive: bool = ...
    ) -> object: ...


def begin(
    worker: Worker,
    work: Callable[[], Awaitable[None]],
    *,
    group: str = "default",
    exclusive: bool = False,
    exit_on_error: bool = True,
) -> None:
    """Do ``work`` in the background; with ``exclusive`` it replaces what its ``group`` is doing.

    It is called when its turn comes and not before: work that is replaced until then has made no
    coroutine that nobody awaits.
    """
    worker.run_worker(work, group=group, exclusive=exclusive, exit_on_error=exit_on_error)
