"""A Dask scheduler that somebody else keeps: whether it can be used, and whom it hears of."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.descriptors.certificates import not_held_now
from workbench.domain.errors import UsageError
from workbench.domain.fleets import NamedScheduler
from workbench.fleet.fleet_standing import FleetError
from workbench.fleet.hearing import VANISHED_S, Hearing
from workbench.fleet.scheduler_clients import ANSWER_S, client_of
from workbench.fleet.security import Secrets
from workbench.log import logger

if TYPE_CHECKING:
    from distributed import Client

LARGEST_FILE = 2**20
LOOKING_S = 1.0
LAB = "lab"
"""The resource of a worker that is a lab host."""
TLS = "tls://"
OUT_OF_TIME = {9: "is not valid yet", 10: "has expired"}
"""What `SSLCertVerificationError.verify_code` says of the time: X509_V_ERR_* of OpenSSL."""

log = logger("fleet")


def secrets_of(named: NamedScheduler) -> Secrets:
    """Its certificates from their files. Raises `UsageError` where they cannot be used."""
    authority, certificate, key = map(_text, (named.authority, named.certificate, named.key))
    try:
        why = not_held_now(certificate)
    except ValueError:
        raise UsageError("is no certificate in PEM", where=named.certificate) from None
    if why:
        raise UsageError(
            why,
            where=named.certificate,
            remedy="Have another one made by who keeps the scheduler, or see what time it is here",
        )
    _context(named)
    return Secrets(certificate, key, authority)


def _text(path: str) -> str:
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(LARGEST_FILE)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in PEM"
        raise UsageError(
            f"cannot be read: {why}", where=path, remedy="Name the file in the hosts file"
        ) from None
    return text


def _context(named: NamedScheduler) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=named.authority)
    except ssl.SSLError:
        raise UsageError("is no certificate in PEM", where=named.authority) from None
    try:
        context.load_cert_chain(named.certificate, named.key)
    except ssl.SSLError:
        raise UsageError(
            f"is not the key of {Path(named.certificate).name}", where=named.key
        ) from None
    context.check_hostname = False  # as Dask does: who was signed by the authority is of the fleet
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


async def must_answer(named: NamedScheduler, secrets: Secrets) -> None:
    """Raise `FleetError` with the reason where that scheduler cannot be used.

    The handshake comes first: Dask itself tries a scheduler that is not encrypted until its time is
    over, and then only says that it took too long.
    """
    host, _, port = named.address.removeprefix(TLS).rpartition(":")
    try:
        async with asyncio.timeout(ANSWER_S):
            context = await asyncio.to_thread(_context, named)
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=context)
            writer.close()
    except ssl.SSLCertVerificationError as error:
        raise _not_trusted(named, error) from None
    except ssl.SSLError:
        raise FleetError(
            "does not speak TLS 1.3: a fleet uses no scheduler that is not encrypted",
            where=named.address,
            remedy="Start it with --protocol tls and its certificates",
        ) from None
    except (OSError, TimeoutError) as error:
        why = str(error) or f"within {ANSWER_S:g} s"
        raise FleetError(f"does not answer: {why}", where=named.address) from None
    try:
        async with client_of(named.address, secrets) as client:
            await workers_of(client)
    except OSError:
        raise FleetError(
            f"hangs up on who shows {Path(named.certificate).name}",
            where=named.address,
            remedy="Name a certificate that its authority has signed",
        ) from None


def _not_trusted(named: NamedScheduler, error: ssl.SSLCertVerificationError) -> FleetError:
    if error.verify_code in OUT_OF_TIME:
        return FleetError(
            f"its certificate, or that of its authority {Path(named.authority).name}, "
            f"{OUT_OF_TIME[error.verify_code]}",
            where=named.address,
            remedy="Have another one made by who keeps the scheduler, or see what time it is here",
        )
    return FleetError(
        f"its certificate is not of the authority {Path(named.authority).name}: "
        f"{error.verify_message}",
        where=named.address,
    )


@asynccontextmanager
async def listening(
    named: NamedScheduler, secrets: Secrets
) -> AsyncIterator[Callable[[], Collection[str]]]:
    """Names of the lab hosts that the scheduler hears of, as they are at any moment of the body.

    One that does not answer for a moment has lost no host: who believed that would end workers, and
    cancel jobs, that measure on. After `VANISHED_S` none is known to be there.
    """
    present: dict[str, str] = {}
    hearing, loop = Hearing(), asyncio.get_running_loop()

    async def listen() -> None:
        unanswered_s = 0.0
        while True:
            tried = loop.time()
            try:
                async with client_of(named.address, secrets) as client:
                    while True:
                        found = await workers_of(client, hearing)
                        unanswered_s = 0.0
                        present.clear()
                        present.update(found)
                        await asyncio.sleep(LOOKING_S)
                        tried = loop.time()
            except (OSError, AttributeError) as error:  # a client that gave up has no scheduler
                log.warning("the scheduler does not answer", where=named.address, why=str(error))
                # Where this process stood still for longer, the scheduler may have answered.
                unanswered_s += LOOKING_S + min(loop.time() - tried, ANSWER_S)
                if unanswered_s > VANISHED_S:
                    present.clear()
            await asyncio.sleep(LOOKING_S)

    listener = asyncio.create_task(listen())
    try:
        yield lambda: tuple(present)
    finally:
        listener.cancel()
        with suppress(asyncio.CancelledError):
            await listener


async def workers_of(client: Client, hearing: Hearing | None = None) -> dict[str, str]:
    """Addresses of the workers with a lab that a scheduler hears of, by name.

    Parameters
    ----------
    hearing : of whoever looks again and again: who is silent is not there; None: who has not hung
        up is.

    Raises
    ------
    OSError
    """
    if client.scheduler is None:
        raise ConnectionError("the connection to it has ended")
    async with asyncio.timeout(ANSWER_S):
        known = (await client.scheduler.identity(n_workers=-1))["workers"]
    if hearing is not None:
        hearing.keep(known)
    return {
        str(worker["name"]): address
        for address, worker in known.items()
        if worker["resources"].get(LAB)
        and not (hearing is not None and hearing.is_silent(address, worker["last_seen"]))
    }
