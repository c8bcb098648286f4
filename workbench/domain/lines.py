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

from workbench.domain import codec
from workbench.domain.errors import EngineError
from workbench.domain.messages import PROTOCOL_VERSION, Hello

REQUEST_LIMIT = 1 << 20
"""Bytes of the longest line that an engine reads."""
REPLY_LIMIT = 1 << 28
"""Bytes of the longest line that a client reads: a snapshot of a long session is one line."""


def line(plain: dict[str, Any]) -> bytes:
    return codec.dumps(plain) + b"\n"


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
    "hello_line",
    "hello_of",
    "line",
    "refuse_other_protocol",
]
