"""Drive `make demo` as somebody at a terminal would.

Called as `fresh_demo.py TREE TIMEOUT_S LAB -- COMMAND...`. LAB must be the one that measured, if it
is not empty. COMMAND is what every program is started by, such as `env -i PATH=...`. Prints after
how long the first picture was on the screen and the first sample in the session, and the exit code
after `q`. What came later than `PICTURE_WITHIN_S` or `SAMPLE_WITHIN_S` on a host that was quiet
when it began is told; with ON_TIME in the environment it fails. Needs nothing but Python's own
library.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

ROWS, COLUMNS = 24, 80
FULL_SCREEN = b"\x1b[?1049h"
PICTURE_BYTES = 2000
"""What a first picture takes at least; an empty screen takes less."""
PICTURE_WITHIN_S = 45.0
SAMPLE_WITHIN_S = 180.0
"""Seconds from the command on a quiet host."""
LOOK_EVERY_S = 2.0
LEAVING_S = 60.0


class Demo:
    """`make demo` on a terminal of its own, read until something has come of it."""

    def __init__(self, tree: str, prefix: list[str]) -> None:
        self.began = time.monotonic()
        self.load_at_most = 0.0
        self.tree = tree
        self.prefix = prefix
        self.picture_s: float | None = None
        self.sample_s: float | None = None
        self.lab = ""
        self.session = ""
        self.exit_code: int | None = None
        self._said = b""
        self._drawn: int | None = None
        self._looking: subprocess.Popen[bytes] | None = None
        self._looked = self.began
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(tree)
            os.execvp(prefix[0], [*prefix, "make", "demo"])
        size = struct.pack("HHHH", ROWS, COLUMNS, 0, 0)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.began

    def watch(self, timeout_s: float) -> None:
        """Until the first sample is there, the command has ended or the time is up."""
        while self.exit_code is None and self.sample_s is None and self.elapsed_s < timeout_s:
            self._read()
            self.load_at_most = max(self.load_at_most, os.getloadavg()[0])
            if self.picture_s is not None:
                self._look()

    def leave(self) -> None:
        """Press `q` until it ends."""
        until = time.monotonic() + LEAVING_S
        pressed = 0.0
        while self.exit_code is None and time.monotonic() < until:
            if time.monotonic() - pressed > LOOK_EVERY_S:
                pressed = time.monotonic()
                with contextlib.suppress(OSError):
                    os.write(self._terminal, b"q")
            self._read()

    def end(self) -> None:
        if self._looking is not None:
            self._looking.communicate()
        if self.exit_code is None:
            os.killpg(self._pid, signal.SIGTERM)  # a terminal's program leads a group of its own
            self.exit_code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def last_words(self) -> str:
        """What it said before a full screen, if there was one."""
        return self._said.split(FULL_SCREEN)[0].decode(errors="replace")[-2000:]

    def shown(self) -> str:
        """What `workbench show` says of the session."""
        command = [*self.prefix, ".venv/bin/workbench", "show", self.session]
        return subprocess.run(command, cwd=self.tree, capture_output=True, text=True).stdout

    def _read(self) -> None:
        ready, _, _ = select.select([self._terminal], [], [], 0.2)
        try:
            data = os.read(self._terminal, 1 << 16) if ready else b""
        except OSError:  # its other end is closed
            data = b""
        self._said += data
        if self._drawn is None and FULL_SCREEN in self._said:
            self._drawn = len(self._said.partition(FULL_SCREEN)[2])
        elif self._drawn is not None:
            self._drawn += len(data)
        if self.picture_s is None and self._drawn is not None and self._drawn > PICTURE_BYTES:
            self.picture_s = self.elapsed_s
        if not data:
            ended, status = os.waitpid(self._pid, os.WNOHANG)
            if ended:
                self.exit_code = os.waitstatus_to_exitcode(status)

    def _look(self) -> None:
        """Ask now and then what sessions there are, without waiting for the answer."""
        if self._looking is None:
            if time.monotonic() - self._looked < LOOK_EVERY_S:
                return
            self._looking = subprocess.Popen(
                [*self.prefix, ".venv/bin/workbench", "ls", "--json"],
                cwd=self.tree, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        if self._looking.poll() is None:
            return
        answer, _ = self._looking.communicate()
        self._looking, self._looked = None, time.monotonic()
        with contextlib.suppress(ValueError):
            for session in json.loads(answer):
                if session["kind"] == "session" and session["samples"]:
                    self.sample_s, self.lab = self.elapsed_s, session["lab"]
                    self.session = session["name"]


def seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.0f} s"


def verdict(demo: Demo, load: float, cores: int) -> str:
    """What was too late on a quiet host, as a sentence; empty where nothing or the host is not."""
    if load >= cores:
        return ""
    late = [
        f"the first {what} came after {seconds(after_s)}, to be there within {within_s:g} s"
        for what, after_s, within_s in (
            ("picture", demo.picture_s, PICTURE_WITHIN_S),
            ("sample", demo.sample_s, SAMPLE_WITHIN_S),
        )
        if after_s is not None and after_s > within_s
    ]
    return "; ".join(late)


def main() -> None:
    cut = sys.argv.index("--")
    tree, timeout_s, lab = sys.argv[1:cut]
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    demo = Demo(tree, sys.argv[cut + 1 :])
    try:
        demo.watch(float(timeout_s))
        demo.leave()
    finally:
        demo.end()
    print(f"first picture after {seconds(demo.picture_s)}")
    print(f"first sample after {seconds(demo.sample_s)}, lab {demo.lab or 'none'}")
    quiet = "quiet" if load < cores else "others use it, so that these figures are no verdict"
    print(f"load {load:.1f} on {cores} cores when it began, {quiet}")
    print(f"load {demo.load_at_most:.1f} at most until the first sample, this demo's own in it")
    print(f"make demo, left by q: exit code {demo.exit_code}", flush=True)
    if demo.picture_s is None or demo.sample_s is None or demo.exit_code != 0:
        sys.exit(demo.last_words() or "it said nothing")
    if lab and demo.lab != lab:
        sys.exit(f"lab {lab} was to measure; the session says:\n{demo.shown()}")
    if late := verdict(demo, load, cores):
        print(f"late: {late}", flush=True)
        if os.environ.get("ON_TIME"):
            sys.exit(1)


if __name__ == "__main__":
    main()
