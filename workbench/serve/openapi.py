"""The requests of the link as operations over HTTP, and the OpenAPI document that they make.

There is no list of operations: one is a request of the link, under its name, and its parameters,
its body and its replies are the fields of the classes. What GET may ask changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

import msgspec

from workbench.domain import codec
from workbench.domain.errors import UsageError, WorkbenchError
from workbench.domain.events import Event, Fact
from workbench.domain.messages import EventPage, Failed, Request, Subscribe

PREFIX = "/v1/"
SCHEMAS = "#/components/schemas/"
REFUSALS = {
    "400": "The request cannot be read, or asks for what cannot be.",
    "401": "There is no token with it, or one that opens nothing.",
    "403": "Not with this role, not under this name of the host, or not now.",
    "404": "There is nothing of that name.",
    "409": "Something of that name is there, or in use.",
    "413": "The body is too long.",
    "422": "What was found out is no answer to that.",
    "500": "It failed here; the log has the trace.",
    "502": "The lab, a session or a plug-in failed.",
    "503": "The engine is gone, or as much is asked at once as there is room for.",
}


@dataclass(frozen=True)
class Answerable:
    """A request of the link that is answered over HTTP.

    Attributes
    ----------
    changes : only an operator may ask for it.
    safe : it neither changes nor measures anything.
    """

    kind: type[Request[Any]]
    changes: bool
    safe: bool


@dataclass(frozen=True)
class Endpoint:
    """How one request is asked for.

    Attributes
    ----------
    method : GET has the fields in the address, POST has them as a JSON object.
    schema : JSON Schema of the request.
    """

    offer: Answerable
    method: str
    schema: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.offer.kind.__name__

    @property
    def path(self) -> str:
        return PREFIX + self.name

    def request(self, given: Mapping[str, Any]) -> Request[Any]:
        """The request of a body. Raises `UsageError` naming what does not fit."""
        return self._of(dict(given), from_text=False)

    def request_of_query(self, given: Iterable[tuple[str, str]]) -> Request[Any]:
        """The request of an address; a list is a name several times. Raises `UsageError`."""
        plain: dict[str, Any] = {}
        for name, text in given:
            field = self.schema["properties"].get(name, {})
            if field.get("type") == "array":
                plain.setdefault(name, []).append(text)
            elif name in plain:
                raise UsageError("is given twice", where=name)
            else:
                plain[name] = text
        return self._of(plain, from_text=True)

    def _of(self, plain: dict[str, Any], *, from_text: bool) -> Request[Any]:
        known = self.schema["properties"]
        if unknown := next((name for name in plain if name not in known), None):
            remedy = f"It takes {', '.join(known)}" if known else "It takes nothing"
            raise UsageError(
                "is no field of it", where=f"{self.name}.{unknown[:64]}", remedy=remedy
            )
        try:
            return codec.from_plain(plain, self.offer.kind, from_text=from_text)
        except WorkbenchError as error:
            raise UsageError(error.what) from None


def operations(offers: Iterable[Answerable]) -> tuple[Endpoint, ...]:
    """How each is asked for: by GET where it is safe and its fields are texts and figures."""
    offers = tuple(offers)
    schemas = _schemas([offer.kind for offer in offers])
    made = []
    for offer in offers:
        schema = schemas[offer.kind.__name__]
        simple = offer.safe and all(map(_is_simple, schema["properties"].values()))
        made.append(Endpoint(offer, "GET" if simple else "POST", schema))
    return tuple(made)


def document(of: Iterable[Endpoint], version: str) -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
    of = tuple(of)
    kinds: dict[type[Any], None] = {}
    for operation in of:
        kinds |= dict.fromkeys((operation.offer.kind, *_replies(operation.offer.kind)))
    kinds.pop(EventPage, None)  # msgspec has no schema of a union of classes; it is made below
    facts = get_args(Fact)
    schemas = _schemas([*kinds, *facts, Failed])
    schemas[Event.__name__] = _event([fact.__name__ for fact in facts])
    schemas[EventPage.__name__] = {
        "title": EventPage.__name__,
        "type": "object",
        "properties": {
            "events": {"type": "array", "items": {"$ref": SCHEMAS + Event.__name__}},
            "last_seq": {"type": "integer"},
        },
        "required": ["events", "last_seq"],
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "workbench",
            "version": version,
            "description": "Profiles of network functions: campaigns, sessions, samples, models, "
            "recommendations. Each operation is a request of the link (docs/link.md).",
        },
        "security": [{"token": []}],
        "paths": {operation.path: {operation.method.lower(): _said(operation)} for operation in of},
        "components": {
            "schemas": schemas,
            "responses": {
                code: {
                    "description": why,
                    "content": {"application/json": {"schema": _named(Failed)}},
                }
                for code, why in REFUSALS.items()
            },
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Of `workbench token add NAME`.",
                }
            },
        },
    }


def _said(operation: Endpoint) -> dict[str, Any]:
    """An operation as the document has it."""
    kind = operation.offer.kind
    text = " ".join(operation.schema.get("description", operation.name).split())
    refusals = {code: {"$ref": f"#/components/responses/{code}"} for code in REFUSALS}
    said: dict[str, Any] = {
        "operationId": operation.name,
        "summary": text.partition(". ")[0].rstrip("."),
        "description": f"{text}{' For operators.' if operation.offer.changes else ''}",
        "responses": {"200": _success(kind), **refusals},
    }
    fields, required = operation.schema["properties"], operation.schema.get("required", ())
    if operation.method == "GET":
        said["parameters"] = [
            {"name": name, "in": "query", "required": name in required, "schema": schema}
            for name, schema in fields.items()
        ]
        if kind is Subscribe:
            header = {"name": "Last-Event-ID", "in": "header", "schema": {"type": "integer"}}
            what = "Number of the last event that was read; without it the session's view comes"
            said["parameters"].append({**header, "description": f"{what} first."})
    else:
        content = {"application/json": {"schema": {"$ref": SCHEMAS + operation.name}}}
        said["requestBody"] = {"required": bool(required), "content": content}
    return said


def _success(kind: type[Request[Any]]) -> dict[str, Any]:
    if kind is Subscribe:
        what = "`Viewed`, then each event with its number as `id`, and figures of the moment"
        stream = {"text/event-stream": {"schema": {"type": "string"}}}
        return {"description": f"A stream of events: {what}.", "content": stream}
    replies = [_named(reply) for reply in _replies(kind)]
    schema = replies[0] if len(replies) == 1 else {"anyOf": replies}
    return {"description": "The reply.", "content": {"application/json": {"schema": schema}}}


def _named(kind: type[Any]) -> dict[str, Any]:
    """A message, which names its class in `type`."""
    name = {"properties": {"type": {"const": kind.__name__}}, "required": ["type"]}
    return {"allOf": [{"$ref": SCHEMAS + kind.__name__}, name]}


def _event(facts: list[str]) -> dict[str, Any]:
    head = {
        "type": "object",
        "properties": {
            "seq": {"type": "integer"},
            "event": {"enum": facts},
            "at": {"type": "number", "description": "Seconds since the epoch."},
            "session": {"type": "string"},
        },
        "required": ["seq", "event", "at", "session"],
    }
    by_name = [
        {
            "if": {"properties": {"event": {"const": fact}}},
            "then": {"$ref": SCHEMAS + fact},
        }
        for fact in facts
    ]
    return {"title": Event.__name__, "allOf": [head, *by_name]}


def _replies(kind: type[Request[Any]]) -> tuple[type[Any], ...]:
    return get_args(kind.reply) or (kind.reply,)


def _schemas(kinds: list[Any]) -> dict[str, Any]:
    _, found = msgspec.json.schema_components(kinds, ref_template=SCHEMAS + "{name}")
    for schema in found.values():
        if "description" in schema:
            schema["description"] = "\n".join(map(str.strip, schema["description"].splitlines()))
    return found


def _is_simple(schema: Mapping[str, Any]) -> bool:
    """Whether an address can say it: a text, a figure, one of several words, a list of texts."""
    if "anyOf" in schema:
        return all(map(_is_simple, schema["anyOf"]))
    if schema.get("type") == "array":
        return bool(schema.get("items", {}).get("type") == "string")
    return "enum" in schema or schema.get("type") in (
        *("string", "integer", "number", "boolean", "null"),
    )
