"""The keeper of a fleet: the scheduler, and the worker of every host, in one process of its own.

It starts simulated hosts as processes here and real ones through asyncssh, starts again what was
lost, and holds the standard input of each worker: where it ends, however it ends, they end.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from workbench import __version__, files
from workbench.domain import codec
from workbench.domain.attaching import SshAddress
from workbench.domain.errors import LabGone, WorkbenchError
from workbench.domain.fleets import Fleet, LabHost
from workbench.fleet.fleet_standing import (
    FleetError,
    FleetFolder,
    FleetStanding,
    HostStanding,
    SameFolder,
    end_stray,
    with_host,
)
from workbench.fleet.hearing import Hearing
from workbench.fleet.leases import Leases
from workbench.fleet.named_scheduler import listening
from workbench.fleet.scheduler_route import must_be_reached
from workbench.fleet.security import Secrets, configure, expired, without_key
from workbench.fleet.slurm_jobs import (
    ASKING_S,
    ENDED,
    UNKNOWN_AFTER,
    remove_certificates,
    submitted,
)
from workbench.fleet.tasks import DOWN, LONGEST_WORD, PRELOAD, UP, Posting
from workbench.locks import own
from workbench.log import logger, open_log
from workbench.paths import Workspace
from workbench.probes.remote_shell import connect_by_ssh
from workbench.probes.this_machine import this_machine

if TYPE_CHECKING:
    import asyncssh
    from distributed import Scheduler

AT_ONCE = 8
"""Hosts that are started at the same time."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""Before a host that was lost is started again: twice as long each time that it dies at once."""
HELD_S = 60.0
"""A host that was up for that long has not died at once."""
STARTING_S = 120.0
BEGINNING_S = 30.0
"""How long a host that is reached by SSH may take to begin a program."""
GRACE_S = 10.0
"""How long a worker may take to tear down what it measures."""
AWAY_S = 3.0
"""A worker that the scheduler does not know any more for that long, though its process is there,
is ended and started again."""
ENDING_S = 2 * ASKING_S + GRACE_S
"""How long a keeper that ends waits for its hosts, all at once: a command of Slurm that runs, and
`scancel` after it."""
LEAVING_S = ENDING_S + GRACE_S
"""How long a keeper waits for the one before it to be gone."""
MOST_STDERR = 4096
"""Bytes at the end of a worker's standard error that are looked at."""
MOST_KEPT = 2**20
"""Bytes of the standard error of a worker of before that are kept."""
LONGEST_LINE = 200
"""Characters of it that are told."""
RULE = "-----"
"""How a line ends with which Dask divides what it says; it tells nothing."""
THERE_S = 10.0
"""How long a worker that somebody else starts is waited for before it counts as not there."""
LOOKING_S = 2.0
UNUSED = 2
"""Between looks at whether anybody uses the fleet, and how many in a row find nobody before it
ends."""

log = logger("fleet")


class WorkerOutput(Protocol):
    """What a worker writes, line by line."""

    async def readline(self) -> bytes: ...


@dataclass(frozen=True)
class WorkerEnd:
    """How a worker's process ended.

    Attributes
    ----------
    code : exit code, by a signal negative; None where nobody said it.
    stderr : the last line of its standard error.
    """

    code: int | None
    stderr: str = ""

    def __str__(self) -> str:
        if self.code is None:
            how = "ended, its host did not say how"
        elif self.code < 0:
            how = f"was killed by signal {-self.code}"
        else:
            how = f"ended with exit code {self.code}"
        return how + (f": {self.stderr}" if self.stderr else "")


@dataclass(frozen=True)
class Started:
    """A worker that was started, here or there."""

    out: WorkerOutput
    write: Callable[[bytes], Awaitable[None]]
    kill: Callable[[], None]
    ended: Callable[[], Awaitable[WorkerEnd]]
    last: Callable[[], str]
    """The last line of its standard error so far."""
    pid: int = 0


