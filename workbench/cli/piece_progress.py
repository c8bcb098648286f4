"""How far a command is with what it computes itself, piece by piece."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType

from workbench.cli.context import TerminalLine, say
from workbench.domain.durations import duration

QUIET_S = 2.0
"""Without a word, where there is no terminal."""
REDRAWN_S = 0.1


class PieceProgress:
    """`12 s: 14 of 60 points, about 40 s to go`, as of questions that an engine answers: on a
    terminal one line that is written over, elsewhere a line now and then."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._clock = what, clock
        self._began_s = self._told_s = clock()
        self._line = TerminalLine() if sys.stderr.isatty() else None

    def __enter__(self) -> PieceProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._line is not None:
            self._line.show("")

    def tell(self, done: int, of: int) -> None:
        """`done` of `of` pieces are computed."""
        now = self._clock()
        if now - self._told_s < (QUIET_S if self._line is None else REDRAWN_S):
            return
        self._told_s = now
        took = now - self._began_s
        words = f"{took:.0f} s: {done} of {of} {self._what}"
        left_s = took / done * (of - done) if done else 0.0
        if left_s >= 1.0:
            words += f", about {duration(left_s)} to go"
        if self._line is not None:
            self._line.show(words)
        else:
            say(words)
