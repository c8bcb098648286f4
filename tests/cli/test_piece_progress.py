"""How far a command is: how many pieces of how many, and about how long still."""

from __future__ import annotations

import io
import sys

import pytest

from workbench.cli.piece_progress import PieceProgress


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_in_a_pipe_a_line_comes_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with PieceProgress("points", clock) as progress:
        for done in range(60):
            clock.now = done / 2
            progress.tell(done, 60)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "2 s: 4 of 60 points, about 28 s to go"
    assert len(lines) == 14, "each two seconds"


def test_on_a_terminal_one_line_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, terminal = Clock(), Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with PieceProgress("points", clock) as progress:
        progress.tell(0, 4)
        for done in (1, 2, 3):
            clock.now = 5.0 * done
            progress.tell(done, 4)
    written = terminal.getvalue()
    assert "\r5 s: 1 of 4 points, about 15 s to go" in written
    assert "\r15 s: 3 of 4 points, about 5 s to go" in written
    assert written.endswith("\r" + " " * len("15 s: 3 of 4 points, about 5 s to go") + "\r")
    assert "\n" not in written
