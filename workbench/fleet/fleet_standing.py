"""What is known of a fleet that is up: where its scheduler is, its certificate, its hosts.

It lies in the workspace, in a folder for each fleet, readable by its owner alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import signal
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import Literal

from workbench import files
from workbench.domain import codec
from workbench.domain.errors import LAB_FAILURE, WorkbenchError
from workbench.domain.fleets import Fleet
from workbench.fleet.security import Secrets
from workbench.locks import FileLock
from workbench.paths import Workspace
from workbench.probes.process import PROC, parse_state
from workbench.probes.this_machine import NOT_SAID, MachineIdentity

STRAY_S = 10.0
"""How long a worker whose keeper is gone may take to end by itself, and once it is killed."""
WORKER = b"workbench.fleet.lab_worker"
"""The module that a worker's process runs, as its command line has it; whose it is comes next."""
TRIES = 3
"""Starts of a host that fail before nobody waits for it."""
HostState = Literal["starting", "queued", "up", "lost"]


class FleetError(WorkbenchError):
    """A fleet is not up, has no host left, or one of them cannot be used."""

    title = "Fleet"
    exit_code = LAB_FAILURE


@dataclass(frozen=True)
class HostStanding:
    """A host as its keeper knows it."""

    name: str
    state: HostState
    note: str = ""
    pid: int = 0
    """Of a simulated host's process here."""
    starts: int = 0


@dataclass(frozen=True)
class FleetStanding:
    """A fleet that is up: its keeper's process and its scheduler's address."""

    fleet: Fleet
    pid: int
    scheduler: str
    secrets: Secrets
    hosts: tuple[HostStanding, ...] = ()
    machine: MachineIdentity = NOT_SAID
    """On which that process is."""

    @property
    def ready(self) -> bool:
        """Whether no host is still starting, and one is there, or in the queue of Slurm, or each
        was tried again in vain."""
        if any(host.state == "starting" for host in self.hosts):
            return False
        is_there = self.any_up or self.any_queued
        return is_there or all(host.starts >= TRIES for host in self.hosts)

    @property
    def any_up(self) -> bool:
        return any(host.state == "up" for host in self.hosts)

    @property
    def any_queued(self) -> bool:
        """Whether a job waits in the queue of Slurm, however long."""
        return any(host.state == "queued" for host in self.hosts)


@dataclass(frozen=True)
class SameFolder:
    """A folder by what the kernel knows it by: one that is made anew in its place is another."""

    path: Path
    device: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> SameFolder:
        """Raises `OSError` where it is not there."""
        found = path.stat()
        return cls(path, found.st_dev, found.st_ino)

    def must_be_there(self) -> None:
        """Raise `FleetError` where it was moved, removed or replaced since."""
        with suppress(OSError):
            if SameFolder.of(self.path) == self:
                return
        raise FleetError(
            "the folder of the workspace is not there any more: it was moved, removed or replaced",
            where=str(self.path),
            remedy="Put it back, and give the same command with the same --session: what was "
            "measured is in it",
        )


@dataclass(frozen=True)
class FleetFolder:
    """Where a fleet keeps what it knows, in a workspace."""

    root: Path

    @classmethod
    def of(cls, workspace: Workspace, name: str) -> FleetFolder:
        return cls(workspace.state / "fleet" / name)

    def host(self, name: str) -> Path:
        """The workspace of a simulated host."""
        return self.root / "hosts" / name

    def of_hosts(self) -> tuple[Path, ...]:
        """The workspaces of simulated hosts that there ever were."""
        return tuple(sorted((self.root / "hosts").glob("*/")))

    @property
    def leases(self) -> Path:
        """Who holds a host, and which campaigns share the fleet."""
        return self.root / "leases"

    def run(self, session: str) -> Path:
        """What of a run was fetched already."""
        return self.root / "runs" / session

    @property
    def stays(self) -> bool:
        """Whether it is to be up until `fleet down`; else it ends with the last campaign that is
        measured with it."""
        return self._staying.exists()

    def let_stay(self, stays: bool) -> None:
        """Say whether it is to be up until `fleet down`; whoever says so holds `starting`."""
        if stays:
            self._staying.touch(files.FILE)
        else:
            self._staying.unlink(missing_ok=True)

    @property
    def _staying(self) -> Path:
        return self.root / "stays"

    @property
    def log(self) -> Path:
        return self.root / "keeper.log"

    @property
    def commands_log(self) -> Path:
        """What commands that use the fleet log: the terminal is for their sentences."""
        return self.root / "commands.log"

    @property
    def starting(self) -> FileLock:
        """Held by whoever looks whether the fleet is up, and starts or ends it by that."""
        return FileLock(self.root / "starting.lock")

    @property
    def beginning(self) -> FileLock:
        """Held by whoever writes down what a run is begun with, until its session is begun."""
        return FileLock(self.root / "beginning.lock")

    @property
    def keeping(self) -> FileLock:
        """Held by the fleet's keeper for as long as it is there: there is one."""
        return FileLock(self.root / "keeper.lock")

    @property
    def _file(self) -> Path:
        return self.root / "standing.json"

    def any_queued(self) -> bool:
        """Whether the fleet is up, and a job of it waits in the queue of Slurm."""
        standing = self.read()
        return standing is not None and standing.any_queued

    def write(self, standing: FleetStanding) -> None:
        """Replace it whole."""
        files.make_folder(self.root)
        files.write_own(self._file, codec.dumps(codec.to_plain(standing)))

    def read(self) -> FleetStanding | None:
        """The fleet that is up; None where none is, or its keeper died. Raises `FleetError` where
        another machine keeps it, as whose process here none can be looked for."""
        found = self.last()
        if found is not None and not found.machine.is_here:
            node = found.machine.node
            raise FleetError(
                f"was started on {node} (process {found.pid}), and only there is known how it is",
                where=self.root.name,
                remedy=f"Give this command on {node}; where that machine is gone for good, remove "
                f"{self._file}, and look with `squeue --me` for jobs that are left",
            )
        return found if found is not None and is_keeper(found.pid) else None

    def last(self) -> FleetStanding | None:
        """The fleet that is up, or was when its keeper died; None where it ended in order."""
        try:
            return codec.from_plain(codec.loads(self._file.read_bytes()), FleetStanding)
        except (OSError, WorkbenchError):
            return None

    def owner(self, host: str) -> str:
        """Whose a worker is, told in its command line: no other fleet, and no fleet of the same
        name in another workspace or container, has the same. Raises `FleetError`."""
        # With the folder: one that was copied elsewhere has the same id.
        plain = "\0".join((self._id(), str(self.root), host))
        return hashlib.blake2b(plain.encode(), digest_size=8).hexdigest()

    def _id(self) -> str:
        """Random, made once: names of machines, folders and hosts are alike in containers of one
        image. Whoever asks keeps the fleet or ends it, and is alone in that.

        Raises `FleetError`.
        """
        path = self.root / "id"
        try:
            if found := path.read_text(errors="replace").strip():
                return found
        except FileNotFoundError:
            pass
        except OSError as error:
            raise _without_id(path, error) from error
        made = token_hex(16)
        try:
            files.make_folder(self.root)
            files.write_own(path, made.encode(), synced=True)
        except OSError as error:
            raise _without_id(path, error) from error
        return made

    def clear(self) -> None:
        self._file.unlink(missing_ok=True)

    def forget_run(self, session: str) -> None:
        with suppress(OSError):
            shutil.rmtree(self.run(session))