@dataclass
class Keeper:
    """Keeps the hosts of one fleet up."""

    fleet: Fleet
    folder: FleetFolder
    secrets: Secrets
    scheduler: str
    present: Callable[[], Collection[str]]
    """Names of the hosts that the scheduler hears of."""
    standing: FleetStanding = field(init=False)

    def __post_init__(self) -> None:
        hosts = tuple(HostStanding(host.name, "starting") for host in self.fleet.hosts)
        self.standing = FleetStanding(
            self.fleet, os.getpid(), self.scheduler, self.secrets, hosts, this_machine()
        )
        self._few = asyncio.Semaphore(AT_ONCE)
        self.folder.write(self.standing)
        self._place = SameFolder.of(self.folder.root)

    async def keep(self, host: LabHost) -> None:
        """Start a host's worker, and again whenever it was lost, until cancelled."""
        loop, pause_s, starts = asyncio.get_running_loop(), FIRST_PAUSE_S, 0
        while True:
            starts += 1
            began = loop.time()
            try:
                why = await self._once(host, starts)
            except (OSError, WorkbenchError) as error:
                why = str(error) or type(error).__name__
            except Exception as error:  # else nobody would start it again, or say that it is lost
                log.error("host not kept", host=host.name, exc_info=error)
                why = printable(f"{type(error).__name__}: {error}"[:LONGEST_LINE])
            if (own := asyncio.current_task()) is not None and own.cancelling():
                raise asyncio.CancelledError  # what broke as it ended is no reason to start again
            if since := self._expired():
                ended = self.fleet.command("down")
                why = f"the fleet's certificate expired on {since}: end it with {ended}"
            why = without_key(why, self.secrets)
            log.warning("host lost", host=host.name, why=why)
            self._note(HostStanding(host.name, "lost", why, starts=starts))
            pause_s = FIRST_PAUSE_S if loop.time() - began > HELD_S else pause_s * 2
            await asyncio.sleep(min(pause_s, LONGEST_PAUSE_S))

    async def _once(self, host: LabHost, starts: int) -> str:
        """From a worker's start to its end; why it ended. Raises `FleetError`, `OSError`."""
        self._place.must_be_there()  # else it would be made anew, with a worker in it
        if host.kind == "dask":
            return await self._elsewhere(host, starts)
        if host.kind == "slurm":
            return await self._as_job(host, starts)
        if host.kind == "simulated":
            opened = self._here(host)
        else:
            opened = _over_ssh(host, self.folder.owner(host.name))
        async with opened as worker:
            try:
                async with self._few, asyncio.timeout(STARTING_S):
                    await worker.write(codec.dumps(codec.to_plain(self._posting(host))) + b"\n")
                    word, _, said = await _word(worker.out)
            except TimeoutError:
                last = f"; the last that it wrote: {said}" if (said := worker.last()) else ""
                return f"did not say within {STARTING_S:g} s that it is up{last}"
            if word != UP:
                return said or f"{await worker.ended()} (before it was there)"
            version, _, address = said.partition(" ")
            if version != __version__:
                return f"has workbench {version}, this is {__version__}; install the same there"
            if self.fleet.scheduler is None:  # one that exists may be reached by other ways
                await must_be_reached(address, self.secrets)
            self._note(HostStanding(host.name, "up", pid=worker.pid, starts=starts))
            log.info("host up", host=host.name)
            ending = asyncio.create_task(_ending(worker))
            vanished = asyncio.create_task(self._vanished(host.name))
            try:
                await asyncio.wait((ending, vanished), return_when=asyncio.FIRST_COMPLETED)
                if ending.done():
                    return ending.result()
                worker.kill()
                return "answered no more, though its process was there, and was ended"
            finally:
                for task in (ending, vanished):
                    task.cancel()
                await asyncio.gather(ending, vanished, return_exceptions=True)

    async def _elsewhere(self, host: LabHost, starts: int) -> str:
        """From when the scheduler hears of a worker that somebody else keeps to when it does not
        any more."""
        until = asyncio.get_running_loop().time() + THERE_S
        while host.name not in self.present():
            if asyncio.get_running_loop().time() > until:
                return (
                    f"is not at the scheduler; there starts it: dask worker {self.scheduler} "
                    f"--name {host.name} --nthreads 1 --no-nanny --resources lab=1 "
                    f"--preload {PRELOAD}, with the certificates"
                )
            await asyncio.sleep(AWAY_S / 6)
        self._note(HostStanding(host.name, "up", starts=starts))
        log.info("host up", host=host.name)
        await self._vanished(host.name)
        return "left the scheduler"

    async def _as_job(self, host: LabHost, starts: int) -> str:
        """From when Slurm takes a host's job to when its worker is gone."""
        async with submitted(
            host, self.scheduler, self.folder, self.secrets, self.fleet.ports.workers
        ) as job:
            note = f"its job {job.number} waits in the queue of Slurm"
            self._note(HostStanding(host.name, "queued", note, starts=starts))
            unknown = 0
            while host.name not in self.present():
                state = await job.state()
                if state is not None:  # else it is in the queue, for all that is known
                    unknown = 0 if state else unknown + 1
                if (state and state in ENDED) or unknown >= UNKNOWN_AFTER:
                    return (
                        f"its job {job.number} ended before its worker was there"
                        f"{f' ({state})' if state else ''}; see {self.folder.root / 'jobs'}"
                    )
                await asyncio.sleep(AWAY_S / 3)
            self._note(HostStanding(host.name, "up", f"job {job.number} of Slurm", starts=starts))
            log.info("host up", host=host.name, job=job.number)
            await self._vanished(host.name)
            return f"its job {job.number} ended, or its worker answers no more"

    async def _vanished(self, name: str) -> None:
        """Return once the scheduler has not heard of it for `AWAY_S`.

        Looks are counted, and not the time: where this process stood still itself, it would take
        every host for gone before it looks again.
        """
        pause_s = AWAY_S / 3
        missed, most = 0, STARTING_S / pause_s
        while missed < most:
            if name in self.present():
                missed, most = 0, AWAY_S / pause_s
            else:
                missed += 1
            await asyncio.sleep(pause_s)

    def _posting(self, host: LabHost) -> Posting:
        simulated = host.kind == "simulated"
        folder = str(self.folder.host(host.name)) if simulated else host.folder
        listen = self.fleet.listen if simulated else ""
        ports = self.fleet.ports.workers
        return Posting(host, folder, self.scheduler, listen, self.secrets, ports)

    @asynccontextmanager
    async def _here(self, host: LabHost) -> AsyncIterator[Started]:
        await end_stray(self.folder.host(host.name))
        wrote = self.folder.root / f"{host.name}.err"
        with opened_errors(wrote) as errors:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "workbench.fleet.lab_worker",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=errors,
                cwd="/", start_new_session=True,
            )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        stdin = process.stdin

        async def write(text: bytes) -> None:
            with suppress(ConnectionError):  # its end is read from its output
                stdin.write(text)
                await stdin.drain()

        async def ended() -> WorkerEnd:
            return WorkerEnd(await process.wait())

        try:
            last = partial(last_line_in, wrote)
            yield Started(process.stdout, write, process.kill, ended, last, process.pid)
        finally:
            stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE_S):
                    await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()

    def _expired(self) -> str:
        """Since when the fleet's certificate holds no more, in words; empty where it does."""
        try:
            return expired(self.secrets)
        except ValueError:  # it is none
            return ""

    def _note(self, host: HostStanding) -> None:
        self.standing = with_host(self.standing, host)
        with suppress(OSError, FleetError):
            self._place.must_be_there()
            self.folder.write(self.standing)


