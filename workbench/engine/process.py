"""The engine as a process: it owns a workspace and ends when nobody needs it any more."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from workbench.engine.core import Engine
from workbench.engine.server import Server
from workbench.engine.sessions.memory import keep_little_free
from workbench.paths import Workspace

LINGER_S = 60.0
"""Seconds without campaign and client after which an engine ends."""


@asynccontextmanager
async def serving(workspace: Workspace, *, http: str | None = None) -> AsyncIterator[Engine]:
    """An engine that owns the workspace and serves its socket for as long as the body runs."""
    engine = Engine(workspace, http=http)
    await engine.start()
    server = Server(engine)
    try:
        await server.open()
        engine.reap_in_background()
        engine.import_in_background()
        yield engine
    finally:
        # Runs are interrupted first, so that followers see how they ended before we hang up.
        await engine.interrupt_runs()
        await server.close()
        await engine.close()


async def serve(
    workspace: Workspace, *, http: str | None = None, linger_s: float = LINGER_S
) -> None:
    """Serve until told to stop, by request or signal, or until nobody has come for `linger_s`.

    A running campaign is interrupted cleanly and can be resumed.
    """
    keep_little_free()
    async with serving(workspace, http=http) as engine:
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):  # not the main thread: a test
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.add_signal_handler(number, engine.stopping.set)
        await engine.until_idle(linger_s)
