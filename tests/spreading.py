"""Which tests go to which worker."""

from __future__ import annotations

from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

SHARING = ("acceptance", "cli", "docker", "engine", "plugins", "science", "ssh", "store", "web")
"""Rooms in which tests of a file share an engine, a session or what was fitted."""


class ByRoom(LoadScopeScheduling):
    """Single tests are spread over the workers, but where those of a file share something.

    xdist's own `loadgroup` writes groups into node ids, which pytest 9.2 no longer keeps.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if Path(file).parent.name in SHARING else nodeid
