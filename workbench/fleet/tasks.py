"""What Dask runs on a lab host, by name: JSON in, JSON out, but for the files of a bundle and the
errors that it raises, which Dask pickles as they are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from workbench import __version__
from workbench.domain import codec
from workbench.domain.errors import WorkbenchError
from workbench.domain.fleets import LabHost, ShardOrder, ShardResult
from workbench.domain.sessions import SessionSummary
from workbench.engine.sessions.clock import now
from workbench.fleet.security import Secrets
from workbench.log import logger
from workbench.store.bundle import MANIFEST

LARGEST_BUNDLE = 512 * 2**20
PIECE = 16 * 2**20
"""Bytes of a bundle that are sent at once: as many are in memory at the same time, here, at the
scheduler and with whoever asks for them."""
LONGEST_WORD = 2**20
TURN_S = 0.1
"""How often a host that waits for its turn looks whether it has it."""
PRELOAD = "workbench.fleet.lab_preload"
"""What makes a lab host of a Dask worker that somebody else starts."""
UP, DOWN = "up", "down"
"""First words of the lines that a worker writes: it is there; it ends, and why."""

log = logger("fleet")


@dataclass(frozen=True)
class Posting:
    """What a worker process is told: who it is, where the scheduler is, and the certificates.

    Attributes
    ----------
    listen : address that it listens at; empty: that from which it reaches the scheduler.
    ports : that it may listen at, as Dask takes them; empty: any.
    """

    host: LabHost
    folder: str
    scheduler: str
    listen: str
    secrets: Secrets
    ports: str = ""


@dataclass(frozen=True)
class WantedPiece:
    """Of the bundle in the folder `place`, the bytes from `offset` on: its files are one after the
    other, by name, the manifest last."""

    place: str
    offset: int


class Measuring(Protocol):
    """A lab host's own engine (`host_engine.HostEngine`)."""

    @property
    def exports(self) -> Path: ...

    async def measure(self, order: ShardOrder) -> ShardResult: ...

    async def found(self, key: str, session: str) -> ShardResult | None: ...

    def waits_for(self, session: str) -> str: ...

    def at_what(self) -> str: ...

    async def stop(self, sessions: Collection[str]) -> None: ...

    async def sessions(self) -> tuple[SessionSummary, ...]: ...

    async def must_be_able(self, lab: str) -> None: ...


class NoLabHost(Exception):
    """This worker is none that measures."""


_here: list[Measuring] = []


def be(host: Measuring | None) -> None:
    """This process is that host; None: it is none any more."""
    _here[:] = [host] if host is not None else []


def _measuring() -> Measuring:
    if not _here:
        raise NoLabHost(
            f"this worker measures nothing: start it with --preload {PRELOAD} --nthreads 1"
        )
    return _here[0]


async def be_posted(host: bytes) -> str:
    """The version that a worker has which was started elsewhere.

    Nothing is kept of who asks: another fleet may share the worker, so that each order has its own
    lab. Workers of earlier versions, which kept it, know this by that name.
    """
    del host
    _measuring()
    return __version__


async def measure_shard(order: bytes) -> bytes:
    """A `ShardOrder` in, a `ShardResult` out."""
    host, asked = _measuring(), codec.from_plain(codec.loads(order), ShardOrder)
    turn = [time.monotonic()]
    looking = asyncio.create_task(_note_turn(host, asked.session, turn))
    try:
        found = await host.measure(asked)
    finally:
        looking.cancel()
    found = replace(found, wall_s=round(time.monotonic() - turn[-1], 3))
    return codec.dumps(codec.to_plain(found))


async def _note_turn(host: Measuring, session: str, turn: list[float]) -> None:
    """Since when a host waits for nobody any more, or nearly so; until cancelled."""
    while True:
        if host.waits_for(session):
            turn[:] = [time.monotonic()]
        await asyncio.sleep(TURN_S)


async def find_shards(keys: bytes) -> bytes:
    """Keys of shards by session in, the `ShardResult`s of those that are finished here out.

    A session that is damaged is none: its shard fails here when it is asked for, and no other does.
    """
    host, found = _measuring(), []
    for session, key in codec.from_plain(codec.loads(keys), dict[str, str]).items():
        try:
            result = await host.found(key, session)
        except (OSError, WorkbenchError) as error:
            log.warning("session cannot be read", session=session, why=str(error))
            continue
        if result is not None:
            found.append(codec.to_plain(result))
    return codec.dumps(found)


async def see_lab(lab: str) -> str:
    """Why that lab cannot measure on this host, as a sentence; empty where it can."""
    try:
        await _measuring().must_be_able(lab)
    except WorkbenchError as error:
        return error.what + (f" ({error.remedy})" if error.remedy else "")
    return ""


async def tell_time(asked: bytes) -> float:
    """Seconds since the epoch by the clock that stamps this host's samples."""
    del asked
    return now()


async def whom_it_waits_for(session: str) -> str:
    """Who measures on this host before that session may; empty: nobody."""
    return _measuring().waits_for(session)


async def tell_what_it_is_at() -> str:
    """What this host measures or scores now and for whom, as words; empty: nothing."""
    return _measuring().at_what()


async def list_sessions() -> bytes:
    """The sessions of this host's workspace (`SessionSummary`)."""
    return codec.dumps([codec.to_plain(each) for each in await _measuring().sessions()])


async def stop_shard(sessions: bytes) -> None:
    """End what is measured now, if that is one of these sessions."""
    await _measuring().stop(codec.from_plain(codec.loads(sessions), tuple[str, ...]))


async def send_piece(wanted: bytes) -> dict[str, bytes]:
    """A `WantedPiece` in; of a bundle that this host has measured, `PIECE` bytes out by the names
    of their files, and less at its end."""
    asked = codec.from_plain(codec.loads(wanted), WantedPiece)
    if Path(asked.place).parent != _measuring().exports:
        raise ValueError(f"{asked.place} is no bundle of this host")
    return await asyncio.to_thread(piece_of, Path(asked.place), asked.offset)


def piece_of(folder: Path, offset: int) -> dict[str, bytes]:
    """Raises `ValueError` where the bundle is too large, `OSError` where it cannot be read."""
    if not folder.is_dir():  # nothing is no bundle either, and it is exported again
        return {}
    paths = [path for path in folder.iterdir() if path.is_file()]
    sizes = {path: path.stat().st_size for path in paths}
    if sum(sizes.values()) > LARGEST_BUNDLE:
        raise ValueError(f"{folder} is larger than {LARGEST_BUNDLE // 2**20} MiB")
    found: dict[str, bytes] = {}
    left = PIECE
    for path in sorted(paths, key=lambda path: (path.name == MANIFEST, path.name)):
        if 0 < offset >= sizes[path]:
            offset -= sizes[path]
            continue
        with path.open("rb") as file:
            file.seek(offset)
            found[path.name] = file.read(left)
        left -= len(found[path.name])
        offset = 0
        if left == 0:
            break
    return found
