"""Connections to a Dask scheduler, a fleet's own or one that somebody else keeps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from workbench.fleet.fleet_standing import FleetError, FleetStanding
from workbench.fleet.security import Secrets, configure
from workbench.log import take_over

if TYPE_CHECKING:
    from distributed import Client

ANSWER_S = 15.0
"""How long a scheduler, and a host by way of it, may take to answer a question."""


class SchedulerLost(FleetError):
    """The fleet's own process ended while a campaign was measured."""


@asynccontextmanager
async def client_of(address: str, secrets: Secrets) -> AsyncIterator[Client]:
    """A client of the scheduler at an address. Raises `OSError` where it does not answer."""
    from distributed import Client

    configure()
    client = await Client(
        address, security=secrets.security(), asynchronous=True, set_as_default=False,
        timeout=f"{ANSWER_S:g}s",
    )  # fmt: skip
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def connected(standing: FleetStanding) -> AsyncIterator[Client]:
    """A client of a fleet's scheduler. Raises `SchedulerLost` where it does not answer."""
    import distributed  # noqa: F401 - it brings its handlers as it is imported

    take_over("distributed", "tornado")  # what matters is told by us
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(
                client_of(standing.scheduler, standing.secrets)
            )
        except OSError as error:
            raise SchedulerLost(
                f"its scheduler does not answer: {str(error) or f'within {ANSWER_S:g} s'}",
                where=standing.fleet.name,
                remedy=f"End the fleet with {standing.fleet.command('down')}, and start it again",
            ) from None
        yield client
