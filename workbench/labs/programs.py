"""Runs programs of this host, and says how far what takes long is."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from workbench.domain.durations import duration
from workbench.probes.child_ending import signal_child

OnLine = Callable[[str], None]


@dataclass(frozen=True)
class Listener:
    """Who hears what making an image is about."""

    step: OnLine
    """Our own sentences, such as what is built and how long that takes."""
    line: OnLine
    """What the programs say that build it; their lines may hold what is secret to a template."""


SAY_EVERY_S = 2.0


class StepProgress:
    """Says how far something is and how long it still takes, as steps of a listener.

    Parameters
    ----------
    what : such as "building oha 1.16.0".
    unit : what is counted, such as "crates".
    clock : seconds.
    """

    def __init__(
        self,
        listener: Listener,
        what: str,
        unit: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listener = listener
        self._what = what
        self._unit = unit
        self._clock = clock
        self._first: tuple[int, float] | None = None
        """Count and time of the first report: what was done before took no time of this run."""
        self._said = clock()

    def reached(self, done: int, total: int) -> None:
        """Something more is done; said where nothing was said for two seconds."""
        now = self._clock()
        if self._first is None:
            self._first = (done, now)
        if now - self._said < SAY_EVERY_S or done > total:
            return
        self._said = now
        before, since = self._first
        ahead = ""
        if done > before:
            ahead = f", about {duration((now - since) / (done - before) * (total - done))} more"
        self._listener.step(f"{self._what}: {done} of {total} {self._unit}{ahead}")


TAIL = 5
"""Lines of output that are kept to explain a failure."""

GOT, UNPACKED, SET_UP = "Get:", "Unpacking ", "Setting up "
"""How lines of apt-get and dpkg begin that a package is one step further by."""
TO_INSTALL = re.compile(r"(\d+) newly installed")


class PackageProgress:
    """Hears apt-get (`-q`) or dpkg, and says how many packages have come that far.

    Parameters
    ----------
    what : such as "making debian:bookworm-slim".
    steps : what happens to each package here, as its lines begin.
    packages : how many there are; 0: apt-get will say.
    """

    def __init__(
        self, listener: Listener, what: str, steps: tuple[str, ...], packages: int = 0
    ) -> None:
        self.tail: deque[str] = deque(maxlen=TAIL)
        self._listener, self._steps, self._packages = listener, steps, packages
        self._progress = StepProgress(listener, what, "packages")
        self._heard = 0

    def hear(self, line: str) -> None:
        self._listener.line(line)
        self.tail.append(line)
        if found := TO_INSTALL.search(line):
            self._packages, self._heard = int(found[1]), 0
        self._heard += line.startswith(self._steps)
        if self._packages:
            self._progress.reached(self._heard // len(self._steps), self._packages)


async def run(
    argv: tuple[str, ...], on_line: OnLine, environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Exit code and last lines; the program is ended if the caller is cancelled."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=environment,
    )
    assert process.stdout is not None
    tail: deque[str] = deque(maxlen=TAIL)
    try:
        async for raw in process.stdout:
            line = raw.decode(errors="replace").rstrip()
            if line:
                tail.append(line)
                on_line(line)
        return await process.wait(), "\n".join(tail)
    finally:
        if process.returncode is None:
            signal_child(process, signal.SIGTERM)
            await process.wait()
