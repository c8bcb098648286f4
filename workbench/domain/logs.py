"""What functions write to standard output and error, in bounds: a chatty one fills no session.

The text is kept as it was written, terminal sequences included; whoever draws it makes it plain.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

KEPT_LINES = 20
"""Of one component and one visit; the last ones."""
LONGEST_LINE = 300
"""Bytes kept of a line, from its start."""

Stream = Literal["stdout", "stderr"]
Level = Literal["info", "warning", "error"]

_HEAD = 120
"""Characters in which a line says its level; further on it may quote anything."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_ERROR = re.compile(r"\b(emerg|alert|crit|critical|fatal|error|err|panic)\b", re.IGNORECASE)
_WARNING = re.compile(r"\b(warn|warning)\b", re.IGNORECASE)


@dataclass(frozen=True)
class WrittenLine:
    """A line of a log.

    Attributes
    ----------
    at : seconds since the epoch on the clock of the lab's host; None where it is not known.
    cut : bytes that are left out at its end.
    """

    text: str
    stream: Stream = "stdout"
    at: float | None = None
    cut: int = 0

    @classmethod
    def decoded(
        cls, begin: bytes, length: int, stream: Stream = "stdout", at: float | None = None
    ) -> WrittenLine:
        """A line of `length` bytes, of which no more need be given than are kept.

        What is no UTF-8 becomes U+FFFD.
        """
        kept = begin[:LONGEST_LINE]
        cut = length - len(kept)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        # A character that the cut goes through is left out, not replaced.
        return cls(decoder.decode(kept, final=not cut), stream, at, cut)

    @property
    def whole(self) -> str:
        """The text, and how much of it is missing."""
        return f"{self.text}… ({self.cut} bytes more)" if self.cut else self.text

    @property
    def level(self) -> Level:
        """As the line itself says it; most programs write everything to one stream."""
        head = _COLOUR.sub("", self.text[:_HEAD])
        if _ERROR.search(head):
            return "error"
        return "warning" if _WARNING.search(head) else "info"


@dataclass(frozen=True)
class ComponentLog:
    """What a component wrote since it was last asked.

    Attributes
    ----------
    component : name of a VNF instance, `source` or `sink`.
    dropped : lines before these that were seen and are not kept.
    uncounted : there were more lines than these, which nobody counted.
    """

    component: str
    lines: tuple[WrittenLine, ...]
    dropped: int = 0
    uncounted: bool = False

    @classmethod
    def of(
        cls, component: str, lines: Iterable[WrittenLine], *, uncounted: bool = False
    ) -> ComponentLog:
        """The last of these lines, and how many were before them."""
        last: deque[WrittenLine] = deque(maxlen=KEPT_LINES)
        count = 0
        for line in lines:
            last.append(line)
            count += 1
        return cls(component, tuple(last), count - len(last), uncounted)

    @property
    def gap(self) -> str:
        """What is missing before the lines, as a sentence; empty: nothing."""
        if not (self.dropped or self.uncounted):
            return ""
        return f"({'more than ' * self.uncounted}{self.dropped} lines before are not kept)"


def quoted(text: str) -> str:
    """A line for a sentence: in quotes, and without what a terminal would obey."""
    return '"' + "".join(c if c.isprintable() else "·" for c in text.strip()) + '"'