def opened_errors(path: Path) -> BinaryIO:
    """Where a process's standard error goes, for its owner's eyes; the end of what the one before
    it wrote, at most `MOST_KEPT`, is kept beside it as `.err.before`."""
    with suppress(OSError), path.open("rb") as before:
        before.seek(max(0, path.stat().st_size - MOST_KEPT))
        if said := before.read(MOST_KEPT):
            with open(path.with_suffix(".err.before"), "wb", opener=files.opener) as kept:
                kept.write(said)
    return open(path, "wb", opener=files.opener)


async def _ending(worker: Started) -> str:
    """Why a worker ended, once it has."""
    said = ""
    while line := await worker.out.readline():
        word, _, text = line.decode(errors="replace").strip().partition(" ")
        said = text if word == DOWN else said
    end = await worker.ended()
    return said or str(end)


async def _word(out: WorkerOutput) -> tuple[str, str, str]:
    line = (await out.readline())[:LONGEST_WORD].decode(errors="replace").strip()
    return line.partition(" ")


@asynccontextmanager
async def _over_ssh(host: LabHost, owner: str) -> AsyncIterator[Started]:
    """A worker on another host, which ends when the connection does; one that is stuck then is
    ended by the next that is started there, or with the fleet (`host_reaping`).

    Raises `LabError`, and `LabGone` where the connection breaks while the body runs.
    """
    import asyncssh

    address = SshAddress(host.address, host.port, host.user)
    connection = await connect_by_ssh(address)
    try:
        async with connection, _worker_at(connection, host, owner) as worker:
            yield worker
    except (asyncssh.Error, ConnectionError) as error:  # of whatever the body reads or writes
        raise LabGone(
            f"its SSH connection broke: {str(error) or type(error).__name__}",
            where=str(address),
            remedy="See that it runs and is reached by SSH; it is tried again meanwhile",
        ) from error


