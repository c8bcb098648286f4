"""The command palette: the actions that the screen offers now, with area and key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider

from workbench.tui.actions import Action
from workbench.tui.screens.base import WorkbenchScreen


class ActionProvider(Provider):
    """Searches the registry; what cannot be done now is not offered."""

    def _actions(self) -> Iterator[Action]:
        if isinstance(self.screen, WorkbenchScreen):
            yield from (a for a in self.screen.offered() if a.handler != "palette")

    def _run(self, action: Action) -> Callable[[], Awaitable[bool]]:
        node = self.app if action.place == "anywhere" else self.screen
        return partial(self.app.run_action, action.handler, default_namespace=node)

    async def discover(self) -> Hits:
        for action in self._actions():
            yield DiscoveryHit(_title(action), self._run(action), help=action.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action in self._actions():
            score = matcher.match(f"{_title(action)} {action.help}")
            if score > 0:
                yield Hit(
                    score, matcher.highlight(_title(action)), self._run(action), help=action.help
                )


def _title(action: Action) -> str:
    return f"{action.area}: {action.label.lower()} ({action.first_key})"
