"""A bundle as a host sends it, piece by piece: each is looked at before it is written here."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from workbench import files
from workbench.fleet.fleet_standing import FleetError
from workbench.fleet.tasks import LARGEST_BUNDLE, PIECE

MOST_FILES = 100
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
"""Names of a bundle's files; no other name leaves the folder or is hidden in it."""
_KEPT = "The host keeps what it measured: see its sessions with `workbench ls --fleet`"


class NotFetched(FleetError):
    """A host has measured a shard, and does not hand it over now."""


class NotWhole(NotFetched):
    """What a host has of a shard, or sent, is not what it measured: it exports that again."""


class NotStoredHere(FleetError):
    """A host has measured a shard, and this host cannot store it now."""


async def store_fetched(place: Path, host: str, ask: Callable[[int], Awaitable[object]]) -> None:
    """Write what a host sends into the folder `place`, which is there whole or as it was before.

    Parameters
    ----------
    ask : for what `tasks.send_piece` answers, by the number of bytes that are here.

    Raises
    ------
    FleetError : what it sends is no bundle.
    NotStoredHere : it cannot be written.
    """
    files.sweep(place.parent, place.name)
    # A thread that writes what nobody waits for any more writes into no later one's folder.
    partial = files.partial(place, secrets.token_hex(4))
    names: set[str] = set()
    taken, got = 0, PIECE
    try:
        while got == PIECE:
            piece = _looked_at(host, await ask(taken), names, taken)
            await asyncio.to_thread(_append, partial, piece)
            got = sum(map(len, piece.values()))
            taken += got
        await asyncio.to_thread(_put_in_place, partial, place)
    except OSError as error:
        raise NotStoredHere(
            f"what {host} measured cannot be stored here: {error.strerror or error}",
            where=str(place),
            remedy="Make room there; the host keeps what it measured",
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _append(folder: Path, piece: Mapping[str, bytes]) -> None:
    files.make_folder(folder)
    for name, content in piece.items():
        with open(folder / name, "ab", opener=files.opener) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def _put_in_place(partial: Path, place: Path) -> None:
    if place.is_dir():  # of a command that was cut off, or damaged since
        shutil.rmtree(place)
    files.sync_folder(partial)
    partial.rename(place)
    files.sync_folder(place.parent)  # the ledger says from now on that it is here


def _looked_at(host: str, sent: object, names: set[str], taken: int) -> dict[str, bytes]:
    """By the name of the file; the sending host has looked, but may be any program.

    Parameters
    ----------
    names : of all files so far, these included afterwards.
    taken : bytes of the pieces before.
    """
    if not isinstance(sent, dict) or len(names.union(sent)) > MOST_FILES:
        raise FleetError(f"sent no bundle of at most {MOST_FILES} files", where=host, remedy=_KEPT)
    for name, content in sent.items():
        if not (isinstance(name, str) and _PLAIN.fullmatch(name) and isinstance(content, bytes)):
            raise FleetError(
                f"sent a file called {str(name)[:80]!r}, which no bundle has",
                where=host,
                remedy=_KEPT,
            )
    size = sum(map(len, sent.values()))
    if size > PIECE:
        raise FleetError(
            f"sent more of a bundle at once than {PIECE // 2**20} MiB", where=host, remedy=_KEPT
        )
    if taken + size > LARGEST_BUNDLE:
        raise FleetError(
            f"sent a bundle of more than {LARGEST_BUNDLE // 2**20} MiB", where=host, remedy=_KEPT
        )
    names.update(sent)
    return sent