def _without_id(path: Path, error: OSError) -> FleetError:
    return FleetError(
        f"what its workers are told apart by cannot be kept: {error.strerror or error}",
        where=str(path),
        remedy="Make room there, and let it be read and written",
    )


def is_keeper(pid: int) -> bool:
    """Whether that process is a keeper of a fleet; a number may be another process by now."""
    return b"workbench.fleet.keeper" in _command(pid)


async def end_stray(folder: Path, owner: str = "") -> int:
    """End the worker that an earlier keeper left in a host's workspace; its process, 0 where it
    ended by itself or there was none.

    It ends by itself once its keeper is gone, unless somebody has stopped it, or it hangs.

    Parameters
    ----------
    folder : the workspace.
    owner : whose worker it is (`FleetFolder.owner`); empty: nobody else has that workspace.

    Raises
    ------
    FleetError
        Another fleet's worker is there, or one that stays and does not say whose it is (of an
        earlier version), or it does not end.
    """
    lock, loop = FileLock(Workspace(folder).engine_lock), asyncio.get_running_loop()
    deadline, killed = loop.time() + STRAY_S, 0
    while (holder := lock.holder()) is not None and is_worker(holder.pid):
        whose, is_late = _owner_of(holder.pid), loop.time() > deadline
        is_own = not owner or whose == owner
        if not is_own and (whose or is_late):  # else it may be ours, and ends by itself
            raise _of_another(holder.pid, whose, folder)
        if killed and is_late:
            raise FleetError(
                f"process {killed}, a worker of before, does not end though it was killed",
                where=str(folder),
                remedy="See what it waits for there: a disk or a network that hangs",
            )
        if is_own and not killed and (is_late or _is_stopped(holder.pid)):
            with suppress(ProcessLookupError):
                os.kill(holder.pid, signal.SIGKILL)
            killed, deadline = holder.pid, loop.time() + STRAY_S
        await asyncio.sleep(STRAY_S / 50)
    return killed


def _of_another(pid: int, whose: str, folder: Path) -> FleetError:
    if whose:
        return FleetError(
            f"another fleet measures there with the same folder (process {pid})",
            where=str(folder),
            remedy="Name another `folder` in the hosts file, or end that fleet",
        )
    return FleetError(
        f"a worker is there that does not say of which fleet it is (process {pid})",
        where=str(folder),
        remedy="End the fleet that started it, or that process; or name another `folder`",
    )


def is_worker(pid: int) -> bool:
    """Whether that process is the worker of a host."""
    return WORKER in _command(pid)


def _owner_of(pid: int) -> str:
    """Of a worker; empty where its command line names none."""
    words = _command(pid)
    rest = words[words.index(WORKER) + 1 :] if WORKER in words else []
    return rest[0].decode(errors="replace") if rest else ""


def _command(pid: int) -> list[bytes]:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _is_stopped(pid: int) -> bool:
    """Whether somebody has stopped it, so that it ends by itself only once it goes on."""
    try:
        return parse_state((PROC / str(pid) / "stat").read_text()) == "T"
    except OSError:
        return False


def with_host(standing: FleetStanding, host: HostStanding) -> FleetStanding:
    """The same with another state of a host."""
    others = {known.name: known for known in standing.hosts} | {host.name: host}
    return replace(standing, hosts=tuple(others.values()))
