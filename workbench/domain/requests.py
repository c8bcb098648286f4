"""What every request is: a question or a command whose class knows the class of its reply.

A request is a frozen dataclass that derives from `Command[R]` or `Query[R]`. `R` is what a client's
`ask` returns, for the type checker and, as `reply`, at run time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, Generic, TypeVar, get_args

from workbench.domain.errors import Mistake

R = TypeVar("R", covariant=True)


class Request(Generic[R]):
    """Something that is asked of the engine; it gets one reply, an `R`, or `Failed`.

    Attributes
    ----------
    reply : class of the reply; a union where it may be one of several.
    """

    reply: ClassVar[Any]

    def __init_subclass__(cls) -> None:
        (cls.reply,) = get_args(cls.__dict__["__orig_bases__"][0])


class Command(Request[R]):
    """Changes something; observers are refused."""


class Query(Request[R]):
    """Asks without changing what is there."""


@dataclass(frozen=True)
class Done:
    """The command was carried out; `note` says what happened, as a sentence."""

    note: str = ""


@dataclass(frozen=True)
class RunAccepted:
    session: str
    queued_behind: str = ""
    """The session that holds the host's measuring lock, if any."""


@dataclass(frozen=True)
class Failed:
    """A `WorkbenchError` that crossed the link."""

    error: str
    """Class name (`errors.BY_NAME`)."""
    what: str
    where: str | None = None
    remedy: str | None = None
    mistakes: tuple[Mistake, ...] = ()


def requests_in(modules: Iterable[ModuleType]) -> tuple[type[Request[Any]], ...]:
    """The requests that modules define, in their order."""
    return tuple(
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type)
        and issubclass(kind, Request)
        and kind.__module__ == module.__name__
    )


def sessions_of(request: Any) -> tuple[str, ...]:
    """The sessions that a request is about: its own, then those whose profiles it takes."""
    of = getattr(request, "query", getattr(request, "canary", request))
    named = (getattr(of, name, None) for name in ("session", "profiles"))
    return tuple(filter(None, (*named, *getattr(of, "more_profiles", ()))))
