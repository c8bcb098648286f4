"""Containers and networks of sessions that died without tearing down."""

from __future__ import annotations

import asyncio
from typing import Any

from workbench import plugins
from workbench.domain.errors import LabError
from workbench.locks import FileLock
from workbench.log import logger

log = logger("engine.strays")


async def reap_strays(host_lock: FileLock, running: str = "") -> tuple[str, ...]:
    """Remove what dead sessions left in any lab; the names of what went.

    Whatever session is alive on this host holds the measuring lock, in this process or another.
    """
    holder = host_lock.holder()
    alive = frozenset(name for name in (running, holder.session if holder else "") if name)
    labs, broken = await asyncio.to_thread(plugins.load_all, "labs")
    for error in broken:
        log.warning("lab cannot be loaded", error=str(error))
    removed: list[str] = []
    for name, lab in labs.items():
        try:
            removed += await reap_lab(lab, alive)
        except LabError as error:  # no engine, no strays of it
            log.info("lab was not reaped", lab=name, error=str(error))
    return tuple(removed)


async def reap_lab(lab: Any, alive: frozenset[str]) -> tuple[str, ...]:
    """Remove what sessions that are not `alive` left in one kind of lab."""
    if not hasattr(lab, "reap"):
        return ()
    removed: tuple[str, ...] = await lab.reap(alive)
    if removed:
        log.warning("strays removed", removed=removed)
    return removed
