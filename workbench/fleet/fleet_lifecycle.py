"""A fleet comes up, and goes down: by a person's command, or for a campaign and with its end."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence, Set
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from workbench import files, locks
from workbench.domain import codec
from workbench.domain.counts import counted
from workbench.domain.errors import UsageError, WorkbenchError
from workbench.domain.fleets import Fleet, LabHost
from workbench.fleet.dispatched import Tell
from workbench.fleet.fleet_standing import (
    FleetError,
    FleetFolder,
    FleetStanding,
    end_stray,
    is_keeper,
)
from workbench.fleet.host_reaping import reap_hosts
from workbench.fleet.keeper import GRACE_S, LEAVING_S, STARTING_S, KeeperPosting, opened_errors
from workbench.fleet.leases import Leases
from workbench.fleet.named_scheduler import must_answer, secrets_of
from workbench.fleet.security import Secrets, expired, made
from workbench.fleet.slurm_jobs import cancel_left, must_submit, remove_certificates
from workbench.paths import Workspace

POLL_S = 0.1
LOGGED = re.compile(r"\d{4}-\d\d-\d\d [\d:,]+ - \S+ - [A-Z]+ - ")
"""How a line begins that Dask logs."""
OWN_ERROR = re.compile(r"workbench\.[a-z_.]+\.[A-Za-z]+: ")
"""How the last line of a stack trace of our own errors begins."""
NO_CAUSE = re.compile(LOGGED.pattern.replace("[A-Z]+", "(?:DEBUG|INFO)") + r"|\s*$")


async def come_up(
    fleet: Fleet, workspace: Workspace, tell: Tell, *, stays: bool = True, had_hosts: bool = False
) -> FleetStanding:
    """Start a fleet's keeper, and wait until no host is starting any more.

    Parameters
    ----------
    stays : until `fleet down`; else it ends with the last campaign that is measured with it, and
        one of its hosts is waited for as long as Slurm has any in its queue.
    had_hosts : for a campaign that hosts have measured for: none need be there by now, since its
        keeper goes on trying, and who hands out the shards waits for them.

    Raises
    ------
    FleetError : none of the hosts is there, or in the queue of Slurm; or nothing keeps them up.
    UsageError : the fleet that is up cannot be used, or cannot be started like this.
    """
    folder = FleetFolder.of(workspace, fleet.name)
    async with only_one(folder):
        if (standing := folder.read()) is None:
            folder.clear()
            await _start_keeper(fleet, workspace, folder)
            tell(f"starting {counted(len(fleet.hosts), 'host')}")
            standing = folder.read()
        if standing is not None:  # not what was just asked for where another one was starting
            _must_suit(standing, fleet)
        if stays:
            folder.let_stay(True)
    standing = await _ready(folder, tell, stays)
    if standing is None:
        raise _keeper_gone(fleet, folder, "has ended")
    if not (standing.any_up or had_hosts or (stays and standing.any_queued)):
        notes = [f"{h.name}: {h.note}" for h in standing.hosts if h.note]
        raise FleetError(
            "no host came up" + (f"; {notes[0]}" if notes else ""),
            where=fleet.name,
            remedy=f"See {folder.log}",
        )
    return standing


async def _ready(folder: FleetFolder, tell: Tell, stays: bool) -> FleetStanding | None:
    """A fleet once none of its hosts is starting, or after `STARTING_S`; None: its keeper died.
    Where it does not stay up without a campaign, that waits for the queue of Slurm as well."""
    deadline, told = time.monotonic() + STARTING_S, False
    starting = set[str]()
    while (standing := folder.read()) is not None and time.monotonic() < deadline:
        starting = _tell_started(standing, starting, tell)
        waits = not stays and standing.any_queued and not standing.any_up
        if standing.ready and not waits:
            break
        if waits:
            deadline = time.monotonic() + STARTING_S
            if not told:
                queued = next(host for host in standing.hosts if host.state == "queued")
                tell(f"{queued.name}: {queued.note}, and is waited for")
            told = True
        await asyncio.sleep(POLL_S)
    return standing


def _tell_started(standing: FleetStanding, starting: Set[str], tell: Tell) -> set[str]:
    """Say what has come of hosts that were starting; those that are now."""
    for host in standing.hosts:
        if host.name in starting and host.state == "up":
            tell(f"{host.name} is up")
        elif host.name in starting and host.state == "lost":
            tell(f"{host.name} did not come up, and is tried again: {host.note}")
    return {host.name for host in standing.hosts if host.state == "starting"}


@asynccontextmanager
async def only_one(folder: FleetFolder) -> AsyncIterator[None]:
    """Nobody else starts or ends that fleet meanwhile. Raises `FleetError` after a while."""
    lock = folder.starting
    deadline = time.monotonic() + STARTING_S + GRACE_S
    while not lock.take(locks.own(folder.root)):
        if time.monotonic() > deadline:
            who = f" ({holder.pid})" if (holder := lock.holder()) else ""
            raise FleetError(
                f"is still being started or ended by another process{who}",
                where=folder.root.name,
                remedy=f"Try again later; {folder.log} says how far it is",
            )
        await asyncio.sleep(POLL_S)
    try:
        yield
    finally:
        lock.free()


def _must_suit(standing: FleetStanding, fleet: Fleet) -> None:
    """Raises `UsageError`, `FleetError` where the fleet that is up cannot be used."""
    if fleet.scheduler is None:
        fleet = replace(fleet, scheduler=standing.fleet.scheduler)
    if standing.fleet != fleet:
        raise UsageError(
            f"the fleet {fleet.name} is up with another hosts file",
            remedy=f"End it first with {fleet.command('down')}",
        )
    if since := expired(standing.secrets):
        raise FleetError(
            f"its certificate expired on {since}",
            where=fleet.name,
            remedy=f"End the fleet with {fleet.command('down')}, and start it again",
        )


async def _start_keeper(fleet: Fleet, workspace: Workspace, folder: FleetFolder) -> None:
    must_submit(fleet.hosts)
    secrets = await _secrets(fleet)
    posting = KeeperPosting(fleet, str(workspace.root), secrets)
    files.make_folder(folder.root)
    with opened_errors(folder.root / "keeper.err") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "workbench.fleet.keeper",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, stderr=errors,
            cwd="/", start_new_session=True,
        )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(codec.dumps(codec.to_plain(posting)))
    await process.stdin.drain()
    process.stdin.close()
    deadline = time.monotonic() + STARTING_S
    while folder.read() is None:
        if process.returncode is not None or time.monotonic() > deadline:
            raise _keeper_gone(fleet, folder, "did not start")
        await asyncio.sleep(POLL_S)


def _keeper_gone(fleet: Fleet, folder: FleetFolder, how: str) -> FleetError:
    """With the last line of what it said that may be the cause."""
    text = ""
    with suppress(OSError):
        text = (folder.root / "keeper.err").read_text(errors="replace").strip()
    lines = [line for line in text.splitlines() if not NO_CAUSE.match(line)]
    why = f": {OWN_ERROR.sub('', LOGGED.sub('', lines[-1])).rstrip('.')}" if lines else ""
    is_logged = folder.log.exists()
    return FleetError(
        f"the process that keeps its hosts up {how}"
        + (why or (", and does not say why" if is_logged else ", and has left no log")),
        where=fleet.name,
        remedy=f"See {folder.log}" if is_logged else None,
    )


async def _secrets(fleet: Fleet) -> Secrets:
    """New ones for a scheduler of our own, those of one that exists where it can be used.

    Raises `UsageError`, `FleetError`.
    """
    if fleet.scheduler is not None:
        secrets = await asyncio.to_thread(secrets_of, fleet.scheduler)
        await must_answer(fleet.scheduler, secrets)
        return secrets
    lone = [host.name for host in fleet.hosts if host.kind == "dask"]
    if lone:
        raise UsageError(
            "is a worker at a scheduler that exists, and none is named",
            where=lone[0],
            remedy="Name it with --scheduler tls://HOST:PORT, or in the hosts file",
        )
    return made()


async def go_down(workspace: Workspace, fleet: Fleet, tell: Tell) -> bool:
    """End a fleet and wait until its processes are gone, those that were stuck on hosts reached by
    SSH as well; False where none was up. What does not end is told.

    Raises
    ------
    UsageError : a campaign is measured with it.
    FleetError : somebody else is starting or ending it for too long, or another machine keeps it.
    """
    folder = FleetFolder.of(workspace, fleet.name)
    if not folder.root.exists():
        return False
    async with only_one(folder):
        folder.read()  # first: of one that another machine keeps nothing is known here
        if users := _users(folder):
            raise UsageError(
                f"{users} with it",
                where=fleet.name,
                remedy="Stop that first, with `s` on the screen Hosts or ctrl+c: the same command "
                "goes on later; or wait for its end",
            )
        return await _ended(folder, fleet, tell)


def _users(folder: FleetFolder) -> str:
    """What other processes measure with a fleet, in words; empty: nothing."""
    others = [each for each in Leases(folder.leases).measuring() if not each.is_ours]
    if not others:
        return ""
    names = ", ".join(f"{each.session} ({each.process})" for each in others)
    return f"{names} {'is' if len(others) == 1 else 'are'} measured"


async def _ended(folder: FleetFolder, fleet: Fleet, tell: Tell) -> bool:
    """A fleet that nobody else starts or ends meanwhile; whether it was up."""
    last, standing, holder = folder.last(), folder.read(), folder.keeping.holder()
    keepers = {standing.pid} if standing is not None else set()
    if holder is not None and is_keeper(holder.pid):  # also one that has not said so yet
        keepers.add(holder.pid)
    for pid in keepers:
        await _end_keeper(pid)
    folder.clear()
    folder.let_stay(False)
    # Those of the hosts file may have another address by now than those that were started.
    known = (*(last.fleet.hosts if last is not None else ()), *fleet.hosts)
    far = [host for host in known if host.kind == "ssh"]
    both = _end_strays(folder, tell), _end_far(folder, far, tell)
    for error in await asyncio.gather(*both, return_exceptions=True):
        if error is not None:
            raise error
    return bool(keepers)


async def _end_keeper(pid: int) -> None:
    with suppress(ProcessLookupError):  # it may have ended since
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + LEAVING_S  # it cancels jobs, and ends hosts
    while is_keeper(pid):
        if time.monotonic() > deadline:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # its workers end with it
            break
        await asyncio.sleep(POLL_S)


async def _end_strays(folder: FleetFolder, tell: Tell) -> None:
    """Workers and jobs that keepers have left; one that does not end keeps nobody else back."""
    ending = (*map(end_stray, folder.of_hosts()), cancel_left(folder))
    found = await asyncio.gather(*ending, return_exceptions=True)
    remove_certificates(folder)
    errors = [each for each in found if isinstance(each, BaseException)]
    for error in errors:
        if not isinstance(error, WorkbenchError | OSError):
            raise error
        tell(f"warning: {error}")


async def _end_far(folder: FleetFolder, hosts: Sequence[LabHost], tell: Tell) -> None:
    """What is left on hosts that are reached by SSH, each place once."""
    try:
        far = [(folder.owner(host.name), host) for host in hosts]
    except FleetError as error:
        tell(f"warning: what may be left on hosts was not looked at: {error}")
        return
    places = {(owner, h.address, h.port, h.folder): (owner, h) for owner, h in far}
    await reap_hosts(tuple(places.values()), tell)


async def let_end(folder: FleetFolder) -> None:
    """A fleet that is not up now ends with the campaigns that it comes up for."""
    async with only_one(folder):
        if folder.read() is None and not _users(folder):  # they start it again as it was
            folder.let_stay(False)


async def end_after(workspace: Workspace, fleet: Fleet, tell: Tell) -> None:
    """After a campaign, of which what was measured counts all the same: end the fleet, unless it
    stays up without one or another is measured with it, which then ends it."""
    folder = FleetFolder.of(workspace, fleet.name)
    if not folder.root.exists():
        return  # it was moved away: its keeper ends by itself, and no lock makes it anew
    try:
        async with only_one(folder):
            if folder.stays:
                return
            if users := _users(folder):
                tell(f"the fleet {fleet.name} stays up: {users} with it")
                return
            await _ended(folder, fleet, tell)
    except (WorkbenchError, OSError) as error:
        tell(f"warning: {error}")
