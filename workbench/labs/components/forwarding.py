"""Routers: who is charged for what the kernel forwards in their name."""

from __future__ import annotations

import asyncio

from workbench.labs.components.component import Component
from workbench.probes import network_threads


async def charge(component: Component) -> str:
    """Have a router's own CPU group pay for its forwarding, so that its quota holds.

    Returns a sentence why that is not so, for the session; empty where it is.
    """
    name = component.name
    if component.probe is None:
        why = "the engine is on another host"
    else:
        try:
            served = await asyncio.to_thread(
                network_threads.charge, component.pid, component.probe.folders
            )
        except OSError as error:
            why = (error.strerror or str(error)).lower()
        else:
            if served:
                return ""
            why = "no kernel thread serves its interfaces"
    return (
        f"the quota of {name} does not hold for what it forwards ({why}): the kernel forwards in "
        "the time of whoever sends"
    )
