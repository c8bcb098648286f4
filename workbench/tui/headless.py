"""A screen without a terminal: the picture it would show, for papers, tickets and documents."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from textual.pilot import Pilot

from workbench.domain.errors import EngineError, UsageError
from workbench.link.client import Client
from workbench.tui.app import WorkbenchApp
from workbench.tui.commands.catalogue import SCREENS
from workbench.tui.plots import picture
from workbench.tui.plots.plot import ProfilePlot
from workbench.tui.screens.base import SMALLEST, WorkbenchScreen
from workbench.tui.theme import THEMES

PATIENCE_S = 60.0
SETTLE_S = 0.3
"""For what a screen asks of the engine once it is drawn, such as the scores of a model."""
COMPUTING_S = 600.0
"""For what a screen has computed, such as the comparison of a chain."""
LARGEST = (400, 200)


async def svg_of(
    connect: Callable[[], Awaitable[Client]],
    session: str,
    *,
    screen: str = "live",
    size: tuple[int, int] = (120, 36),
    theme: str = "dark",
    keys: Sequence[str] = (),
    plot: bool = False,
) -> str:
    """A screen of a session as SVG, after these keys were pressed; or its plot alone.

    Raises `UsageError` for a screen, theme or size that there is not, and what opening the session
    raises.
    """
    check(screen, theme, size)
    app = WorkbenchApp(connect, session=session, screen=screen, theme=theme)
    async with app.run_test(size=size) as pilot:
        await opened(pilot, app)
        for key in keys:
            await computed(pilot, app)
            await pilot.press(key)
        await computed(pilot, app)
        await pilot.pause(SETTLE_S)
        title = f"workbench {app.opened.session}"
        if not plot:
            return picture.of_screen(app, title)
        found = next(iter(app.screen.query(ProfilePlot)), None)
        if found is None:
            raise UsageError(f"the screen {screen!r} has no plot")
        return picture.of_widget(found, title)


def check(screen: str, theme: str, size: tuple[int, int]) -> None:
    """Raise `UsageError` for a screen, theme or size that there is not."""
    for what, given, known in (
        ("screen", screen, [entry.name for entry in SCREENS]),
        ("theme", theme, list(THEMES)),
    ):
        if given not in known:
            raise UsageError(f"there is no {what} {given!r}", remedy=f"Use {', '.join(known)}")
    if not all(low <= n <= high for low, n, high in zip(SMALLEST, size, LARGEST, strict=True)):
        raise UsageError(
            f"{size[0]}x{size[1]} is no size for a picture",
            remedy=f"Use between {SMALLEST[0]}x{SMALLEST[1]} and {LARGEST[0]}x{LARGEST[1]}",
        )


async def opened(pilot: Pilot[None], app: WorkbenchApp) -> None:
    """Wait until the session is on the screen. Raises what opening it raised."""
    watch = app.opened
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not watch.connected:
                if watch.refused is not None:
                    raise watch.refused
                if watch.lost:
                    raise EngineError(watch.lost)
                await pilot.pause(0.02)
    except TimeoutError:
        raise EngineError(f"it did not answer within {PATIENCE_S:g} s") from None


async def computed(pilot: Pilot[None], app: WorkbenchApp) -> None:
    """Wait until the screen has what it asked the engine for."""
    await pilot.pause()
    app.redraw()  # it asks for what it lacks when it is drawn
    try:
        async with asyncio.timeout(COMPUTING_S):
            while isinstance(app.screen, WorkbenchScreen) and app.screen.unanswered:
                await pilot.pause(0.1)
    except TimeoutError:
        raise EngineError(f"it has not computed this within {COMPUTING_S:g} s") from None
