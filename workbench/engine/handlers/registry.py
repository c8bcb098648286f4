"""The one table of who answers which request, and what has to be known of a request before that.

`tests/engine/test_handlers.py` holds that every request has one handler, which returns its reply.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from workbench.domain.errors import EngineError
from workbench.domain.messages import Command, EngineStatus, Hello, Request
from workbench.engine.answers.jobs import Jobs
from workbench.engine.control_locks import ControlLocks
from workbench.engine.function_watching import ReportedWatches
from workbench.engine.learning.scoring import Say
from workbench.engine.runs.queue import Queue
from workbench.engine.sessions.fleet_sessions import FleetSessions
from workbench.engine.sessions.library import Library
from workbench.paths import Workspace

if TYPE_CHECKING:  # its imports take longer than a command that only asks
    from workbench.engine.drafts import Drafts

Q = TypeVar("Q", bound=Request[Any])
R = TypeVar("R")

Turn = Literal["", "at hand", "page"]
"""When one connection's request is answered: as one of the few that cost something; at once; or,
since its reply is long, when the client has taken the last long one."""


@dataclass(frozen=True)
class Services:
    """What handlers use of an engine.

    Attributes
    ----------
    status : how it stands.
    reap : removes strays of dead sessions; returns their names.
    end : has it end, once its runs are interrupted.
    """

    library: Library
    queue: Queue
    jobs: Jobs
    workspace: Workspace
    control_locks: ControlLocks
    fleets: FleetSessions
    watches: ReportedWatches
    status: Callable[[], EngineStatus]
    reap: Callable[[], Awaitable[tuple[str, ...]]]
    end: Callable[[], None]

    @cached_property
    def drafts(self) -> Drafts:
        from workbench.engine.drafts import Drafts

        return Drafts(self.workspace)


@dataclass(frozen=True)
class Asker:
    """Who asks; `say` tells those who wait what is computed."""

    who: Hello
    say: Say = lambda _: None

    @property
    def stores(self) -> bool:
        """Whether what is found for them is kept: nothing is for an observer."""
        return self.who.role != "observer"


@dataclass(frozen=True)
class RequestHandler:
    """Who answers one kind of request.

    Attributes
    ----------
    changes : refused to observers, written to the audit log, and carried out though nobody waits.
    of_the_host : only for those who have an account on this host.
    job : computed, with progress; the last and longest piece of its work, as the worker knows it,
        or empty. None: answered at once.
    """

    answer: Callable[[Services, Any, Asker], Coroutine[Any, Any, Any]]
    changes: bool
    of_the_host: bool = False
    turn: Turn = ""
    job: str | None = None
    measures: Callable[[Any], bool] | None = None
    """Whether the lab is asked for it, which goes on though nobody waits; None: `changes` says."""

    def goes_on(self, request: Request[Any]) -> bool:
        """Whether it is carried out though nobody waits: somebody will look for what it leaves."""
        return self.changes if self.measures is None else self.measures(request)


class Handlers:
    """Handlers by the class of the request."""

    def __init__(self, *others: Handlers) -> None:
        self.by_kind: dict[type[Request[Any]], RequestHandler] = {}
        for other in others:
            self.by_kind |= other.by_kind

    def __call__(
        self,
        kind: type[Q],
        *,
        changes: bool = False,
        of_the_host: bool = False,
        turn: Turn = "",
        job: str | None = None,
        measures: Callable[[Any], bool] | None = None,
    ) -> Callable[
        [Callable[[Services, Q, Asker], Coroutine[Any, Any, R]]],
        Callable[[Services, Q, Asker], Coroutine[Any, Any, R]],
    ]:
        """Decorates the handler of a kind. Every command changes something."""
        changes = changes or issubclass(kind, Command)

        def add(
            answer: Callable[[Services, Q, Asker], Coroutine[Any, Any, R]],
        ) -> Callable[[Services, Q, Asker], Coroutine[Any, Any, R]]:
            self.by_kind[kind] = RequestHandler(answer, changes, of_the_host, turn, job, measures)
            return answer

        return add

    def of(self, request: Request[Any]) -> RequestHandler:
        """Raises `EngineError` for a request that nobody answers."""
        try:
            return self.by_kind[type(request)]
        except KeyError:
            raise EngineError(f"does not know the request {type(request).__name__}") from None

    async def answer(self, services: Services, request: Request[R], who: Hello) -> R:
        """The reply. Raises `WorkbenchError`."""
        handler, asker = self.of(request), Asker(who)
        if handler.job is None:
            reply: R = await handler.answer(services, request, asker)
            return reply
        with services.jobs.begun(handler.job) as say:
            reply = await handler.answer(services, request, replace(asker, say=say))
            return await services.jobs.with_assumptions(reply, request)
