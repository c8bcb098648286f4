"""The one JSON codec: for the link, for `--json`, for events and samples in the session file.

A message is a JSON object that names its class in `type`; an event is flat, with its class in
`event`, so that a line of `workbench run --json` can be read without knowing the envelope.
Numbers that JSON cannot say (NaN, infinity) are refused rather than turned into null.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

import msgspec

from workbench.domain import messages
from workbench.domain.errors import BY_NAME, DescriptorError, WorkbenchError
from workbench.domain.events import Event, Fact, Tick

T = TypeVar("T")

_FACTS: Mapping[str, type[Any]] = {kind.__name__: kind for kind in get_args(Fact)}
_REPLIES = (reply for kind in messages.REQUESTS for reply in get_args(kind.reply) or (kind.reply,))
_MESSAGES: Mapping[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *messages.REQUESTS,
        *_REPLIES,
        messages.Failed,
        messages.Hello,
        *get_args(Tick),
    )
}
_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
"""What a decoder raises for bytes of any kind, be it that brackets are nested too deep."""
_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}
_building = threading.Lock()
"""msgspec looks into a class when it first meets it, and keeps what it found with the class before
that is complete: two threads that do so at the same time end the process."""


class _Head(msgspec.Struct):
    """What stands around a fact."""

    seq: int
    event: str
    at: float
    session: str


class _Named(msgspec.Struct):
    """What every message has."""

    type: str


class _Page(msgspec.Struct):
    """A page of events, which are not read yet."""

    events: list[msgspec.Raw]
    last_seq: int


_EVENT = msgspec.json.Decoder(_Head)
_MESSAGE = msgspec.json.Decoder(_Named)


def to_plain(value: Any) -> Any:
    """A domain value as dicts, lists, numbers and text."""
    return msgspec.to_builtins(value)


def from_plain(value: Any, kind: type[T], *, from_text: bool = False) -> T:
    """The inverse of `to_plain`; `from_text`: figures may be texts, as in an address.

    Raises `WorkbenchError` naming the field that does not fit.
    """
    _decoder_of(kind)
    try:
        return msgspec.convert(value, kind, strict=not from_text)
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


def event_of(text: bytes | str) -> Event:
    """An event from its line. Raises `WorkbenchError` for anything else."""
    try:
        head = _EVENT.decode(text)
    except _UNREADABLE as error:
        raise WorkbenchError(f"not an event: {error}") from None
    return Event(head.seq, head.at, head.session, fact_of(head.event, text))


def fact_of(name: str, text: bytes | str) -> Fact:
    """A fact of that class from its fields as JSON; whatever else stands there is ignored.

    Raises `WorkbenchError` where there is no such class, or the text does not fit it.
    """
    kind = _FACTS.get(name)
    if kind is None:
        raise WorkbenchError(f"no event is called {name!r}")
    fact: Fact = _decoded(text, kind)
    return fact


def message_to_plain(message: object) -> dict[str, Any]:
    plain = {"type": type(message).__name__, **to_plain(message)}
    if isinstance(message, messages.EventPage):
        plain["events"] = [event_to_plain(event) for event in message.events]
    return plain


def message_of(text: bytes | str) -> Any:
    """A message of the class that its JSON names. Raises `WorkbenchError` for anything else."""
    try:
        name = _MESSAGE.decode(text).type
    except _UNREADABLE as error:
        raise WorkbenchError(f"not a message: {error}") from None
    kind = _MESSAGES.get(name)
    if kind is None:
        raise WorkbenchError(f"no message is called {name!r}")
    if kind is messages.EventPage:
        page = _decoded(text, _Page)
        return messages.EventPage(tuple(map(event_of, page.events)), page.last_seq)
    return _decoded(text, kind)


def dumps(plain: Any) -> bytes:
    """One line of JSON, without a line feed."""
    _refuse_unsayable(plain)
    return msgspec.json.encode(plain)


def loads(line: bytes | str) -> Any:
    try:
        return msgspec.json.decode(line)
    except _UNREADABLE as error:
        raise WorkbenchError(f"not JSON: {error}") from None


def _decoder_of(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    """The decoder of a class, which msgspec has looked into from then on."""
    decoder = _decoders.get(kind)
    if decoder is None:
        with _building:
            decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    return decoder


def _decoded(text: bytes | str, kind: type[T]) -> T:
    try:
        decoded: T = _decoder_of(kind).decode(text)
    except _UNREADABLE as error:
        raise WorkbenchError(f"not a {kind.__name__}: {error}") from None
    return decoded


def failed(error: WorkbenchError) -> messages.Failed:
    """An error as a reply; of a class that stays on one side its next base that crosses."""
    mistakes = error.mistakes if isinstance(error, DescriptorError) else ()
    kinds = (kind.__name__ for kind in type(error).__mro__)
    name = next(kind for kind in kinds if kind in BY_NAME or kind == DescriptorError.__name__)
    return messages.Failed(name, error.what, error.where, error.remedy, mistakes)


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
    "dumps",
    "error_of",
    "event_of",
    "event_to_plain",
    "fact_of",
    "failed",
    "from_plain",
    "loads",
    "message_of",
    "message_to_plain",
    "to_plain",
]
