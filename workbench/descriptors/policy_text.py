"""A chain policy as text: `firewall > router & (snort | suricata)`; what it means is in `policies`.

Paper E names the operators and not how they bind: here `>` binds tightest, then `&`, then `|`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from workbench.descriptors.units import shown
from workbench.domain.errors import DescriptorError, Mistake

LONGEST = 1000
DEEPEST = 20
Operator = Literal["|", "&", ">"]
_BINDING: tuple[Operator, ...] = ("|", "&", ">")
"""From the loosest to the tightest."""
_TOKEN = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?|[|&>()])")
_EXAMPLE = "firewall > router & (snort | suricata)"


@dataclass(frozen=True)
class Name:
    """A function, and where in the text it stands, from 0."""

    vnf: str
    at: int

    @property
    def names(self) -> tuple[str, ...]:
        return (self.vnf,)


@dataclass(frozen=True)
class Operation:
    """Policies that one operator joins; `places` is where it stands between them."""

    operator: Operator
    parts: tuple[Policy, ...]
    places: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Functions in the order of their first mention."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.names))


Policy = Name | Operation


def parse_policy(text: str) -> Policy:
    """The policy of a text. Raises `DescriptorError` at the first place that cannot be read."""
    if len(text) > LONGEST:
        raise refusal(text, 0, "policy", f"is longer than {LONGEST} characters")
    return _Parser(text).whole()


class _Parser:
    """By descent: one level for each operator, then names and parentheses."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._read())
        self._next = 0
        self._depth = 0

    def whole(self) -> Policy:
        policy = self._joined(0)
        word, at = self._token()
        if word == ")":
            raise self._wrong(at, "closes a parenthesis that was never opened")
        if word:
            what = f"{shown(word)} follows without an operator; put &, | or > before it"
            raise self._wrong(at, what)
        return policy

    def _read(self) -> Iterator[tuple[str, int]]:
        at, end = 0, len(self._text.rstrip())
        while at < end:
            match = _TOKEN.match(self._text, at)
            if match is None:
                at += len(self._text[at:]) - len(self._text[at:].lstrip())
                found = shown(self._text[at])
                raise self._wrong(at, f"{found} is neither a name nor one of & | > ( )")
            yield match[1], match.start(1)
            at = match.end()

    def _joined(self, level: int) -> Policy:
        if level == len(_BINDING):
            return self._atom()
        operator, parts, places = _BINDING[level], [self._joined(level + 1)], []
        while self._token()[0] == operator:
            places.append(self._token()[1])
            self._next += 1
            parts.append(self._joined(level + 1))
        return Operation(operator, tuple(parts), tuple(places)) if places else parts[0]

    def _atom(self) -> Policy:
        word, at = self._token()
        self._next += 1
        if word == "(":
            return self._within(at)
        if not word or word in "|&>)":
            before = "the text ends" if not word else f"{shown(word)} stands"
            what = f"{before} where a function's name must stand, as in {_EXAMPLE}"
            raise self._wrong(at, what)
        return Name(word, at)

    def _within(self, at: int) -> Policy:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._wrong(at, f"is nested deeper than {DEEPEST} parentheses")
        policy = self._joined(0)
        if self._token()[0] != ")":
            raise self._wrong(at, "opens a parenthesis that is never closed")
        self._next += 1
        self._depth -= 1
        return policy

    def _token(self) -> tuple[str, int]:
        """The next token and its place; an empty one at the end."""
        if self._next < len(self._tokens):
            return self._tokens[self._next]
        return "", len(self._text.rstrip())

    def _wrong(self, at: int, what: str) -> DescriptorError:
        return refusal(self._text, at, "policy", what)


def mistake_at(text: str, at: int, field: str, what: str) -> Mistake:
    before = text[:at]
    line, column = before.count("\n") + 1, at - before.rfind("\n")
    return Mistake("policy", line, column, field, what)


def refusal(text: str, at: int, field: str, what: str) -> DescriptorError:
    return DescriptorError([mistake_at(text, at, field, what)])