@asynccontextmanager
async def _worker_at(
    connection: asyncssh.SSHClientConnection, host: LabHost, owner: str
) -> AsyncIterator[Started]:
    words = [host.python, "-m", "workbench.fleet.lab_worker", owner, __version__]
    command = shlex.join(words)
    try:
        async with asyncio.timeout(BEGINNING_S):
            process = await connection.create_process(command, encoding=None)
    except TimeoutError:
        raise LabGone(
            f"begins no program within {BEGINNING_S:g} s, though it is reached by SSH",
            where=host.name,
            remedy="See what it waits for: a disk that hangs; it is tried again meanwhile",
        ) from None
    # Read all the time, else a worker that writes much there stands still.
    line = LastLine()
    errors = asyncio.create_task(line.follow(process.stderr.read))

    async def write(text: bytes) -> None:
        with suppress(ConnectionError):  # its end is read from its output
            process.stdin.write(text)
            await process.stdin.drain()

    async def ended() -> WorkerEnd:
        try:
            async with asyncio.timeout(GRACE_S):
                await errors
                await process.wait_closed()
        except TimeoutError:
            return WorkerEnd(None)
        return WorkerEnd(process.returncode, str(line))

    try:
        yield Started(process.stdout, write, connection.abort, ended, line.__str__)
    finally:
        errors.cancel()
        await asyncio.gather(errors, return_exceptions=True)


class LastLine:
    """The last line of a stream so far; bounded, and without what a terminal would obey."""

    def __init__(self) -> None:
        self._text = b""

    async def follow(self, read: Callable[[int], Awaitable[bytes]]) -> None:
        """Until the stream ends."""
        while piece := await read(MOST_STDERR):
            self._text = (self._text + piece)[-MOST_STDERR:]

    def __str__(self) -> str:
        return _last_of(self._text)


async def last_line(read: Callable[[int], Awaitable[bytes]]) -> str:
    """Of a stream, once it has ended; as `LastLine`."""
    line = LastLine()
    await line.follow(read)
    return str(line)


def last_line_in(path: Path) -> str:
    """Of a file; as `LastLine`, empty where it cannot be read."""
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - MOST_STDERR))
        return _last_of(file.read(MOST_STDERR))
    return ""


def _last_of(text: bytes) -> str:
    lines = (line.strip() for line in reversed(text.decode(errors="replace").splitlines()))
    line = next((line for line in lines if line and not line.endswith(RULE)), "")
    return printable(line[:LONGEST_LINE])


def printable(text: str) -> str:
    """Without what a terminal would obey."""
    return "".join(c if c.isprintable() else "·" for c in text)


async def keep_fleet(fleet: Fleet, folder: FleetFolder, secrets: Secrets) -> None:
    """Be the keeper until told to end (SIGTERM), or until no campaign is measured any more where
    the fleet does not stay up without one."""
    configure()
    ending = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, ending.set)
    async with _alone(folder), _scheduling(fleet, secrets) as (address, present):
        keeper = Keeper(fleet, folder, secrets, address, present)
        hosts = [asyncio.create_task(keeper.keep(host)) for host in fleet.hosts]
        unused = 0
        try:
            while not ending.is_set() and unused < UNUSED:
                with suppress(TimeoutError):
                    await asyncio.wait_for(ending.wait(), LOOKING_S)
                unused = 0 if _is_used(folder) else unused + 1
        finally:
            folder.clear()  # first: who comes now starts another, which waits for this one
            await _end_all(dict(zip((host.name for host in fleet.hosts), hosts, strict=True)))
            remove_certificates(folder)


