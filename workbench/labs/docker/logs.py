"""What a container wrote to standard output and error, as the engine keeps it.

A function may write anything, as fast as it can: the engine keeps a few megabytes of it, and of
those only the end is read.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import aiodocker
import aiohttp
import structlog
from aiodocker.containers import DockerContainer

from workbench.domain.logs import LONGEST_LINE, Stream, WrittenLine

KEEPING: Mapping[str, Any] = {
    "Type": "json-file",
    "Config": {"max-size": "4m", "max-file": "2"},
}
"""What the engine keeps, whatever its default: some cannot be read, and some fill the disk."""
TAIL = 200
"""Entries that are asked for: lines, or 16 KiB of a longer one."""
MOST_BYTES = 8 << 20
"""Read at one time, whatever the engine sends; twice what the tail can be."""
PATIENCE_S = 5.0

_HEADER = 8
_STREAMS: Mapping[int, Stream] = {1: "stdout", 2: "stderr"}
_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ")
_NS = 10**9

log = structlog.get_logger(__name__)


@dataclass
class _Line:
    """A line that is still being read."""

    at: float | None
    begin: bytes = b""
    length: int = 0

    def add(self, text: bytes) -> None:
        self.begin += text[: LONGEST_LINE - len(self.begin)]
        self.length += len(text)


class LogReader:
    """Makes lines of what the engine sends, in constant memory.

    It comes in frames: eight bytes that say stream and length, then an entry that begins with its
    time. An entry without a line feed goes on in the next one of its stream.

    Parameters
    ----------
    after_ns : entries up to this time were read before.

    Attributes
    ----------
    lines : the last ones, at most `TAIL`.
    entries : how many were sent.
    last_ns : when the last of them was written, by the engine's clock.
    """

    def __init__(self, after_ns: int = 0) -> None:
        self.lines: deque[WrittenLine] = deque(maxlen=TAIL)
        self.entries = 0
        self.last_ns = self._after_ns = after_ns
        self._unended: dict[Stream, _Line] = {}
        self._bytes = bytearray()

    def feed(self, chunk: bytes) -> None:
        self._bytes += chunk
        while len(self._bytes) >= _HEADER:
            end = _HEADER + int.from_bytes(self._bytes[4:_HEADER])
            if len(self._bytes) < end:
                return
            stream = _STREAMS.get(self._bytes[0], "stdout")
            self._entry(stream, bytes(self._bytes[_HEADER:end]))
            del self._bytes[:end]

    def finish(self) -> None:
        """Nothing more comes: lines that did not end are lines as well."""
        for stream in list(self._unended):
            self._end(stream)

    def _entry(self, stream: Stream, entry: bytes) -> None:
        self.entries += 1
        stamp = _STAMP.match(entry)
        at_ns = _ns(stamp) if stamp else 0
        if stamp and at_ns <= self._after_ns:
            return
        self.last_ns = max(self.last_ns, at_ns)
        text = entry[stamp.end() :] if stamp else entry
        line = self._unended.setdefault(stream, _Line(at_ns / _NS if stamp else None))
        line.add(text.removesuffix(b"\n"))
        if text.endswith(b"\n"):
            self._end(stream)

    def _end(self, stream: Stream) -> None:
        line = self._unended.pop(stream)
        self.lines.append(WrittenLine.decoded(line.begin, line.length, stream, line.at))


def _ns(stamp: re.Match[bytes]) -> int:
    """Nanoseconds since the epoch; a float of seconds has no room for them."""
    seconds, fraction, zone = stamp.groups(b"")
    when = datetime.fromisoformat((seconds + zone).decode())
    return int(when.timestamp()) * _NS + int(fraction.ljust(9, b"0"))


async def read(container: DockerContainer, after_ns: int = 0) -> LogReader:
    """The end of what a container wrote after a time, also of one that has ended.

    Nothing where the container or its log is gone, and what came until then where the engine is
    slow: no measurement fails for a log.
    """
    reader = LogReader(after_ns)
    seconds, ns = divmod(after_ns, _NS)
    asked: dict[str, str | int] = {
        "stdout": 1,
        "stderr": 1,
        "timestamps": 1,
        "tail": TAIL,
        "since": f"{seconds}.{ns:09}",
    }
    left = MOST_BYTES
    try:
        async with (
            asyncio.timeout(PATIENCE_S),
            container.docker._query(f"containers/{container.id}/logs", params=asked) as answer,
        ):
            with closing(answer):
                async for chunk in answer.content.iter_any():
                    reader.feed(chunk)
                    left -= len(chunk)
                    if left <= 0:
                        break
    except (aiodocker.DockerError, aiohttp.ClientError, OSError, TimeoutError) as error:
        log.info("log not read", container=container.id, error=str(error))
    reader.finish()
    return reader
