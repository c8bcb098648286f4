"""The command palette: what can be done now, with area and key; themes and sessions by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, cast

from textual.command import Command, CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from workbench.domain.counts import counted
from workbench.tui.application import Application
from workbench.tui.commands.action import Action
from workbench.tui.commands.actions import in_places
from workbench.tui.commands.catalogue import SCREENS, entry
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.shell_commands import shell_commands
from workbench.tui.text import plain
from workbench.tui.theme import SUMMARIES

BELOW = 0.1
"""What is done on another screen stands below all that is done here."""
Entry = tuple[str, str, Callable[[], Any]]
"""Title, help, and what it does."""


class ActionPalette(CommandPalette):
    """Textual's, without its errors on a page key while nothing is found, and where it is closed
    while it still looks for commands (Textual 8.2)."""

    def _action_command_list(self, action: str) -> None:
        with suppress(KeyError):  # what was found is not laid out yet
            if self.query_one(CommandList).option_count:
                super()._action_command_list(action)

    def _refresh_command_list(
        self, command_list: CommandList, commands: list[Command], clear_current: bool
    ) -> None:
        if self.query(CommandList):
            super()._refresh_command_list(command_list, commands, clear_current)


class ActionProvider(Provider):
    """Searches the registry; what cannot be done now is not offered."""

    def _entries(self) -> Iterator[Entry]:
        if not isinstance(self.screen, WorkbenchScreen):
            return
        app = cast(Application, self.app)
        for action in self.screen.offered():
            if action.method not in ("palette", "theme"):
                yield _title(action), action.help, self._run(action)
        yield from self._beyond(self.screen, app)
        for name, summary in SUMMARIES.items():
            if name != app.theme_name:
                yield f"theme: {name}", summary, partial(app.use_theme, name)
        for session in app.known_sessions:
            yield (
                f"open: {plain(session.name)}",
                f"{session.state}, {plain(session.lab)}, {counted(session.samples, 'sample')}",
                partial(app.open_session, session.name),
            )

    def _beyond(self, screen: WorkbenchScreen, app: Application) -> Iterator[Entry]:
        """Screens of a session while none is open, of the one under the cursor; and commands that
        have no screen, to be copied."""
        is_open = bool(app.opened.session)
        if not is_open and (session := screen.session_here):
            for action in screen.explained():
                of = action.id.removeprefix("go.")
                if action.method == "go" and entry(of).of_session:
                    opens = partial(app.open_session, session, screen=of)
                    yield _title(action), f"{action.help} (opens {plain(session)})", opens
        for command in shell_commands(app.opened.live.view if is_open else None):
            copied = partial(app.copy_out, "the command", command.line)
            yield f"in a terminal: {command.name}", command.help, copied

    def _run(self, action: Action) -> Callable[[], Any]:
        node = self.app if action.place == "anywhere" else self.screen
        return partial(self.app.run_action, action.handler, default_namespace=node)

    async def discover(self) -> Hits:
        for title, help, run in self._entries():
            yield DiscoveryHit(Content(title), run, text=title, help=_escaped(help))

    def _elsewhere(self) -> Iterator[Entry]:
        """What other screens do, which is gone to: it is done there by the key that stands here."""
        if not isinstance(self.screen, WorkbenchScreen):
            return
        app = cast(Application, self.app)
        seen = {action.id for action in self.screen.explained()}
        for screen in SCREENS:
            if not app.can_go(screen.name):
                continue
            for action in in_places(screen.places, app.keymap.actions):
                if action.place == screen.name and action.id not in seen:
                    seen.add(action.id)
                    where = f"on {screen.title} ({app.key(f'go.{screen.name}')})"
                    yield _title(action), f"{action.help}: {where}", partial(app.go, screen.name)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        here = ((1.0, entry) for entry in self._entries())
        elsewhere = ((BELOW, entry) for entry in self._elsewhere())
        for weight, (title, help, run) in (*here, *elsewhere):
            score = weight * matcher.match(f"{title} {help}")
            if score > 0:
                # A session may be called like markup, which `highlight` would obey.
                shown = Content(title) if "[" in title else matcher.highlight(title)
                yield Hit(score, shown, run, text=title, help=_escaped(help))


def _title(action: Action) -> str:
    return f"{action.area}: {action.label.lower()} ({action.first_key})"


def _escaped(text: str) -> str:
    return text.replace("[", "\\[")
