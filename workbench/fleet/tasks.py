"""What Dask runs on a lab host, by name: JSON in, JSON out; nothing else is ever pickled."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from workbench.domain import codec
from workbench.domain.fleets import LabHost, ShardOrder, ShardResult
from workbench.domain.sessions import SessionSummary
from workbench.engine.sessions.clock import now
from workbench.fleet.security import Secrets

LARGEST_BUNDLE = 512 * 2**20
LONGEST_WORD = 2**20
UP, DOWN = "up", "down"
"""First words of the lines that a worker writes: it is there; it ends, and why."""


@dataclass(frozen=True)
class Posting:
    """What a worker process is told: who it is, where the scheduler is, and the certificates."""

    host: LabHost
    folder: str
    scheduler: str
    listen: str
    secrets: Secrets


class Measuring(Protocol):
    """A lab host's own engine (`host_engine.HostEngine`)."""

    @property
    def exports(self) -> Path: ...

    async def measure(self, order: ShardOrder) -> ShardResult: ...

    async def found(self, key: str, session: str) -> ShardResult | None: ...

    async def stop(self) -> None: ...

    async def sessions(self) -> tuple[SessionSummary, ...]: ...


_here: list[Measuring] = []


def be(host: Measuring) -> None:
    """This process is that host."""
    _here[:] = [host]


async def measure_shard(order: bytes) -> bytes:
    """A `ShardOrder` in, a `ShardResult` out."""
    found = await _here[0].measure(codec.from_plain(codec.loads(order), ShardOrder))
    return codec.dumps(codec.to_plain(found))


async def find_shards(keys: bytes) -> bytes:
    """Keys of shards by session in, the `ShardResult`s of those that are finished here out."""
    wanted = codec.from_plain(codec.loads(keys), dict[str, str])
    found = [await _here[0].found(key, session) for session, key in wanted.items()]
    return codec.dumps([codec.to_plain(result) for result in found if result is not None])


async def tell_time(asked: bytes) -> float:
    """Seconds since the epoch by the clock that stamps this host's samples."""
    del asked
    return now()


async def list_sessions() -> bytes:
    """The sessions of this host's workspace (`SessionSummary`)."""
    return codec.dumps([codec.to_plain(each) for each in await _here[0].sessions()])


async def stop_shard() -> None:
    """End what is measured now."""
    await _here[0].stop()


async def send_bundle(place: str) -> dict[str, bytes]:
    """The files of a bundle that this host has measured."""
    if Path(place).parent != _here[0].exports:
        raise ValueError(f"{place} is no bundle of this host")
    return await asyncio.to_thread(_contents, Path(place))


def _contents(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.iterdir() if path.is_file()]
    if sum(path.stat().st_size for path in paths) > LARGEST_BUNDLE:
        raise ValueError(f"{folder} is larger than {LARGEST_BUNDLE // 2**20} MiB")
    return {path.name: path.read_bytes() for path in paths}
