"""What commands ask the hosts of a fleet: whether they are well, which sessions they have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from workbench.domain import codec
from workbench.domain.errors import WorkbenchError
from workbench.domain.fleets import Fleet
from workbench.domain.sessions import SessionSummary
from workbench.fleet import tasks
from workbench.fleet.fleet_standing import FleetError, FleetFolder, FleetStanding
from workbench.fleet.host_waits import LONGEST_SAID
from workbench.fleet.named_scheduler import workers_of
from workbench.fleet.scheduler_clients import ANSWER_S, connected
from workbench.paths import Workspace, shipped
from workbench.store import catalogue

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")


async def sessions_of_hosts(
    fleet: Fleet, workspace: Workspace
) -> dict[str, tuple[SessionSummary, ...] | str]:
    """By host, in the order of the hosts file: its sessions, or why they are not known.

    Hosts that are up are asked; where a simulated host is not, its folder here is looked into.
    """
    folder = FleetFolder.of(workspace, fleet.name)
    answers: Mapping[str, Any] = {}
    trouble, standing = f"its fleet is not up; {fleet.command('up')} starts it", None
    try:
        standing = await asyncio.to_thread(folder.read)
    except FleetError as error:
        trouble = f"its fleet {error.what}"
    if standing is not None:
        try:
            answers = await asked(standing, tasks.list_sessions)
            trouble = "it does not answer"
        except WorkbenchError as error:
            trouble = error.what
    found: dict[str, tuple[SessionSummary, ...] | str] = {}
    for host in fleet.hosts:
        answer = answers.get(host.name)
        if isinstance(answer, bytes):
            found[host.name] = _listed(answer)
        elif host.kind == "simulated":
            own = Workspace(folder.host(host.name))
            listed = await asyncio.to_thread(catalogue.list_sessions, own, shipped("sessions"))
            found[host.name] = tuple(one for one in listed if one.kind == "session")
        else:
            found[host.name] = _why_not(answer) if answer is not None else trouble
    return found


async def at_what(standing: FleetStanding) -> dict[str, str]:
    """What hosts are at now, measuring or scoring models, by host, as words for a terminal; those
    that are at nothing, or do not say so in time, are left out. Raises `FleetError`."""
    answers = await asked(standing, tasks.tell_what_it_is_at)
    said = {host: answer for host, answer in answers.items() if isinstance(answer, str) and answer}
    return {
        host: "".join(c if c.isprintable() else "·" for c in text[:LONGEST_SAID])
        for host, text in said.items()
    }


def _listed(answer: bytes) -> tuple[SessionSummary, ...] | str:
    """A host's sessions, or that it says them as this version does not read them."""
    try:
        return codec.from_plain(codec.loads(answer), tuple[SessionSummary, ...])
    except WorkbenchError as error:
        return f"it answers what cannot be read ({error.what}); install the same version there"


def _why_not(answer: Exception) -> str:
    """Why a host did not answer, as a sentence without its full stop."""
    if isinstance(answer, TimeoutError):
        return f"it does not answer within {ANSWER_S:g} s"
    if isinstance(answer, WorkbenchError):
        return answer.what
    return f"it does not answer: {str(answer) or type(answer).__name__}"


async def asked(
    standing: FleetStanding, work: Callable[..., Awaitable[T]], *about: str
) -> dict[str, T | Exception]:
    """What every host that is there answers in time, whatever it measures.

    Each is asked for itself: one that vanished keeps no other's answer back.

    Raises
    ------
    FleetError
        Where the scheduler does not answer, or is gone by now.
    """
    own = {host.name for host in standing.fleet.hosts}
    try:
        async with connected(standing) as client:
            present = await workers_of(client)
            asking = {name: there for name, there in present.items() if name in own}
            answers = await asyncio.gather(
                *(answer_of(client, work, about, there) for there in asking.values())
            )
    except OSError as error:
        raise FleetError(
            "its scheduler answers no more" + (f": {error}" if str(error) else ""),
            where=standing.fleet.name,
            remedy=f"See {standing.fleet.command('status')}",
        ) from None
    return dict(zip(asking, answers, strict=True))


async def answer_of(
    client: Client,
    work: Callable[..., Awaitable[T]],
    about: Sequence[str | bytes],
    address: str,
) -> T | Exception:
    """What the worker at that address answers within `ANSWER_S`, or why it does not."""
    try:
        async with asyncio.timeout(ANSWER_S):
            said = await client.run(work, *about, on_error="return", workers=[address])
    except (OSError, AttributeError) as error:  # a client that gave up has no scheduler
        return error
    found: T | Exception = said[address]
    return found


async def well(fleet: Fleet, workspace: Workspace, host: str) -> str:
    """What is wrong with a host, as a sentence without its full stop; empty where it answers."""
    try:
        standing = await asyncio.to_thread(FleetFolder.of(workspace, fleet.name).read)
    except FleetError as error:
        return f"its fleet {error.what}"
    if standing is None:
        return "the fleet is not up, so that nobody looked how it is"
    try:
        answer = (await asked(standing, tasks.list_sessions)).get(host)
    except WorkbenchError as error:
        return error.what
    if isinstance(answer, bytes):
        return ""
    known = next((one for one in standing.hosts if one.name == host), None)
    why = _why_not(answer) if answer is not None else "it does not answer"
    return why + (f" ({known.note})" if known is not None and known.note else "")
