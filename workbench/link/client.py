"""The `Client` protocol: how every door talks to an engine, near or far.

Two bodies: `link.socket.SocketClient` over the engine's unix socket, and `link.local.LocalClient`
around an engine in the same process. A door cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from workbench.domain import codec
from workbench.domain.errors import EngineError
from workbench.domain.events import Event, Tick
from workbench.domain.messages import Failed, Request, Role
from workbench.domain.projection import SessionView

R = TypeVar("R")


@dataclass(frozen=True)
class Feed:
    """A session as it stands, and everything that happens to it from there on.

    `view` is folded up to `view.seq`; `changes` yields every later event exactly once and in
    order, and ticks, which may be dropped for a slow reader. It ends when the engine goes away.
    """

    view: SessionView
    changes: AsyncIterator[Event | Tick]


class Client(Protocol):
    @property
    def role(self) -> Role:
        """What the engine lets us do; it refuses the rest, whatever a screen thinks."""
        ...

    @property
    def person(self) -> str:
        """What the engine calls us when it says who drives (`events.ControlLock`)."""
        ...

    @property
    def remote(self) -> bool:
        """Whether we came through a server: the engine takes no path then, no editor is here."""
        ...

    @property
    def share(self) -> float | None:
        """What part of a core we may draw with now; None: as much as we like."""
        ...

    async def ask(self, request: Request[R]) -> R:
        """The reply to a request. A `Failed` reply is raised as the error it stands for, as is one
        that is none to this request.

        Who is cancelled while it waits has the engine compute no further for it
        (`messages.Cancel`).
        """
        ...

    def follow(self, session: str) -> AbstractAsyncContextManager[Feed]:
        """Follow a session, live or finished."""
        ...

    async def close(self) -> None: ...


def reply_to(request: Request[R], reply: Any) -> R:
    """What an engine said, as the reply to a request.

    Raises
    ------
    WorkbenchError
        That a `Failed` stands for.
    EngineError
        Where it is a reply to something else.
    """
    if isinstance(reply, Failed):
        raise codec.error_of(reply)
    if not isinstance(reply, request.reply):
        raise EngineError(
            f"the engine answered {type(request).__name__} with {type(reply).__name__}",
            remedy="Use the same version on both sides; `workbench engine stop` ends an old engine",
        )
    answer: R = reply
    return answer
