"""A bundle as a host sent it: looked at before any of it is written here."""

from __future__ import annotations

import re
from pathlib import Path

from workbench import files
from workbench.fleet.fleet_standing import FleetError
from workbench.fleet.tasks import LARGEST_BUNDLE
from workbench.store.bundle import MANIFEST

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


def store_fetched(place: Path, host: str, sent: object) -> None:
    """Write what a host sent into the folder `place`, for a thread.

    Raises `FleetError` where that is no bundle, `NotStoredHere` where it cannot be written.
    """
    contents = _contents(host, sent)
    try:
        files.make_folder(place)
        for name in sorted(contents, key=lambda name: name == MANIFEST):  # which makes it a bundle
            files.write_own(place / name, contents[name], synced=True)
        files.sync_folder(place)  # the ledger says from now on that it is here
    except OSError as error:
        raise NotStoredHere(
            f"what {host} measured cannot be stored here: {error.strerror or error}",
            where=str(place),
            remedy="Make room there; the host keeps what it measured",
        ) from error


def _contents(host: str, sent: object) -> dict[str, bytes]:
    """By the name of the file; the sending host has looked, but may be any program."""
    if not isinstance(sent, dict) or len(sent) > MOST_FILES:
        raise FleetError(f"sent no bundle of at most {MOST_FILES} files", where=host, remedy=_KEPT)
    for name, content in sent.items():
        if not (isinstance(name, str) and _PLAIN.fullmatch(name) and isinstance(content, bytes)):
            raise FleetError(
                f"sent a file called {str(name)[:80]!r}, which no bundle has",
                where=host,
                remedy=_KEPT,
            )
    if sum(map(len, sent.values())) > LARGEST_BUNDLE:
        raise FleetError(
            f"sent a bundle of more than {LARGEST_BUNDLE // 2**20} MiB", where=host, remedy=_KEPT
        )
    return sent
