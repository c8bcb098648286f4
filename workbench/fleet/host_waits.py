"""Whom a host waits for before it measures what it was given: one campaign has a host at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.fleet import tasks
from workbench.fleet.scheduler_clients import ANSWER_S
from workbench.log import logger

if TYPE_CHECKING:
    from distributed import Client

FIRST_S, AGAIN_S = 5.0, 30.0
"""How often it is asked: as long as nobody knows, or it waits, since what it measures then counts
from its turn on; and once it waits for nobody."""
LONGEST_SAID = 500

log = logger("fleet")


async def hear_waits(
    client: Client, address: str, session: str, heard: Callable[[str], None]
) -> None:
    """Ask whom a host waits for, until cancelled.

    Parameters
    ----------
    address : of its worker.
    session : that it was given, by its name on the host.
    heard : is given whom it waits for, first of all and whenever that changes, as words for a
        terminal; empty: nobody.
    """
    known: str | None = None
    while True:
        await asyncio.sleep(AGAIN_S if known == "" else FIRST_S)
        try:
            async with asyncio.timeout(ANSWER_S):
                answers = await client.run(
                    tasks.whom_it_waits_for, session, on_error="return", workers=[address]
                )
        except (OSError, AttributeError) as error:  # a client that gave up has no scheduler
            log.info("a host was not asked whom it waits for", where=address, why=str(error))
            continue
        said = answers.get(address)
        if isinstance(said, str) and said != known:
            known = said
            heard("".join(c if c.isprintable() else "·" for c in said[:LONGEST_SAID]))
