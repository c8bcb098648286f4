"""Where errors end that nobody expected: one screen fails, and never the application.

Textual ends the whole application, with a trace on the terminal, for whatever is raised in a
handler, a worker, a timer or while a widget is drawn; and what raised it hears no message any more.
Here the trace goes to the log, and a screen that opens the one that failed anew takes its place.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from textual._context import active_message_pump
from textual.dom import NoScreen
from textual.message import Message
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.worker import WorkerFailed, get_current_worker

from workbench.tui.application import Application
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.screens.dialogs import MessageScreen
from workbench.tui.screens.failed import FailedScreen
from workbench.tui.styling import RememberingStylesheet
from workbench.tui.text import plain_lines

Log = Callable[[Exception], str]
"""Keeps the trace; the reply says where it is to be found, empty: it could not be written."""


class Boundary:
    """`caught` takes what nobody expected; without a log it is Textual's, as in a test."""

    def __init__(self, app: BoundedApp, log: Log | None) -> None:
        self._app, self._log = app, log
        self._failed: WeakSet[Screen[Any]] = WeakSet()
        self.fatal: Exception | None = None
        """What the application ended of."""

    def guard(self, screen: Screen[Any], draw: Callable[[], None]) -> None:
        """What fails in drawing is the screen's, whoever has it drawn."""
        try:
            draw()
        except Exception as error:  # noqa: BLE001  # whatever it is
            if not self.caught(error, screen):  # not raised: it may be a task that nobody awaits
                self._app._handle_exception(error)

    def keep(self, error: Exception) -> None:
        """The trace of what took no screen down."""
        if self._log is not None:
            self._log(error)

    @property
    def holds(self) -> bool:
        """Whether the application can go on."""
        return self._log is not None and self._app.is_running and bool(self._app.screen_stack)

    def caught(self, error: Exception, screen: Screen[Any] | None = None) -> bool:
        """Keep the trace and put the screen aside that it came from; False: it is not ours."""
        where = screen or _origin(error)
        error = error.error if isinstance(error, WorkerFailed) else error  # type: ignore[assignment]
        if self._log is None:
            return False
        if not self.holds or isinstance(where, FailedScreen):
            self.fatal = self.fatal or error
            return False
        if where is not None and (where._pruning or where._closing):
            self._log(error)  # an answer that came for a screen that is being closed
            return True
        if where in self._failed:
            return True  # it is logged already, and its widgets fail one after the other
        said = f"Unexpected {type(error).__name__}: {error}".rstrip(".: ")
        said = f"{plain_lines(said)}."
        if kept := self._log(error):  # else there is no room for it, or no right to write it
            said += f"\n\nThe whole trace is in {kept}."
        if where is not None:
            self._failed.add(where)
        self._app.call_later(self._put_aside, where, said)
        return True

    def _put_aside(self, screen: Screen[Any] | None, said: str) -> None:
        app = self._app
        stack = app.screen_stack
        if screen is None:
            app.push_screen(MessageScreen("Something failed", said))
        elif screen not in stack:  # nobody sees it: the next one is a new one
            if isinstance(screen, WorkbenchScreen) and app.forget_screen(screen):
                screen.remove()
                app.say(said, "error")
        elif isinstance(screen, WorkbenchScreen):
            if not any(isinstance(s, WorkbenchScreen) for s in stack[stack.index(screen) + 1 :]):
                self._replace(screen, said)  # else once it is seen again
            else:
                screen.failed = said
        else:
            while screen in app.screen_stack:
                app.pop_screen()
            app.push_screen(MessageScreen("Something failed", said))

    def look_below(self) -> None:
        """A screen that failed while another one lay over it is seen again."""
        screen = self._app.screen
        if isinstance(screen, WorkbenchScreen) and screen.failed:
            self._replace(screen, screen.failed)

    def _replace(self, screen: WorkbenchScreen, said: str) -> None:
        app = self._app
        while app.screen is not screen:  # dialogs of its own
            app.pop_screen()
        if not screen._result_callbacks:  # Textual gives the first screen none, and takes one
            screen._push_result_callback(screen, None)
        app.switch_screen(FailedScreen(screen.NAME, said))
        app.forget_screen(screen)


class BoundedApp(Application):
    """An application that goes on when one of its screens fails."""

    def __init__(self, log: Log | None, *, ansi_color: bool | None) -> None:
        super().__init__(ansi_color=ansi_color)
        self.stylesheet = RememberingStylesheet(variables=self.get_css_variables())
        self.boundary = Boundary(self, log)

    @abstractmethod
    def forget_screen(self, screen: WorkbenchScreen) -> bool:
        """It is made again when it is asked for next; whether it was kept."""

    async def _dispatch_message(self, message: Message) -> None:
        """Textual hands no message to whatever has failed once: not so the application."""
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            if not self.boundary.caught(error):
                raise

    async def _shutdown(self) -> None:
        """Work ends before what it draws on: an answer may come while widgets are being removed."""
        self.workers.cancel_all()
        await asyncio.sleep(0)  # each hears it, and draws for the last time
        await super()._shutdown()

    def _handle_exception(self, error: Exception) -> None:
        """Here ends in Textual what was raised in a screen, a widget, a worker or a timer."""
        if not self.boundary.caught(error):
            super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """Who runs the application says what it ended of; the trace is no sentence."""
        if self.boundary.fatal is None:
            super()._fatal_error()
        else:
            self._close_messages_no_wait()


def _origin(error: Exception) -> Screen[Any] | None:
    """The screen in which something is done now; None where it is the application's own."""
    if isinstance(error, WorkerFailed):
        node: object = get_current_worker().node
    else:
        node = active_message_pump.get(None)
    if isinstance(node, Screen | ModalScreen):
        return node
    try:
        return node.screen if isinstance(node, Widget) else None
    except NoScreen:
        return None
