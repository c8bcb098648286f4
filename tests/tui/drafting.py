"""The screens of a draft on a real engine in this process: what is typed ends up in its files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fake_link import screen_text, until
from textual.pilot import Pilot

from workbench.engine.core import Engine
from workbench.link.local import LocalClient
from workbench.paths import Workspace
from workbench.tui.app import WorkbenchApp


@asynccontextmanager
async def drafting(
    folder: Path,
    size: tuple[int, int] = (80, 24),
    *,
    screen: str = "chain",
    theme: str = "dark",
    client: Callable[[LocalClient], Any] = lambda client: client,
) -> AsyncIterator[Pilot[Any]]:
    """The app on a screen that shows drafts; `client` may put something around the link."""
    engine = Engine(Workspace(folder))
    await engine.start()
    link = client(LocalClient(engine, "ann"))

    async def connect() -> Any:
        return link

    app = WorkbenchApp(connect, theme=theme)
    try:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            app.go(screen)
            await until(pilot, lambda: app.screen.drafts or app.draft.lost, "the engine's word")
            await pilot.pause()
            yield pilot
    finally:
        await engine.close()


async def settled(pilot: Pilot[Any]) -> str:
    """The engine has seen every change, and the screen shows what it said."""
    app = pilot.app
    await pilot.pause()
    await until(pilot, lambda: app.draft.settled, "the engine's word")
    await pilot.pause()
    return screen_text(app)
