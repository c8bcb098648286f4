"""Whom a host waits for before it measures what it was given: one campaign has a host at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.fleet import tasks
from workbench.log import logger

if TYPE_CHECKING:
    from distributed import Client

FIRST_S, AGAIN_S = 5.0, 30.0
"""After which it is asked, and again."""
ANSWER_S = 15.0
LONGEST_SAID = 500

log = logger("fleet")


async def tell_waits(
    client: Client, address: str, session: str, tell: Callable[[str], None]
) -> None:
    """Tell whom a host waits for, whenever that changes, until cancelled.

    Parameters
    ----------
    address : of its worker.
    session : that it was given, by its name on the host.
    """
    known, pause_s = "", FIRST_S
    while True:
        await asyncio.sleep(pause_s)
        pause_s = AGAIN_S
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
            if said:
                plain = "".join(c if c.isprintable() else "·" for c in said[:LONGEST_SAID])
                tell(f"waits for its turn there: {plain} measures first")
            else:
                tell("has its turn")
