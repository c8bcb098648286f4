"""A real pty with a terminal emulator on it: what a user would see, as lines of text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pexpect
import pyte
from driving import COMMAND, Workbench

PATIENCE_S = 180
"""After this the expected text is not coming; tests wait for text, never for time."""


VALUE_AT = 15
"""Columns from the start of a form's label to its value."""


def _place(label: str, line: str) -> int | None:
    """Where a form's line begins with that label, inside a dialog's frame or not."""
    found = re.match(rf"[ │›]*(?={re.escape(label)} )", line)
    return found.end() if found else None


class Terminal:
    """A command under a pty, read through a terminal emulator."""

    def __init__(
        self,
        workbench: Workbench,
        *arguments: str,
        columns: int = 80,
        rows: int = 24,
        command: str = str(COMMAND),
        **variables: str,
    ) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        environment = workbench.environment | {"TERM": "xterm-256color", **variables}
        self.process: Any = pexpect.spawn(
            command,
            list(arguments),
            env=environment,
            cwd=str(workbench.root),
            dimensions=(rows, columns),
            timeout=PATIENCE_S,
        )

    @property
    def lines(self) -> list[str]:
        # Not pyte's `display`, which asks of each character how wide it is: what a wide one covers
        # is empty.
        columns, buffer = range(self._screen.columns), self._screen.buffer
        rows = (buffer[y] for y in range(self._screen.lines))
        return ["".join([row[x].data for x in columns]).rstrip() for row in rows]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def edits(self, label: str) -> bool:
        """Whether the value beside that label has the keys: its background is unlike the others."""
        found = [
            (y, at) for y, line in enumerate(self.lines) if (at := _place(label, line)) is not None
        ]
        if not found:
            return False
        y, at = found[0]
        column = [self._screen.buffer[row][at + VALUE_AT].bg for row in range(self._screen.lines)]
        return column.count(column[y]) == 1

    def press(self, *keys: str) -> None:
        for key in keys:
            self.process.send(key)

    def resize(self, columns: int, rows: int) -> None:
        self._screen.resize(rows, columns)
        self.process.setwinsize(rows, columns)

    def until(self, *wanted: str | Callable[[str], bool]) -> str:
        """Read until the screen shows all of `wanted`; the screen's text then."""
        budget = PATIENCE_S / 0.2
        while True:
            text = self.text
            if all(w in text if isinstance(w, str) else w(text) for w in wanted):
                return text
            try:
                self._stream.feed(self.process.read_nonblocking(65536, timeout=0.2))
            except pexpect.TIMEOUT:
                budget -= 1
                assert budget > 0, f"{wanted} never came:\n{text}"
            except pexpect.EOF:
                raise AssertionError(f"ended before {wanted} came:\n{text}") from None

    def ended(self) -> int:
        """Wait until the command has ended; its exit code."""
        try:
            while True:
                self._stream.feed(self.process.read_nonblocking(65536, timeout=PATIENCE_S))
        except pexpect.EOF:
            self.process.close()
            code: int = self.process.exitstatus if self.process.exitstatus is not None else -1
            return code
