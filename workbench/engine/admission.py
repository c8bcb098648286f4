"""Who may ask for what: by role, by the door that they came through, by who drives a campaign.

Everything that comes in over the link passes here first, so that no screen has to be trusted.
Role and door are said in the hello of a connection, once; for people who come over SSH or by a
browser the server says it, and the screen gets the connection afterwards (`link.fd_passing`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, TypeVar

from workbench.audit import AuditLog
from workbench.domain import codec, messages
from workbench.domain.errors import NotAllowed
from workbench.domain.limits import check_request
from workbench.domain.messages import Hello, Request
from workbench.domain.requests import sessions_of
from workbench.engine.control_locks import ControlLocks
from workbench.engine.handlers import HANDLERS

R = TypeVar("R")

FREE_TEXT: Final = frozenset(
    {"allocation", "at", "by", "document", "formula", "guards", "note", "policy", "reason"}
    | {"sample", "sla", "slas", "text", "why"}
)
"""Fields that the engine never takes for a path, so that `300/s` may stand in them."""


class Admission:
    """The rules, and the audit log of who asked.

    Attributes
    ----------
    control_locks : who drives which campaign.
    """

    def __init__(self, control_locks: ControlLocks, audit: AuditLog) -> None:
        self.control_locks = control_locks
        self._audit = audit

    def admit(self, request: Request[R], who: Hello) -> Request[R]:
        """The request as it may be carried out, in the name of who asks where it names nobody.

        Raises
        ------
        NotAllowed, UsageError
            If it may not be.
        """
        if who.role != "operator" and HANDLERS.of(request).changes:
            raise NotAllowed(
                "observers may watch, not command",
                where=who.identity,
                remedy="Ask an operator, or whoever gives out the roles",
            )
        if who.is_remote:
            self._confine(request, who)
        if getattr(request, "by", None) == "" or (who.is_remote and hasattr(request, "by")):
            asked: Any = request
            request = replace(asked, by=who.identity)
        check_request(request)
        if isinstance(request, messages.Command):
            self.control_locks.steer(request, who)
        return request

    def _confine(self, request: Request[Any], who: Hello) -> None:
        """Refuse paths, and what concerns the host, to somebody who has no account here."""
        if HANDLERS.of(request).of_the_host:
            raise NotAllowed(
                f"{type(request).__name__} is for those who have an account on this host",
                where=who.identity,
            )
        for name, text in texts(codec.to_plain(request)):
            if looks_like_a_path(text):
                raise NotAllowed(
                    "a path is not taken over SSH or from a browser",
                    where=name,
                    remedy="Give a name instead",
                )

    def settled(self, request: Request[Any], who: Hello, reply: object) -> None:
        """A request was answered: who launched a campaign drives it, commands are written down."""
        if isinstance(reply, messages.RunAccepted):
            self.control_locks.launched(reply.session, who)
        if HANDLERS.of(request).changes:
            failed = isinstance(reply, messages.Failed)
            self._write(request, who, "failed" if failed else "done", reply)
        elif isinstance(reply, messages.Failed) and reply.error == NotAllowed.__name__:
            self._write(request, who, "failed", reply)

    def _write(self, request: Request[Any], who: Hello, outcome: str, reply: object) -> None:
        why = ""
        if isinstance(reply, messages.Failed):
            why = reply.what
            outcome = "refused" if reply.error == NotAllowed.__name__ else outcome
        self._audit.write(
            "command",
            command=type(request).__name__,
            outcome=outcome,
            who=who.identity,
            role=who.role,
            door=who.details.get("door", "local"),
            address=who.details.get("address", ""),
            session=next(iter(sessions_of(request)), str(getattr(reply, "session", ""))),
            why=why,
        )


def looks_like_a_path(text: str) -> bool:
    """A name has no slash in it, and begins with neither a dot nor a tilde."""
    return "/" in text or "\\" in text or "\0" in text or text.startswith((".", "~"))


def texts(plain: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a request as JSON, with the name of the field that it stands in.

    What lies within free text, such as the document of a draft, is free text.
    """
    if isinstance(plain, str):
        yield name, plain
    elif isinstance(plain, dict):
        for key, value in plain.items():
            yield name, key
            if key not in FREE_TEXT:
                yield from texts(value, key)
    elif isinstance(plain, list | tuple):
        for value in plain:
            yield from texts(value, name)
