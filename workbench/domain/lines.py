"""The lines that cross the socket: one JSON object each (docs/link.md).

===============================================  =========================================
line                                             from, meaning
===============================================  =========================================
`{"hello": {...}}`                               both, first
`{"id": 7, "request": {...}}`                    client
`{"id": 7, "reply": {...}}`                      engine; `id` 0: about the connection itself
`{"feed": 7, "session": "s", "event": {...}}`    engine; 7 is the `Subscribe` request's id
`{"feed": 7, "session": "s", "tick": {...}}`     engine
`{"feed": 7, "session": "s", "end": null}`       engine; no more changes will come; in place of
                                                 null a `Failed` that says why
`{"share": 0.005}`                               engine; what part of a core who draws may use for
                                                 it from now on; null: all it likes
===============================================  =========================================
"""

from __future__ import annotations

from typing import Any

import msgspec

from workbench.domain import codec
from workbench.domain.errors import EngineError, WorkbenchError
from workbench.domain.messages import PROTOCOL_VERSION, Hello, Request

REQUEST_LIMIT = 1 << 20
"""Bytes of the longest line that an engine reads."""
REPLY_LIMIT = 1 << 28
"""Bytes of the longest line that a client reads: a snapshot of a long session is one line."""


NOTHING = msgspec.Raw(b"")


def line(plain: dict[str, Any]) -> bytes:
    return codec.dumps(plain) + b"\n"


class Said(msgspec.Struct):
    """A line of an engine after its hello, read as far as is needed to know whom it is for.

    What it is about stays JSON (`codec.event_of`, `codec.message_of`), empty where it is not said.
    """

    share: float | msgspec.UnsetType | None = msgspec.UNSET
    id: int = 0
    reply: msgspec.Raw = NOTHING
    feed: int = 0
    event: msgspec.Raw = NOTHING
    tick: msgspec.Raw = NOTHING
    end: msgspec.Raw = NOTHING


_SAID = msgspec.json.Decoder(Said)


def said(text: bytes) -> Said:
    """A line of an engine. Raises `WorkbenchError` for anything else."""
    try:
        return _SAID.decode(text)
    except msgspec.DecodeError as error:
        raise WorkbenchError(f"not a line of an engine: {error}") from None


class _Asked(msgspec.Struct):
    """A line of a client after its hello; what it asks stays JSON."""

    id: int
    request: msgspec.Raw


_ASKED = msgspec.json.Decoder(_Asked)


def request_of(text: bytes) -> tuple[int, Request[Any]]:
    """Number and request of a client's line. Raises `EngineError` for anything else."""
    try:
        asked = _ASKED.decode(text)
        request = codec.message_of(asked.request)
    except Exception as error:  # noqa: BLE001 - whatever a stranger sends, the answer is one sentence
        raise EngineError(f"a line is not a request: {error}", remedy="See docs/link.md") from None
    if not isinstance(request, Request):
        raise EngineError(f"{type(request).__name__} is not a request", remedy="See docs/link.md")
    return asked.id, request


def hello_line(hello: Hello) -> bytes:
    return line({"hello": codec.to_plain(hello)})


def hello_of(text: bytes) -> Hello:
    """The hello in a peer's first line. Raises `EngineError` if it is none."""
    try:
        plain = codec.loads(text)
        return codec.from_plain(plain["hello"], Hello)
    except Exception as error:  # noqa: BLE001 - whatever a stranger sends, the answer is one sentence
        raise EngineError(
            f"the first line is not a hello: {error}",
            remedy="Talk to an engine with `workbench`, or see docs/link.md",
        ) from None


def refuse_other_protocol(engine: Hello, client: Hello) -> None:
    """Raises `EngineError` naming both versions where they differ."""
    if engine.protocol == client.protocol:
        return
    raise EngineError(
        f"the engine speaks protocol {engine.protocol} (workbench {engine.version}), "
        f"the client protocol {client.protocol} (workbench {client.version})",
        remedy="Use the same version on both sides; `workbench engine stop` ends an old engine",
    )


__all__ = [
    "PROTOCOL_VERSION",
    "REPLY_LIMIT",
    "REQUEST_LIMIT",
    "Said",
    "hello_line",
    "hello_of",
    "line",
    "refuse_other_protocol",
    "request_of",
    "said",
]
