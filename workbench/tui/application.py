"""What screens know of the application that shows them; `WorkbenchApp` carries it out.

It stands below the screens, so that they import no application: it makes and shows them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.events import Key
from textual.screen import Screen

from workbench.domain.messages import Request, ResumeSession, RunCampaign
from workbench.domain.sessions import SessionSummary
from workbench.link.client import Client
from workbench.tui.commands.keymap import Keymap
from workbench.tui.draft import Draft
from workbench.tui.draw_throttle import DrawThrottle
from workbench.tui.memory import Memory
from workbench.tui.messages import Level
from workbench.tui.places import Files
from workbench.tui.replaying.replay import Replay
from workbench.tui.tour import Tour
from workbench.tui.undo import Undo, Undos
from workbench.tui.watch import Watch
from workbench.tui.widgets.rows import Row
from workbench.tui.widgets.tabs import Tab


class Application(App[None]):
    """One connection to an engine, one open session, one open draft, and what is said of them."""

    files: Files
    memory: Memory
    keymap: Keymap
    undos: Undos
    said: Row
    """What stands in the line of keys for some seconds."""
    tour: Tour
    opened: Watch
    """The open session; an empty one where none is open."""
    draft: Draft
    pace: DrawThrottle
    known_sessions: tuple[SessionSummary, ...]
    """As the list of sessions knew them last."""

    # ------------------------------------------------------------------------- the engine

    @abstractmethod
    async def client(self) -> Client:
        """The client, once the engine answers. Raises what connecting raised."""

    @abstractmethod
    def reconnect(self) -> None:
        """Forget the connection; the next `client` makes a new one. The open session goes on."""

    @abstractmethod
    def tell(
        self, request: Request[Any], done: str, then: Callable[[], object] | None = None
    ) -> None:
        """Send a command without holding up the keys; say what came of it."""

    @abstractmethod
    def choose_workspace(self, folder: str) -> None:
        """Leave this workspace's engine as it is, and meet that of another one."""

    # ------------------------------------------------------------------------- words

    @abstractmethod
    def say(self, message: str, level: Level = "information", *, undo: Undo | None = None) -> None:
        """What happened, in one line over that of the keys, and the key that takes it back."""

    @abstractmethod
    def say_shortly(self, message: str) -> None:
        """Gone soon and kept nowhere: where keys go fast, and the screen shows it anyway."""

    @abstractmethod
    def copy_out(self, what: str, text: str) -> None:
        """To the clipboard of the user's own terminal."""

    @abstractmethod
    def key(self, id: str) -> str:
        """The first key of an action, as people write it."""

    # ------------------------------------------------------------------------- screens

    @abstractmethod
    def type_again(self, event: Key) -> None:
        """Hand on a key as if it were typed now."""

    @property
    @abstractmethod
    def full_screen(self) -> Screen[Any] | None:
        """The full screen that is shown, whatever dialog lies over it."""

    @property
    @abstractmethod
    def theme_name(self) -> str:
        """By the name that a user knows."""

    @abstractmethod
    def use_theme(self, name: str) -> None:
        """Draw by the theme of that name from now on."""

    @abstractmethod
    def go(self, name: str) -> None:
        """Show a screen; it finds everything as it was left."""

    @abstractmethod
    def can_go(self, name: str) -> bool:
        """Whether it is another screen than this one, and there is what it shows."""

    @abstractmethod
    def tabs(self) -> tuple[Tab, ...]:
        """One for each screen of the catalogue, as it is now."""

    @abstractmethod
    def open_session(
        self,
        session: str = "",
        *,
        command: RunCampaign | ResumeSession | None = None,
        replay: Replay | None = None,
        screen: str = "live",
    ) -> None:
        """Show a session, live or replayed, or the one that `command` will make."""

    @abstractmethod
    def close_session(self) -> None:
        """Forget the open session and its screens; the run goes on."""

    @abstractmethod
    def know(self, sessions: tuple[SessionSummary, ...]) -> None:
        """What the engine lists now."""
