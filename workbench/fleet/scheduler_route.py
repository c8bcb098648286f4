"""A host's way to its scheduler and back: by which address it goes, or why there is none.

Dask itself tries a scheduler that it cannot use for ever, and says nothing of why. A worker's first
connection is one of its own, so that one behind a firewall takes work whose results nobody fetches.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from datetime import UTC, datetime

from workbench.fleet.fleet_standing import FleetError
from workbench.fleet.named_scheduler import OUT_OF_TIME, TLS
from workbench.fleet.security import Secrets

REACHING_S = 20.0
"""How long a scheduler may take to be connected to, with its certificate."""


async def own_address(scheduler: str, secrets: Secrets) -> str:
    """The address of this host at which its scheduler can reach it, as Dask writes one.

    It is that from which this host itself reaches the scheduler. By what name or address others
    call this host says nothing: its own `/etc/hosts` may have that name at 127.0.1.1, and an alias
    or a translated address is none of its own.

    Raises
    ------
    FleetError
        The scheduler is not reached, or is not believed; with the cause.
    """
    try:
        writer = await _connected(scheduler, secrets)
    except ssl.SSLCertVerificationError as error:
        raise _not_believed(scheduler, error) from None
    except (OSError, TimeoutError) as error:
        raise FleetError(
            f"is not reached from there: {_why(error)}",
            where=scheduler,
            remedy="See that `listen` of the hosts file is an address at which it is reached, and "
            "that firewalls let it through",
        ) from None
    address = str(writer.get_extra_info("sockname")[0])
    writer.close()
    return f"[{address}]" if ":" in address else address


async def must_be_reached(worker: str, secrets: Secrets) -> None:
    """See that who asks, on the scheduler's host, reaches a worker at the address that it gave.

    Raises
    ------
    FleetError
        It does not; with the cause.
    """
    try:
        writer = await _connected(worker, secrets)
    except (OSError, TimeoutError) as error:
        raise FleetError(
            f"reaches its scheduler, but is not reached from there: {_why(error)}",
            where=worker,
            remedy="Open a port for it in its firewall and name it as `ports: workers` of the "
            "hosts file; a host behind NAT cannot be used",
        ) from None
    writer.close()


async def _connected(address: str, secrets: Secrets) -> asyncio.StreamWriter:
    """Raises `OSError`, `ssl.SSLCertVerificationError`, `TimeoutError`."""
    host, _, port = address.removeprefix(TLS).rpartition(":")
    context = secrets.security().get_connection_args("worker")["ssl_context"]
    async with asyncio.timeout(REACHING_S):
        _, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=context)
    return writer


def _why(error: OSError | TimeoutError) -> str:
    """In words, without the address, which is told beside it."""
    if isinstance(error, TimeoutError) and error.errno is None:
        return f"it did not answer within {REACHING_S:g} s"
    if error.errno is not None and error.errno > 0 and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno)  # asyncio's own words are of its call
    return error.strerror or str(error)


def _not_believed(scheduler: str, error: ssl.SSLCertVerificationError) -> FleetError:
    if error.verify_code not in OUT_OF_TIME:
        return FleetError(
            f"its certificate is not that of the fleet: {error.verify_message}", where=scheduler
        )
    return FleetError(
        f"its certificate {OUT_OF_TIME[error.verify_code]} by the clock of this host, which says "
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        where=scheduler,
        remedy="Set that clock, or have it set (timedatectl set-ntp true)",
    )
