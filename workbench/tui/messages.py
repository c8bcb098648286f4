"""What was said to whoever sits at the screens: one line at a time, and all of it on demand.

A message stands in the line of keys, never over data, and the next one takes its place. What does
not fit the line, or was gone too soon, is read in the list of messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from workbench.tui.text import clock, plain_lines, sentence
from workbench.tui.widgets.rows import Look, fit

Level = Literal["information", "warning", "error"]
MOST = 50
"""Messages that are kept."""
SECONDS = {"information": 5.0, "warning": 8.0, "error": 12.0}
"""How long the line stands; errors take longer to read."""
LOOKS: dict[Level, Look] = {"information": "good", "warning": "warn", "error": "bad"}
SIGNS = {"information": "", "warning": "! ", "error": "× "}
"""Nothing is said by colour alone."""


@dataclass(frozen=True)
class Message:
    text: str
    level: Level
    at: float
    times: int = 1
    """How often it was said in a row."""

    def line(self, width: int, more: str) -> str:
        """In one line of that width; `more` is the key that shows the rest."""
        words = SIGNS[self.level] + " ".join(sentence(self.text.replace("\n", " ")).split())
        again = f" (× {self.times})" if self.times > 1 else ""
        if len(words) + len(again) <= width:
            return words + again
        rest = f"{again}  {more} all"
        return fit(words, max(0, width - len(rest))).rstrip() + rest


class Messages:
    """The latest ones, equal ones in a row as one."""

    def __init__(self) -> None:
        self._kept: deque[Message] = deque(maxlen=MOST)

    def add(self, text: str, level: Level, at: float) -> Message:
        text = plain_lines(text)
        last = self._kept[-1] if self._kept else None
        if last is not None and (last.text, last.level) == (text, level):
            self._kept[-1] = replace(last, at=at, times=last.times + 1)
        else:
            self._kept.append(Message(text, level, at))
        return self._kept[-1]

    def __iter__(self) -> Iterator[Message]:
        return iter(self._kept)

    def __bool__(self) -> bool:
        return bool(self._kept)

    @property
    def listed(self) -> str:
        """All of them, the latest first."""
        parts = []
        for message in reversed(self._kept):
            times = f" (× {message.times})" if message.times > 1 else ""
            parts.append(f"{clock(message.at)}  {SIGNS[message.level]}{message.text}{times}")
        return "\n\n".join(parts)
