"""How a cause that is no setting of a function comes into the world, and goes again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from workbench.domain.errors import LabError

LONGEST_S = 10.0
"""What a command in a namespace may take."""
LONGEST_SPIN_S = 120.0
"""After which a process ends by itself, should the bench be killed."""


@contextmanager
def spinning(niceness: int | None) -> Iterator[None]:
    """One process on each core that never waits, at this niceness; none where it is None.

    Each in a session of its own, started by a shell that has ended: no child of this process, whose
    children the evidence counts as the workbench's own.
    """
    if niceness is None:
        yield
        return
    program = (
        f"import os, time; os.nice({niceness}); ends = time.monotonic() + {LONGEST_SPIN_S}\n"
        "while time.monotonic() < ends: pass"
    )
    started = [_orphan(program) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in started:
            os.kill(process, signal.SIGKILL)


def _orphan(program: str) -> int:
    """Start a Python program whose parent has ended; its process id."""
    starting = (
        "import subprocess as s, sys\n"
        "quiet = dict(stdin=s.DEVNULL, stdout=s.DEVNULL, stderr=s.DEVNULL)\n"
        "print(s.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True, **quiet).pid)"
    )
    found = subprocess.run(
        [sys.executable, "-c", starting, program], capture_output=True, text=True, check=True
    )
    return int(found.stdout)


def run_inside(
    containers: Mapping[str, str], commands: Mapping[str, tuple[tuple[str, ...], ...]]
) -> None:
    """Run commands in the network namespaces of containers, which end with them.

    Raises
    ------
    LabError : one does not end well.
    """
    for function, those in commands.items():
        asked = ["docker", "inspect", "-f", "{{.State.Pid}}", containers[function]]
        found = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=LONGEST_S)
        for command in those:
            whole = ["nsenter", f"--net=/proc/{found.stdout.strip()}/ns/net", *command]
            ended = subprocess.run(whole, capture_output=True, text=True, timeout=LONGEST_S)
            if ended.returncode:
                raise LabError(f"{command[0]}: {ended.stderr.strip()}", where=function)
