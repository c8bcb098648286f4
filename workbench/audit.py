"""The audit log of a workspace: who connected, who commanded what, who was refused.

JSON lines, one file for the engine and the SSH server, mode 0600. A line is one write in append
mode, so that both may write; JSON leaves no character in it that a terminal would obey.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import time
from contextlib import suppress
from pathlib import Path

from workbench import files

MOST_BYTES = 5_000_000
KEPT = 4
"""Older files, `audit.log.1` the latest of them."""
LONGEST_VALUE = 500
"""Characters of a value: what strangers send is not kept whole."""

log = logging.getLogger("workbench.audit")


class AuditLog:
    """Appends facts to a file; a full disk costs the lines, and is said in the log file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, what: str, **facts: str | int | float) -> None:
        """Append one line: `at` (seconds since the epoch), `what`, and the facts."""
        cut = {k: v[:LONGEST_VALUE] if isinstance(v, str) else v for k, v in facts.items()}
        line = json.dumps({"at": round(time.time(), 3), "what": what, **cut}) + "\n"
        try:
            self._append(line.encode())
        except OSError as error:
            log.error("the audit log cannot be written: %s: %s", error, line.rstrip())

    def _append(self, line: bytes) -> None:
        files.make_folder(self.path.parent)
        while True:
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                if not self._is_current(file):  # the other process has put it aside meanwhile
                    continue
                if os.fstat(file).st_size < MOST_BYTES:
                    before = os.fstat(file).st_size
                    if os.write(file, line) < len(line):
                        os.ftruncate(file, before)  # no half line that the next one is glued to
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    return
                self._put_aside()
            finally:
                os.close(file)

    def _is_current(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), self.path.stat())
        except FileNotFoundError:
            return False

    def _put_aside(self) -> None:
        for number in range(KEPT, 0, -1):
            older = self.path.with_name(f"{self.path.name}.{number - 1}")
            source = self.path if number == 1 else older
            with suppress(FileNotFoundError):
                source.replace(self.path.with_name(f"{self.path.name}.{number}"))
