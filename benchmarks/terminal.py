"""A real screen in a terminal of ours, for the benchmarks that look at it from outside."""

from __future__ import annotations

import os
import pty
import select
import signal
import termios
import time
from pathlib import Path

from run import COMMAND, LONGEST_S, Sandbox

COLUMNS, ROWS = 120, 40


class Terminal:
    """A workbench in a pty of ours, at 120x40."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            termios.tcsetwinsize(0, (ROWS, COLUMNS))
            os.execve(COMMAND, [str(COMMAND)], sandbox.environment)
        # A later screen would keep this one's terminal open.
        os.set_inheritable(self._terminal, False)
        self._seen = b""

    def open_running(self) -> None:
        """From the list of sessions to the one that is being measured."""
        self.until("running")
        self.press("\r")
        self.until("RUNNING")

    def fileno(self) -> int:
        """For `select`."""
        return self._terminal

    def until(self, words: str) -> None:
        """Read on until the screen writes these words. Raises `SystemExit` if it never does."""
        deadline = time.perf_counter() + LONGEST_S
        while words.encode() not in self._seen:
            left = deadline - time.perf_counter()
            if left <= 0 or not select.select([self._terminal], [], [], left)[0]:
                raise SystemExit(f"never came: {words!r} in {self._seen[-3000:]!r}")
            self._seen += os.read(self._terminal, 1 << 16)
        self._seen = b""

    def text(self, seconds: float) -> str:
        """What it writes in so long."""
        end, seen = time.perf_counter() + seconds, b""
        while (left := end - time.perf_counter()) > 0:
            if select.select([self._terminal], [], [], left)[0]:
                seen += os.read(self._terminal, 1 << 16)
        return seen.decode(errors="replace")

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def drain(self, seconds: float) -> None:
        """Let it come to rest."""
        self.text(seconds)
        self._seen = b""

    def memory_mb(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024 / 1e6

    def close(self) -> None:
        os.kill(self.pid, signal.SIGTERM)
        os.close(self._terminal)
        os.waitpid(self.pid, 0)

    def cpu_s(self) -> float:
        """CPU time of its process so far."""
        return cpu_s(self.pid)


def cpu_s(pid: int) -> float:
    """CPU time of a process so far, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
