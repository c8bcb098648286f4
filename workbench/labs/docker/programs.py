"""Runs programs of this host: an argument vector, its output line by line."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

OnLine = Callable[[str], None]


@dataclass(frozen=True)
class Listener:
    """Who hears what making an image is about."""

    step: OnLine
    """Our own sentences, such as what is built and how long that takes."""
    line: OnLine
    """What the programs say that build it; their lines may hold what is secret to a template."""


TAIL = 5
"""Lines of output that are kept to explain a failure."""


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
            process.terminate()
            await process.wait()
