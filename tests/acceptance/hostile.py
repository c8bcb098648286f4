"""Inputs of somebody who means harm, or of a program that broke; a seed makes each again."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

PIECES = b"{}[]\",:\\\n\0\xff0189eE-+.nul%&*!|>@`'# \t<~="
NUMBERS = (0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 0.5, 1e-320, 1e308, True, False, None)
TEXTS = (
    "", " ", "-", "..", "../../etc/passwd", "/etc/passwd", "a" * 300, "\x00", "\x1b[2J", "ä\u202e",
    "nan", "inf", "-inf", "1e999", "0x10", "25%", "10kB", "300/s", "3s", "rate", "${X}", "haproxy",
    "demo-real", "p95<=50ms @ rate=600/s",
)  # fmt: skip


def mutated(said: bytes, dice: random.Random) -> bytes:
    """A few bytes changed, left out, doubled or put in, or all cut off from some place on."""
    text = bytearray(said)
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(len(text) + 1)
        piece = bytes(dice.choices(PIECES, k=dice.randint(1, 4)))
        match dice.randrange(6):
            case 0:
                text[at : at + len(piece)] = piece
            case 1:
                del text[at : at + dice.randint(1, 20)]
            case 2:
                text[at:at] = text[at : at + dice.randint(1, 40)]
            case 3:
                text[at : at + 8] = dice.randbytes(8)
            case 4 if dice.random() < 0.2:
                del text[at:]
            case _:
                text[at:at] = piece
    return bytes(text)


def tree(dice: random.Random, depth: int = 3) -> Any:
    """Any value that JSON or YAML can say."""
    kind = dice.random()
    if depth and kind < 0.2:
        return [tree(dice, depth - 1) for _ in range(dice.randrange(4))]
    if depth and kind < 0.4:
        return {dice.choice(TEXTS): tree(dice, depth - 1) for _ in range(dice.randrange(4))}
    if kind < 0.42:
        return _deep(dice.randint(10, 300))
    return dice.choice(NUMBERS if kind < 0.7 else TEXTS)


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a tree of lists and mappings."""
    yield path
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def replaced(value: Any, dice: random.Random) -> Any:
    """The tree with one of its values another, left out, or under another name."""
    root: Any = {"": _copy(value)}
    parent, key = root, ""
    for part in dice.choice(list(places(value))):
        parent, key = parent[key], part
    kind = dice.random()
    if kind < 0.15 and parent is not root:
        del parent[key]
    elif kind < 0.25 and isinstance(parent, dict):
        parent[dice.choice(TEXTS)] = parent[key]
    else:
        parent[key] = tree(dice)
    return root.get("")


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value
