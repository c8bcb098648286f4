"""The application: one connection to an engine, one open session, and the screens that share them.

Screens know it as `workbench.tui.application.Application`: what they may want from their
surroundings stands there, `client`, `tell`, `say`, `go`, `open_session`, `key`. `docs/screens.md`
shows a screen that uses them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual.events import Event, Key, Paste
from textual.screen import Screen
from textual.timer import Timer

from workbench.domain.drafts import PREFIX
from workbench.domain.errors import WorkbenchError
from workbench.domain.messages import (
    Done,
    ListSessions,
    Request,
    ResumeSession,
    RunAccepted,
    RunCampaign,
)
from workbench.domain.sessions import SessionSummary
from workbench.link.client import Client
from workbench.tui.boundary import Log
from workbench.tui.commands import keymap
from workbench.tui.commands.actions import in_places
from workbench.tui.commands.catalogue import SCREENS, entry
from workbench.tui.connection import EngineConnection
from workbench.tui.draft import Draft
from workbench.tui.draw_throttle import LEAST_S, DrawThrottle
from workbench.tui.garbage import EVERY_S, search_garbage, seldom_search_garbage
from workbench.tui.hangup import leave_surely, watch_terminal
from workbench.tui.keyboard import Keyboard
from workbench.tui.leaving import under_way
from workbench.tui.memory import Memory
from workbench.tui.messages import LOOKS, SECONDS, Level, Message, Messages
from workbench.tui.places import Files, places_text
from workbench.tui.remedies import RemedyClient
from workbench.tui.replaying.replay import Replay
from workbench.tui.screens.base import WorkbenchScreen, bind, made
from workbench.tui.screens.dialogs import HelpScreen, MessageScreen
from workbench.tui.screens.failed import FailedScreen
from workbench.tui.screens.jump import JumpScreen
from workbench.tui.screens.palette import ActionPalette, ActionProvider
from workbench.tui.screens.session import SessionScreen
from workbench.tui.screens.sessions.sessions import SessionsScreen
from workbench.tui.taking import TakingApp
from workbench.tui.text import plain, plain_lines
from workbench.tui.theme import THEMES, beginning
from workbench.tui.tour import STEPS, Tour
from workbench.tui.undo import Undo, Undos
from workbench.tui.watch import Watch
from workbench.tui.widgets.keys import KeyLine
from workbench.tui.widgets.rows import Row
from workbench.tui.widgets.tabs import Tab
from workbench.tui.workers import begin

SHORT_S = 2.0
"""How long a line stands there that repeats what the screen shows."""


class WorkbenchApp(TakingApp):
    """Paints first, connects meanwhile; closing it leaves the run as it is.

    `connect` yields a client and is called again for `reconnect`. `command` is sent once it is
    there and its session opened; `session` is opened as it is, or replayed at `replay_speed`.
    `screen` is the one shown first. `log` keeps the trace of what nobody expected and says where;
    without it such an error ends the application. `files` says where settings and pictures are,
    and what other workspaces there are; without it nothing is read or written.
    """

    TITLE = "workbench"
    CSS_PATH = Path(__file__).with_name("workbench.tcss")
    COMMANDS: ClassVar = {ActionProvider}
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self,
        connect: Callable[[], Awaitable[Client]],
        *,
        session: str | None = None,
        command: RunCampaign | ResumeSession | None = None,
        replay_speed: float | None = None,
        screen: str = "",
        theme: str = "",
        files: Files | None = None,
        log: Log | None = None,
    ) -> None:
        # Textual turns colours to greys for NO_COLOR, and to none at all where ANSI is native.
        environment = dict(os.environ)  # Textual takes NO_COLOR out of the real one
        if not environment.get("NO_COLOR"):
            os.environ.pop("NO_COLOR", None)  # Textual takes an empty one for a wish
        super().__init__(log, ansi_color=True if environment.get("NO_COLOR") else None)
        self.files = files or Files()
        self.memory = Memory(self.files.memory)
        self.keymap = keymap.load(self.files.keys)
        self.undos = Undos()
        self.messages = Messages()
        """What was said, also where its line is gone."""
        self.said: Row = ()
        """What stands in the line of keys for some seconds."""
        self._unsaying: Timer | None = None
        self.tour = Tour()
        self.opened = Watch()
        self.pace = DrawThrottle(lambda: self._connection.share)
        self.draft = Draft(self)
        self.keyboard = Keyboard(self, super().on_event)
        self.known_sessions: tuple[SessionSummary, ...] = ()
        """As the list of sessions knew them last."""
        self._connect = connect
        self._connection = EngineConnection(connect)
        self._kept: dict[str, WorkbenchScreen] = {}
        self._first: Watch | None = None
        self._first_screen = screen or "live"
        if session is not None or command is not None:
            replay = Replay(replay_speed) if replay_speed is not None else None
            self._first = Watch(session or "", command=command, replay=replay)
        self.animation_level = "none"
        for known in THEMES.values():
            self.register_theme(known)
        self.theme = THEMES[theme or beginning(environment, self.memory.theme)].name
        bind(self, in_places(["anywhere"], self.keymap.actions))

    def get_default_screen(self) -> Screen[None]:
        return SessionsScreen()

    def on_mount(self) -> None:
        first = SessionsScreen.NAME if self._first is None else self._first_screen
        if self.files.memory is not None and not self.memory.toured and first in STEPS:
            self.tour.begin(first)
        if self._first is not None:
            self._open(self._first, first)
            begin(self, self._list_sessions)
        for problem in self.keymap.problems:
            self.say(problem, "warning")
        if not self.is_headless:
            seldom_search_garbage()
            self.set_interval(EVERY_S, lambda: search_garbage(self.keyboard.quiet_s))
            loop = asyncio.get_running_loop()
            for number in (signal.SIGHUP, signal.SIGTERM):
                loop.add_signal_handler(number, leave_surely, self.exit)
            watch_terminal(lambda: loop.call_soon_threadsafe(self.exit))

    async def on_unmount(self) -> None:
        await self._connection.close()

    async def on_event(self, event: Event) -> None:
        """What is typed waits for its turn; what has had it comes back here last."""
        if isinstance(event, Key | Paste) and not self.screen_stack:
            return  # the application ends, and its screens are gone
        if isinstance(event, Key | Paste) and not event.is_forwarded:
            self.keyboard.typed(event)
        else:
            await super().on_event(event)

    def type_again(self, event: Key) -> None:
        self.keyboard.typed(Key(event.key, event.character))  # the old one has had its turn

    # ------------------------------------------------------------------------- the engine

    async def client(self) -> Client:
        """The client, once the engine answers. Raises what `connect` raised."""
        return RemedyClient(await self._connection.client(), self.key)

    def reconnect(self) -> None:
        """Forget the connection; the next `client` makes a new one. The open session goes on."""
        before, self._connection = self._connection, EngineConnection(self._connect)
        begin(self, before.close, exit_on_error=False)
        if self.opened.session or self.opened.command:
            self.opened.forget_loss()
            self._follow()

    def tell(
        self, request: Request[Any], done: str, then: Callable[[], object] | None = None
    ) -> None:
        """Send a command without holding up the keys; say what came of it."""

        async def send() -> None:
            try:
                reply = await (await self.client()).ask(request)
            except (WorkbenchError, OSError) as error:
                self.say(str(error), "error")
                return
            self.say(self._told(reply) or done)
            if then is not None:
                then()

        begin(self, send)

    def _told(self, reply: object) -> str:
        """What the engine says of a command itself; empty where that is nothing but yes."""
        if isinstance(reply, RunAccepted) and reply.queued_behind:
            if reply.session == self.opened.session:
                self.opened.queued_behind = reply.queued_behind
            return f"queued behind {reply.queued_behind}"
        return reply.note if isinstance(reply, Done) else ""

    def choose_workspace(self, folder: str) -> None:
        """Leave this workspace's engine as it is, and meet that of another one."""
        self.close_session()
        self.draft.close()
        self.draft.fresh = True
        self.undos = Undos()  # names come again there, and are others'
        self.files.choose_workspace(folder)
        self.reconnect()
        self.screen_stack[0].post_message(SessionsScreen.Elsewhere())

    # ------------------------------------------------------------------------- words

    def say_shortly(self, message: str) -> None:
        """Gone soon and kept nowhere: where keys go fast, and the screen shows it anyway."""
        self._flash(Message(plain(message), "information", time.time()), SHORT_S)

    def say(self, message: str, level: Level = "information", *, undo: Undo | None = None) -> None:
        """What happened, in one line over that of the keys, and the key that takes it back."""
        if undo is not None:
            self.undos.add(undo)
            message += f" {self.key('app.undo')} takes it back."
        self._flash(self.messages.add(message, level, time.time()), SECONDS[level])

    def _flash(self, message: Message, seconds: float) -> None:
        """One line, in place of the one before."""
        line = message.line(self.size.width - 2, self.key("app.messages"))
        self._show_said(((f" {line}", LOOKS[message.level]),))
        if self._unsaying is not None:
            self._unsaying.stop()
        self._unsaying = self.set_timer(seconds, partial(self._show_said, ()))

    def _show_said(self, said: Row) -> None:
        self.said = said
        if (screen := self.full_screen) is not None and screen.ready:
            screen.query_one(KeyLine).say(said)
        self.redraw()

    def key(self, id: str) -> str:
        """The first key of an action, as people write it."""
        return next(action.first_key for action in self.keymap.actions if action.id == id)

    def redraw(self) -> None:
        """Let the screen on top say what is so now."""
        if not self.screen_stack:
            return  # it is ending, and what was under way hears of that last
        if isinstance(self.screen, WorkbenchScreen) and self.screen.ready:
            self.boundary.guard(self.screen, self.screen.draw)

    # ------------------------------------------------------------------------- screens

    def open_session(
        self,
        session: str = "",
        *,
        command: RunCampaign | ResumeSession | None = None,
        replay: Replay | None = None,
        screen: str = "live",
    ) -> None:
        """Show a session, live or replayed, or the one that `command` will make."""
        self.close_session()
        self._open(Watch(session, command=command, replay=replay), screen)

    def know(self, sessions: tuple[SessionSummary, ...]) -> None:
        """What the engine lists now."""
        self.known_sessions = sessions
        self.opened.bundle = self._is_bundle(self.opened.session)

    async def _list_sessions(self) -> None:
        """For a session that is opened before the screen that lists them was seen."""
        with suppress(WorkbenchError, OSError):  # who follows the session hears of that
            reply = await (await self.client()).ask(ListSessions())
            self.know(reply.sessions)
            self.redraw()

    def _is_bundle(self, name: str) -> bool:
        return any(known.name == name and known.kind == "bundle" for known in self.known_sessions)

    def close_session(self) -> None:
        """Forget the open session and its screens; the run goes on."""
        self._show_sessions()
        self.workers.cancel_group(self, "watch")
        self.opened = Watch()
        for name, screen in self._kept.items():
            self.uninstall_screen(name)
            screen.remove()
        self._kept.clear()

    def go(self, name: str) -> None:
        """Show a screen; it finds everything as it was left."""
        if not self.can_go(name):
            if entry(name).of_session and not self.is_open:
                going = self.going_on
                if len(going) == 1:  # no other can be meant
                    self.open_session(going[0][0], screen=name)
                    return
                self.say(f"Open a session first: {self.key('session.open')} on its line.")
            return
        if name == SessionsScreen.NAME:
            if len(self.screen_stack) > 1:
                self._show_sessions()
            elif isinstance(self.screen, FailedScreen):
                self.switch_screen(SessionsScreen())
            return
        if (left := self.full_screen) is not None:
            left.take_along(name)
        if name not in self._kept:
            self._kept[name] = made(entry(name))
            self.install_screen(self._kept[name], name)
        if len(self.screen_stack) > 1:
            self.switch_screen(name)
        else:
            self.push_screen(name)

    @property
    def is_open(self) -> bool:
        """Whether there is a session that screens could show."""
        return bool(self.opened.session or self.opened.command)

    @property
    def going_on(self) -> tuple[tuple[str, str], ...]:
        """Name and state of the runs that go on without these screens, as far as is known."""
        return under_way(self.opened, self.known_sessions)

    def can_go(self, name: str) -> bool:
        here = self._here()
        return name != here and (self.is_open or not entry(name).of_session)

    def tabs(self) -> tuple[Tab, ...]:
        here = self._here()
        return tuple(
            Tab(
                screen.name,
                self.key(f"go.{screen.name}"),
                screen.title,
                screen.short,
                screen.name == here,
                self.is_open or not screen.of_session,
                screen.tab,
            )
            for screen in SCREENS
        )

    @property
    def full_screen(self) -> WorkbenchScreen | None:
        """The full screen that is shown, whatever dialog lies over it."""
        full = [screen for screen in self.screen_stack if isinstance(screen, WorkbenchScreen)]
        return full[-1] if full else None

    def _here(self) -> str:
        screen = self.full_screen
        return screen.NAME if screen is not None else ""

    def _open(self, watch: Watch, screen: str) -> None:
        self.opened = watch
        watch.bundle = self._is_bundle(watch.session)
        self._follow()
        self.go(screen)

    def _follow(self) -> None:
        begin(self, partial(self._see, self.opened), group="watch", exclusive=True)

    async def _see(self, watch: Watch) -> None:
        drawing = asyncio.create_task(self._keep_drawn(watch))
        try:
            await watch.follow(self.client)
        finally:
            drawing.cancel()
        self._draw_news()
        if watch.broken is not None:
            self.boundary.keep(watch.broken)
        if watch.refused is not None and watch is self.opened:
            error = watch.refused
            if watch.command is not None and watch.loss != "engine" and watch is not self._first:
                self._back_to(watch.command)
            self.push_screen(MessageScreen(error.title, plain_lines(str(error))))

    def _back_to(self, refused: RunCampaign | ResumeSession) -> None:
        """From a run that never began to where it was asked for: a form can be corrected. Not from
        what somebody does by then, which would be thrown away."""
        if not isinstance(self.screen, SessionScreen):
            return
        self.close_session()
        if isinstance(refused, RunCampaign) and refused.campaign.startswith(PREFIX):
            self.go("campaign")

    async def _keep_drawn(self, watch: Watch) -> None:
        shown = watch.live
        while True:
            await watch.until_touched(LEAST_S)
            if watch.live is shown:  # another view is what somebody waits for
                await self.pace.until_due()
                await self.keyboard.painted()
            shown = watch.live
            self.pace.drawing()
            self._draw_news()

    def _draw_news(self) -> None:
        screen = self.full_screen  # also under a dialog that stays open for long
        if isinstance(screen, SessionScreen):
            self.boundary.guard(screen, screen.draw_news)

    def forget_screen(self, screen: WorkbenchScreen) -> bool:
        """It is made again when it is asked for next; whether it was kept."""
        kept = self._kept.get(screen.NAME) is screen
        if kept:
            del self._kept[screen.NAME]
            self.uninstall_screen(screen.NAME)
        return kept

    def _show_sessions(self) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self.boundary.look_below()

    # ------------------------------------------------------------------------- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        screen = self.full_screen
        conditions: dict[str, Callable[[], bool]] = {
            # A key of a screen that has no session yet says so; `can_go` says what is offered.
            "go": lambda: str(parameters[0]) != self._here(),
            "undo": lambda: bool(self.undos),
            "messages": lambda: bool(self.messages),
            "copy": lambda: screen is not None and bool(screen.copied()[1]),
            "picture": lambda: self.files.pictures is not None,
            "plot_picture": lambda: self.files.pictures is not None and bool(self.plot_shown()),
            "tour": lambda: self._here() in STEPS,
            "end_tour": lambda: self.tour.step > 0,
        }
        if action in conditions:
            return conditions[action]()
        return super().check_action(action, parameters)

    def action_go(self, name: str) -> None:
        self.go(name)

    def action_help(self) -> None:
        if (screen := self.full_screen) is not None:
            about = f"{screen.entry.summary}.\n\n{screen.entry.about}"
            places = screen.entry.places
            actions = sorted(screen.explained(), key=lambda action: places.index(action.place))
            help = HelpScreen(screen.entry.title, about, actions, screen.legend())
            self.push_screen(help)

    def action_palette(self) -> None:
        if isinstance(self.screen, WorkbenchScreen):
            self.push_screen(ActionPalette(id="--command-palette"))

    @property
    def theme_name(self) -> str:
        """By the name that a user knows."""
        return self.theme.removeprefix("workbench-")

    def action_theme(self) -> None:
        names = list(THEMES)
        now = names.index(self.theme_name) if self.theme_name in names else 0
        self.use_theme(names[(now + 1) % len(names)])

    def use_theme(self, name: str) -> None:
        self.theme = THEMES[name].name
        self.memory.theme = name
        without = ", without its colours: NO_COLOR is set" if self.no_color else ""
        self.say(f"Theme {name}{without}.")

    def watch_theme(self, theme: str) -> None:
        self.set_class(self.no_color or theme == THEMES["mono"].name, "-mono")

    def action_undo(self) -> None:
        undo = self.undos.latest()
        if undo is None:
            return

        async def take_back() -> None:
            try:
                self.say(await undo.take_back())
            except (WorkbenchError, OSError) as error:
                self.say(f"{undo.what} cannot be taken back: {error}", "error")

        begin(self, take_back)

    def action_jump(self) -> None:
        if isinstance(self.screen, WorkbenchScreen):
            self.push_screen(JumpScreen(list(self.screen.jump_targets())), _carry_out)

    def action_messages(self) -> None:
        self.push_screen(MessageScreen("Messages", self.messages.listed))

    def action_places(self) -> None:
        async def show() -> None:
            preset = self.keymap.preset
            text = await places_text(self.client, self.files, preset, self.theme_name)
            self.push_screen(MessageScreen("Places", plain_lines(text)))

        begin(self, show)

    def action_tour(self) -> None:
        self.tour.next(self._here())
        if not self.tour.step:
            self.memory.toured = True
        self.redraw()

    def action_end_tour(self) -> None:
        self.tour.end()
        self.memory.toured = True
        self.redraw()


def _carry_out(chosen: Callable[[], object] | None) -> None:
    if chosen is not None:
        chosen()
