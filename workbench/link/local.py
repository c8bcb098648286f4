"""A client of an engine in the same process; who wires things together hands the engine in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeVar

from workbench import __version__
from workbench.domain.events import Event, Tick
from workbench.domain.messages import PROTOCOL_VERSION, Failed, Hello, Request, Role
from workbench.domain.projection import SessionView
from workbench.link.client import Feed, reply_to

R = TypeVar("R")


class Followed(Protocol):
    """A session as it stands, and its changes from there on."""

    @property
    def view(self) -> SessionView: ...

    @property
    def changes(self) -> AsyncIterator[Event | Tick]: ...


class Handler(Protocol):
    """What an engine can do for a client in its process."""

    @property
    def share(self) -> float | None: ...

    async def handle(self, request: Request[R], who: Hello) -> R | Failed: ...

    def follow(self, session: str) -> AbstractAsyncContextManager[Followed]: ...


class LocalClient:
    """The same face as `SocketClient`, without a socket. It does not own the engine."""

    def __init__(
        self,
        engine: Handler,
        identity: str,
        role: Role = "operator",
    ) -> None:
        self._engine = engine
        self._who = Hello(PROTOCOL_VERSION, __version__, identity, role)

    @property
    def role(self) -> Role:
        return self._who.role

    @property
    def person(self) -> str:
        return self._who.identity.partition("@")[0]

    @property
    def remote(self) -> bool:
        return False

    @property
    def share(self) -> float | None:
        """What part of a core we may draw with now; None: as much as we like."""
        return self._engine.share

    async def ask(self, request: Request[R]) -> R:
        """The reply to a request. A `Failed` reply is raised as the error it stands for."""
        return reply_to(request, await self._engine.handle(request, self._who))

    @asynccontextmanager
    async def follow(self, session: str) -> AsyncIterator[Feed]:
        """Follow a session, live or finished."""
        async with self._engine.follow(session) as followed:
            yield Feed(followed.view, followed.changes)

    async def close(self) -> None:
        """Nothing is held: the engine belongs to who handed it in."""
