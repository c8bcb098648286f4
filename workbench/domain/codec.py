"""The one JSON codec: for the link, for `--json`, for events and samples in the session file.

A message is a JSON object that names its class in `type`; an event is flat, with its class in
`event`, so that a line of `workbench run --json` can be read without knowing the envelope.
Numbers that JSON cannot say (NaN, infinity) are refused rather than turned into null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

import msgspec

from workbench.domain import messages
from workbench.domain.errors import BY_NAME, DescriptorError, WorkbenchError
from workbench.domain.events import Event, Fact, Tick

T = TypeVar("T")

Message = messages.Request | messages.Reply | messages.Hello | Tick

_FACTS: Mapping[str, type[Any]] = {kind.__name__: kind for kind in get_args(Fact)}
_MESSAGES: Mapping[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *get_args(messages.Request),
        *get_args(messages.Reply),
        messages.Hello,
        *get_args(Tick),
    )
}
_ENVELOPE = ("seq", "at", "session", "event")


def to_plain(value: Any) -> Any:
    """A domain value as dicts, lists, numbers and text."""
    return msgspec.to_builtins(value)


def from_plain(value: Any, kind: type[T]) -> T:
    """The inverse of `to_plain`. Raises `WorkbenchError` naming the field that does not fit."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise WorkbenchError(f"not a {kind.__name__}: {error}") from None


def event_to_plain(event: Event) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "event": type(event.fact).__name__,
        "at": event.at,
        "session": event.session,
        **to_plain(event.fact),
    }


def event_from_plain(plain: Mapping[str, Any]) -> Event:
    name = plain.get("event")
    kind = _FACTS.get(str(name))
    if kind is None:
        raise WorkbenchError(f"no event is called {name!r}")
    fact = from_plain({k: v for k, v in plain.items() if k not in _ENVELOPE}, kind)
    return Event(int(plain["seq"]), float(plain["at"]), str(plain["session"]), fact)


def message_to_plain(message: Message) -> dict[str, Any]:
    plain = {"type": type(message).__name__, **to_plain(message)}
    if isinstance(message, messages.EventPage):
        plain["events"] = [event_to_plain(event) for event in message.events]
    return plain


def message_from_plain(plain: Mapping[str, Any]) -> Message:
    name = plain.get("type")
    kind = _MESSAGES.get(str(name))
    if kind is None:
        raise WorkbenchError(f"no message is called {name!r}")
    if kind is messages.EventPage:
        return messages.EventPage(
            tuple(event_from_plain(event) for event in plain["events"]), int(plain["last_seq"])
        )
    message: Message = from_plain({k: v for k, v in plain.items() if k != "type"}, kind)
    return message


def dumps(plain: Any) -> bytes:
    """One line of JSON, without a line feed."""
    _refuse_unsayable(plain)
    return msgspec.json.encode(plain)


def loads(line: bytes | str) -> Any:
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise WorkbenchError(f"not JSON: {error}") from None


def failed(error: WorkbenchError) -> messages.Failed:
    """An error as a reply."""
    mistakes = error.mistakes if isinstance(error, DescriptorError) else ()
    return messages.Failed(type(error).__name__, error.what, error.where, error.remedy, mistakes)


def error_of(reply: messages.Failed) -> WorkbenchError:
    """The error that a reply stands for."""
    if reply.mistakes:
        return DescriptorError(reply.mistakes)
    kind = BY_NAME.get(reply.error, WorkbenchError)
    return kind(reply.what, where=reply.where, remedy=reply.remedy)


def _refuse_unsayable(plain: Any) -> None:
    if isinstance(plain, float):
        if not math.isfinite(plain):
            raise ValueError(f"JSON cannot say {plain}")
    elif isinstance(plain, dict):
        for value in plain.values():
            _refuse_unsayable(value)
    elif isinstance(plain, list | tuple):
        for value in plain:
            _refuse_unsayable(value)


__all__ = [
    "Message",
    "dumps",
    "error_of",
    "event_from_plain",
    "event_to_plain",
    "failed",
    "from_plain",
    "loads",
    "message_from_plain",
    "message_to_plain",
    "to_plain",
]
