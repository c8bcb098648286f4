"""A document as YAML: what `document.read_document` reads back is what was written.

Written by hand rather than by ruamel: descriptors are read by people, who expect
`{vnf: haproxy, name: vcpu, values: [25%, 50%]}` on one line and an empty line between the parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode

WIDTH = 100
"""Columns up to which a list or a mapping stands on one line."""
MOST_KEYS = 3
"""Of a mapping that stands on one line below its key; as an item of a list it may have more."""
_HEAD = ("kind", "summary")
"""Keys after which no empty line stands."""
_PLAIN = re.compile(r"[A-Za-z0-9_./$<=][A-Za-z0-9_./$<>=%+@() -]*")
"""Texts that need no quotes wherever they stand; those with a meaning of their own are quoted."""
_PLAIN_IN_BLOCK = re.compile(r"[A-Za-z0-9_./$<=][A-Za-z0-9_./$<>=%+@(), ;'-]*")
_TEXT_TAG = "tag:yaml.org,2002:str"
_RESOLVER = YAML(typ="safe", pure=True).resolver
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def written(document: Mapping[str, Any]) -> str:
    """The YAML text of a descriptor.

    Parameters
    ----------
    document : mapping
        Of texts to mappings, lists, texts, whole and other numbers, truth values and None. Texts
        hold no control characters but line feeds and tabs, or the reader refuses them.

    Raises
    ------
    TypeError
        For a value of any other kind, with the kind.
    """
    if not document:
        return "{}\n"
    parts = [list(_entry(key, value, 0)) for key, value in document.items()]
    lines: list[str] = []
    before = ""
    for key, part in zip(document, parts, strict=True):
        if before and (len(part) > 1 or before == "many") and key not in _HEAD:
            lines.append("")
        lines += part
        before = "many" if len(part) > 1 else "one"
    return "\n".join(lines) + "\n"


def _entry(key: Any, value: Any, depth: int) -> Iterator[str]:
    """Lines of one key of a mapping."""
    head = "  " * depth + _key(key) + ":"
    yield from _placed(head, value, depth)


def _placed(head: str, value: Any, depth: int) -> Iterator[str]:
    """What follows `head`: on its line where it fits, else on lines of its own below it."""
    if not isinstance(value, dict | list):
        yield f"{head} {_scalar(value, in_flow=False)}"
        return
    few = isinstance(value, list) or len(value) <= MOST_KEYS
    if not value or (few and _fits(head, value)):
        yield f"{head} {_flow(value)}"
    elif isinstance(value, dict):
        yield head
        for key, below in value.items():
            yield from _entry(key, below, depth + 1)
    else:
        yield head
        for item in value:
            yield from _item(item, depth + 1)


def _item(value: Any, depth: int) -> Iterator[str]:
    """Lines of one item of a list, from its dash on; a target has lines of its own."""
    dash = "  " * depth + "-"
    stands_out = isinstance(value, dict) and (depth == 1 or len(value) == 1)
    if not value or not isinstance(value, dict | list) or (not stands_out and _fits(dash, value)):
        yield f"{dash} {_flow(value)}"
    elif isinstance(value, dict):
        first, *rest = [line for k, v in value.items() for line in _entry(k, v, depth + 1)]
        yield f"{dash} {first.lstrip(' ')}"
        yield from rest
    else:
        yield dash
        for item in value:
            yield from _item(item, depth + 1)


def _fits(head: str, value: dict[str, Any] | list[Any]) -> bool:
    """Whether people write it on the line that `head` begins: it is short and holds no structure.

    A mapping may hold lists, as in `{name: vcpu, values: [25%, 50%]}`.
    """
    below = list(value.values()) if isinstance(value, dict) else value
    if isinstance(value, dict):
        below = [
            item for given in below for item in (given if isinstance(given, list) else [given])
        ]
    flat = not any(isinstance(item, dict | list) for item in below)
    return flat and len(head) + 1 + len(_flow(value)) <= WIDTH


def _flow(value: Any) -> str:
    """A value on one line, in brackets where it holds others."""
    if isinstance(value, dict):
        inside = (f"{_key(key)}: {_flow(below)}" for key, below in value.items())
        return "{" + ", ".join(inside) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value, in_flow=True)


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key is {type(key).__name__}, must be text")
    return _scalar(key, in_flow=True)


def _scalar(value: Any, *, in_flow: bool) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if not isinstance(value, str):
        raise TypeError(f"a value is {type(value).__name__}, which YAML files here do not hold")
    pattern = _PLAIN if in_flow else _PLAIN_IN_BLOCK
    plain = pattern.fullmatch(value) and not value.endswith(" ") and not value.startswith("...")
    if plain and _is_text(value):
        return value
    return '"' + "".join(map(_escaped, value)) + '"'


def _is_text(value: str) -> bool:
    """Whether YAML takes these characters for text when they stand without quotes."""
    return str(_RESOLVER.resolve(ScalarNode, value, (True, False))) == _TEXT_TAG


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