async def _end_all(hosts: Mapping[str, asyncio.Task[None]]) -> None:
    """End what is kept up, by host, within `ENDING_S`: what takes longer ends with this process, or
    is looked for by who ends the fleet."""
    for task in hosts.values():
        task.cancel()
    if not hosts:
        return
    _, late = await asyncio.wait(hosts.values(), timeout=ENDING_S)
    if names := [name for name, task in hosts.items() if task in late]:
        log.error("hosts did not end in time", hosts=", ".join(names), seconds=ENDING_S)


def _is_used(folder: FleetFolder) -> bool:
    """By whoever wants it up until `fleet down`, or by a campaign whose process is there."""
    return folder.stays or bool(Leases(folder.leases).measuring())


@asynccontextmanager
async def _alone(folder: FleetFolder) -> AsyncIterator[None]:
    """Be the only keeper of a fleet. Raises `FleetError` where another one stays."""
    lock = folder.keeping
    until = asyncio.get_running_loop().time() + LEAVING_S
    while not lock.take(own(folder.root)):
        if asyncio.get_running_loop().time() > until:
            who = f" ({holder.pid})" if (holder := lock.holder()) else ""
            raise FleetError(
                f"is kept up by another process{who} already",
                where=str(folder.root),
                remedy="End it with `workbench fleet down`",
            )
        await asyncio.sleep(LOOKING_S / 10)
    try:
        yield
    finally:
        lock.free()


@asynccontextmanager
async def _scheduling(
    fleet: Fleet, secrets: Secrets
) -> AsyncIterator[tuple[str, Callable[[], Collection[str]]]]:
    """The address of a scheduler, of ours or that exists, and names of the hosts it hears of."""
    from distributed import Scheduler

    if fleet.scheduler is not None:
        async with listening(fleet.scheduler, secrets) as present:
            yield fleet.scheduler.address, present
        return
    ours = Scheduler(
        host=fleet.listen, port=fleet.ports.scheduler, security=secrets.security(),
        dashboard=False, protocol="tls",
    )  # fmt: skip
    async with AsyncExitStack() as ending:
        try:
            scheduler = await ending.enter_async_context(ours)
        except RuntimeError as error:  # Dask's, around what it was
            at = f"port {fleet.ports.scheduler} of " if fleet.ports.scheduler else ""
            raise FleetError(
                f"nothing can listen at {at}{fleet.listen}: {error.__cause__ or error}",
                where=fleet.name,
                remedy="End what listens there, or change `ports` or `listen` of the hosts file",
            ) from error
        hearing = Hearing()

        def present() -> set[str]:
            silent = _silent(scheduler, hearing)
            workers = scheduler.workers.values()
            return {str(worker.name) for worker in workers if worker.address not in silent}

        removing = asyncio.create_task(_remove_silent(scheduler, hearing))
        try:
            yield scheduler.address, present
        finally:
            removing.cancel()
            await asyncio.gather(removing, return_exceptions=True)


def _silent(scheduler: Scheduler, hearing: Hearing) -> set[str]:
    """Addresses of workers that count as gone."""
    hearing.keep(scheduler.workers)
    workers = tuple(scheduler.workers.values())
    return {each.address for each in workers if hearing.is_silent(each.address, each.last_seen)}


async def _remove_silent(scheduler: Scheduler, hearing: Hearing) -> None:
    """Forget workers that count as gone at two looks in a row: one that is started again has the
    same name, and where this process stood still what they said meanwhile is heard in between."""
    before: set[str] = set()
    while True:
        silent = _silent(scheduler, hearing)
        for address in silent & before:
            try:
                await scheduler.remove_worker(address, stimulus_id="silent")
            except Exception as error:  # the others are to be looked at, too
                log.error("a silent worker was not removed", where=address, exc_info=error)
        before = silent
        await asyncio.sleep(AWAY_S / 3)


@dataclass(frozen=True)
class KeeperPosting:
    """What a keeper is told on its standard input."""

    fleet: Fleet
    workspace: str
    secrets: Secrets


def main() -> None:
    """Entry point of the process (`python -m workbench.fleet.keeper`)."""
    posting = codec.from_plain(codec.loads(sys.stdin.buffer.read()), KeeperPosting)
    folder = FleetFolder.of(Workspace(Path(posting.workspace)), posting.fleet.name)
    close = open_log(folder.log)
    try:
        asyncio.run(keep_fleet(posting.fleet, folder, posting.secrets))
    except Exception as error:
        log.error("the keeper failed", exc_info=error)
        raise
    finally:
        close()


if __name__ == "__main__":
    main()
