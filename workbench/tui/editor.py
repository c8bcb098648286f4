"""A text in the user's own editor, which has the terminal until it ends."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from textual.app import App, SuspendNotSupported

from workbench.domain.errors import UsageError

FALLBACK = "vi"


def command() -> list[str]:
    """Program and arguments: `VISUAL`, else `EDITOR`, else vi. Raises `UsageError`."""
    said = os.environ.get("VISUAL") or os.environ.get("EDITOR") or FALLBACK
    try:
        return shlex.split(said) or [FALLBACK]
    except ValueError:
        raise UsageError(
            f"$EDITOR is {said!r}, which is no command", remedy="Set it to a program's name"
        ) from None


def edited(app: App[object], text: str, name: str) -> str:
    """The text as the user left it. Raises `UsageError` where no editor could be had.

    It blocks: while the editor has the terminal nothing may be drawn, and nothing is.
    """
    with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
        path = Path(folder, f"{name}.yaml")
        path.write_text(text, encoding="utf-8")
        program = command()
        try:
            with app.suspend():
                code = subprocess.run([*program, str(path)], check=False).returncode
        except SuspendNotSupported:
            raise UsageError("no editor can be opened from this terminal") from None
        except OSError as error:
            raise UsageError(
                f"{program[0]!r} cannot be started: {error.strerror}",
                remedy="Set $EDITOR to an editor that is installed",
            ) from None
        if code != 0:
            raise UsageError(f"{program[0]!r} ended with code {code}: nothing was changed")
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"what the editor left cannot be read: {error}") from None
