"""The application: one connection to an engine, and the screens that share it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ClassVar

from textual.app import App
from textual.binding import BindingType
from textual.screen import Screen

from workbench.domain.messages import ResumeSession, RunCampaign
from workbench.link.client import Client
from workbench.tui.actions import bindings
from workbench.tui.canvas import GLYPHS
from workbench.tui.palette import ActionProvider
from workbench.tui.plot import terminal_glyphs
from workbench.tui.replay import Replay
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.screens.dialogs import HelpScreen
from workbench.tui.screens.live import LiveScreen
from workbench.tui.screens.sessions import SessionsScreen
from workbench.tui.theme import DARK, LIGHT
from workbench.tui.vanishing import watch_terminal


class WorkbenchApp(App[None]):
    """Paints first, connects meanwhile; closing it leaves the run as it is.

    `connect` yields a client and is called again for `reconnect`. `command` is sent once it is
    there and its session opened; `session` is opened as it is, or replayed at `replay_speed`.
    """

    TITLE = "workbench"
    CSS_PATH = Path(__file__).with_name("workbench.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("anywhere")]
    COMMANDS: ClassVar = {ActionProvider}
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self,
        connect: Callable[[], Awaitable[Client]],
        *,
        session: str | None = None,
        command: RunCampaign | ResumeSession | None = None,
        replay_speed: float | None = None,
    ) -> None:
        # Textual turns colours to greys for NO_COLOR, and to none at all where ANSI is native.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self._connect = connect
        self._link: asyncio.Task[Client] | None = None
        self._first: LiveScreen | None = None
        if session is not None or command is not None:
            replay = Replay(replay_speed) if replay_speed is not None else None
            self._first = LiveScreen(session or "", command=command, replay=replay)
        self.animation_level = "none"
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = DARK.name

    def get_default_screen(self) -> Screen[None]:
        return SessionsScreen()

    def on_mount(self) -> None:
        if self._first is not None:
            self.push_screen(self._first)
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGHUP, signal.SIGTERM):
                loop.add_signal_handler(number, self.exit)
            watch_terminal(lambda: loop.call_soon_threadsafe(self.exit))

    async def on_unmount(self) -> None:
        await _hang_up(self._link)

    # ------------------------------------------------------------------------- the engine

    async def client(self) -> Client:
        """The client, once the engine answers. Raises what `connect` raised."""
        if self._link is None:
            self._link = asyncio.ensure_future(self._connect())
        return await asyncio.shield(self._link)

    def reconnect(self) -> None:
        """Forget the connection; the next `client` makes a new one."""
        self.run_worker(_hang_up(self._link), exit_on_error=False)
        self._link = None

    # ------------------------------------------------------------------------- actions

    def action_help(self) -> None:
        if isinstance(self.screen, WorkbenchScreen):
            actions = self.screen.explained()
            self.push_screen(HelpScreen(actions, GLYPHS[terminal_glyphs()]))

    def action_palette(self) -> None:
        if isinstance(self.screen, WorkbenchScreen):
            self.action_command_palette()

    def action_theme(self) -> None:
        self.theme = LIGHT.name if self.theme == DARK.name else DARK.name

    def show_sessions(self) -> None:
        """Close whatever lies over the sessions."""
        while len(self.screen_stack) > 1:
            self.pop_screen()


async def _hang_up(link: asyncio.Task[Client] | None) -> None:
    if link is None:
        return
    if not link.done():
        link.cancel()
    elif not link.cancelled() and link.exception() is None:
        await link.result().close()
