"""Facts that an answer leaves behind in a session, where the session lets it be changed."""

from __future__ import annotations

from collections.abc import Callable

from workbench.domain.errors import WorkbenchError
from workbench.domain.events import Fact
from workbench.domain.projection import SessionView
from workbench.engine.sessions.finishing import to_the_end
from workbench.engine.sessions.library import Library


async def recorded(
    library: Library, session: str, make: Callable[[SessionView], Fact | None]
) -> Fact | None:
    """Record what `make` makes of the session as it stands.

    Who is cancelled meanwhile waits for it: a file is never left half opened. Raises
    `SessionError` or `UsageError` where the session cannot be written.
    """

    async def recording() -> Fact | None:
        async with library.writing(session) as channel:
            fact = make(channel.view)
            if fact is not None:
                await channel.record(fact)
            return fact

    return await to_the_end(recording())


def not_stored(error: WorkbenchError) -> str:
    """What the error says, without a remedy that is about going on measuring."""
    return f"computed, not stored: {f'{error.where} ' if error.where else ''}{error.what}"
