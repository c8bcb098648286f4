"""What a fleet has left on a host that it reached by SSH: a worker that does not end, and what that
deployed.

A worker ends with its connection, but one that is stuck does not, and one that was killed tears
nothing down. Here is the command's side, and the process there (`python -m
workbench.fleet.host_reaping`), which is told on its standard input whose worker is meant.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.domain import codec
from workbench.domain.attaching import SshAddress
from workbench.domain.counts import counted
from workbench.domain.errors import WorkbenchError
from workbench.domain.fleets import LabHost
from workbench.engine.runs.strays import reap_strays
from workbench.fleet.dispatched import Tell
from workbench.fleet.fleet_standing import FleetError, end_stray
from workbench.fleet.keeper import last_line
from workbench.fleet.tasks import LONGEST_WORD
from workbench.locks import HostLock
from workbench.log import without_log
from workbench.paths import measuring_lock, workspace
from workbench.probes.remote_shell import connect_by_ssh

LONGEST_S = 60.0
"""For one host: it is reached, a worker has its time to end by itself, what is left is removed."""


@dataclass(frozen=True)
class HostReaping:
    """Whose worker is meant: the host's folder, and `FleetFolder.owner` of the host."""

    folder: str
    owner: str


@dataclass(frozen=True)
class HostReaped:
    """What was left on a host, and is there no more.

    Attributes
    ----------
    pid : of a worker that had to be killed; 0 where none had to.
    strays : names of containers and the like.
    failure : why nothing was looked at, as a sentence; empty where it was.
    """

    pid: int = 0
    strays: tuple[str, ...] = ()
    failure: str = ""

    def __str__(self) -> str:
        """As words; empty where nothing was left."""
        if self.failure:
            return f"what may be left there was not looked at: {self.failure}"
        said = [f"its worker (process {self.pid}) did not end and was killed"] if self.pid else []
        if self.strays:
            said.append(f"{counted(len(self.strays), 'stray')} removed: {', '.join(self.strays)}")
        return "; ".join(said)


async def reap_hosts(hosts: Sequence[tuple[str, LabHost]], tell: Tell) -> None:
    """Have hosts of kind `ssh`, each with the owner of its workers, end what is left there: all at
    once, so that it takes no more than `LONGEST_S` however many are not reached. A host may be at
    several addresses, which are told then."""
    names = [host.name for _, host in hosts]

    async def one(owner: str, host: LabHost) -> None:
        if said := str(await reaped_over_ssh(host, owner)):
            many = names.count(host.name) > 1
            where = f" at {SshAddress(host.address, host.port, host.user)}, {host.folder}"
            tell(f"{host.name}{where if many else ''}: {said}")

    await asyncio.gather(*(one(owner, host) for owner, host in hosts))


async def reaped_over_ssh(host: LabHost, owner: str) -> HostReaped:
    """What was left on a host; one that is not reached says so, within `LONGEST_S`."""
    import asyncssh

    try:
        async with asyncio.timeout(LONGEST_S):
            return await _reaped(host, owner)
    except TimeoutError:
        return HostReaped(failure=f"it did not answer within {LONGEST_S:g} s")
    except WorkbenchError as error:
        return HostReaped(failure=str(error))
    except (asyncssh.Error, OSError) as error:
        return HostReaped(failure=str(error) or type(error).__name__)


async def _reaped(host: LabHost, owner: str) -> HostReaped:
    command = shlex.join([host.python, "-m", "workbench.fleet.host_reaping"])
    asked = codec.dumps(codec.to_plain(HostReaping(host.folder, owner)))
    async with await connect_by_ssh(SshAddress(host.address, host.port, host.user)) as connection:
        process = await connection.create_process(command, encoding=None)
        errors = asyncio.create_task(last_line(process.stderr.read))
        try:
            process.stdin.write(asked + b"\n")
            answer = (await process.stdout.readline())[:LONGEST_WORD]
            why = "" if answer else await errors or "it said nothing"
        finally:
            errors.cancel()
            await asyncio.gather(errors, return_exceptions=True)
    if why:
        raise FleetError(f"the program for that ended there: {why}", where=host.name)
    return codec.from_plain(codec.loads(answer), HostReaped)


async def reaped_here(asked: HostReaping) -> HostReaped:
    """End what that fleet has left on this host; a worker of another is left alone."""
    folder = workspace(Path(asked.folder)).root
    if not folder.is_dir():
        return HostReaped()
    try:
        pid = await end_stray(folder, asked.owner)
        return HostReaped(pid, await reap_strays(HostLock(measuring_lock())))
    except WorkbenchError as error:
        return HostReaped(failure=str(error))


def main() -> None:
    """Entry point of the process there."""
    without_log()  # standard output is for the answer
    line = sys.stdin.buffer.readline(LONGEST_WORD)
    found = asyncio.run(reaped_here(codec.from_plain(codec.loads(line), HostReaping)))
    sys.stdout.buffer.write(codec.dumps(codec.to_plain(found)) + b"\n")


if __name__ == "__main__":
    main()
