"""Who holds a lab host for himself, and which campaign goes before which.

A lease ends by its time, or with the process that keeps it: whoever reads leases looks whether that
is still there, so that none outlives its owner. One of another machine, with which the workspace is
shared, is taken for there.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TypeVar

from workbench import files
from workbench.domain import codec
from workbench.domain.errors import UsageError, WorkbenchError
from workbench.probes.process import started
from workbench.probes.this_machine import NOT_SAID, MachineIdentity, this_machine

T = TypeVar("T")

HELD_BY = "held by"
"""How what is told of a lease begins: no other reason to give a host nothing does."""
LONGEST_S = 30 * 86400.0
PATIENCE_S, POLL_S = 5.0, 0.02
"""How long somebody else may take to change leases, and how often one that waits looks again."""


@dataclass(frozen=True)
class Lease:
    """A host that a person holds; the fleet gives it nothing meanwhile.

    Attributes
    ----------
    by, why : who holds it, and what for.
    since, until : seconds since the epoch; `until` None: as long as process `pid` is there.
    pid, began : that process and when it started; 0 and None where a time ends the lease.
    machine : on which that process is.
    """

    host: str
    by: str
    since: float
    why: str = ""
    until: float | None = None
    pid: int = 0
    began: float | None = None
    machine: MachineIdentity = NOT_SAID

    def ended(self, now: float) -> str:
        """Why it holds no more, as a sentence without its full stop; empty: it does."""
        if self.until is not None:
            return f"the time of {self.by} is over" if now >= self.until else ""
        if not self.machine.is_here:
            return ""
        if self.began is None or started(self.pid) != self.began:
            return f"the process by which {self.by} held it (pid {self.pid}) is gone"
        return ""

    @property
    def told(self) -> str:
        """Who holds it and until when."""
        left = "it is given back"
        if self.until is not None:
            left = time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(self.until))
        elif place := self.machine.place:
            left += f"{place} (process {self.pid})"
        return f"{HELD_BY} {self.by} until {left}" + (f": {self.why}" if self.why else "")


@dataclass(frozen=True)
class Contender:
    """A campaign that a process measures with the fleet."""

    session: str
    priority: int
    pid: int
    began: float | None
    machine: MachineIdentity = NOT_SAID
    """On which that process is."""

    @property
    def is_ours(self) -> bool:
        """Whether it is this process."""
        return self.machine.is_here and self.pid == os.getpid()

    @property
    def process(self) -> str:
        """That process in words, with its machine where that is another."""
        return f"process {self.pid}{self.machine.place}"

    @property
    def is_there(self) -> bool:
        """Whether that process still is; one of another machine may be."""
        if not self.machine.is_here:
            return True
        return self.began is not None and started(self.pid) == self.began


@dataclass(frozen=True)
class Leases:
    """Those of one fleet, as files in its folder."""

    root: Path

    def take(self, lease: Lease) -> Lease | None:
        """What the same person held it by before, which is replaced; None where nobody did. Raises
        `UsageError` where another person holds the host, or another process keeps it."""
        with self._alone():
            held = self._read(self._hold(lease.host), Lease)
            if held is not None and held.ended(time.time()):
                held = None
            if held is not None:
                if held.by != lease.by:
                    raise UsageError(
                        f"is {held.told}",
                        where=lease.host,
                        remedy="Ask for it, or wait until it is free",
                    )
                self._must_not_be_kept(held, lease.pid)
            self._write(self._hold(lease.host), lease)
            return held

    def give_back(self, host: str, by: str, pid: int = 0) -> Lease | None:
        """End a lease; None where there is none. Raises `UsageError` where it is another's, or is
        kept by another process than `pid`, which would not know."""
        with self._alone():
            held = self._read(self._hold(host), Lease)
            if held is None:
                return None
            if held.by != by and not held.ended(time.time()):
                raise UsageError(
                    f"is {held.told}",
                    where=host,
                    remedy="Only who holds it gives it back; its time, or the end of the process "
                    "that keeps it, ends it as well",
                )
            if not held.ended(time.time()):
                self._must_not_be_kept(held, pid)
            self._hold(host).unlink(missing_ok=True)
            return held

    def held(self) -> tuple[dict[str, Lease], tuple[str, ...]]:
        """By host; and of leases that ended by themselves since somebody last looked, why."""
        now, found, over = time.time(), dict[str, Lease](), []
        for path in sorted(self.root.glob("hold-*.json")):
            lease = self._read(path, Lease)
            if lease is None:
                continue
            why = lease.ended(now)
            if not why:
                found[lease.host] = lease
                continue
            if self._removed(path, lease):
                over.append(f"{lease.host} is held no more: {why}")
        return found, tuple(over)

    @contextmanager
    def contending(self, session: str, priority: int = 0) -> Iterator[None]:
        """A campaign is measured while the body runs. Raises `UsageError` where another machine
        measures it."""
        path = self._run(session)
        own = Contender(session, priority, os.getpid(), started(os.getpid()), this_machine())
        with self._alone():
            left = self._read(path, Contender)
            if left is not None and not left.machine.is_here:
                raise UsageError(
                    f"is measured by {left.process}",
                    where=session,
                    remedy=f"Stop it there; {_gone_for_good(left.machine, path)}",
                )
            self._write(path, own)
        try:
            yield
        finally:
            if path.exists():  # else the workspace is gone, and would be made anew
                self._forget(path, own)

    def _forget(self, path: Path, own: Contender) -> None:
        with suppress(OSError, WorkbenchError), self._alone():  # else it ends with the process
            left = self._read(path, Contender)
            if left is None or (left.pid, left.began) == (own.pid, own.began):
                path.unlink(missing_ok=True)

    def measuring(self) -> tuple[Contender, ...]:
        """The campaigns that are measured now, by their sessions' names."""
        paths = sorted(self.root.glob("run-*.json"))
        found = (self._read(path, Contender) for path in paths)
        return tuple(each for each in found if each is not None and each.is_there)

    def prefer(self, session: str, priority: int) -> None:
        """Say what goes before what. Raises `UsageError` where that is not measured now."""
        with self._alone():
            own = self._read(self._run(session), Contender)
            if own is None or not own.is_there:
                raise UsageError(
                    "is not measured by this fleet now", where=session, remedy="See workbench ls"
                )
            self._write(self._run(session), replace(own, priority=priority))

    def before(self, session: str) -> Contender | None:
        """The campaign that goes first; None where none has a higher priority."""
        own, found = self._read(self._run(session), Contender), None
        priority = own.priority if own is not None else 0
        for path in self.root.glob("run-*.json"):
            other = self._read(path, Contender)
            if other is None or other.session == session:
                continue
            if not other.is_there:
                self._removed(path, other)
            elif other.priority > (found.priority if found else priority):
                found = other
        return found

    def refused(self, session: str, hosts: tuple[str, ...]) -> Mapping[str, str]:
        """Hosts that a campaign is to give nothing now, with the reason."""
        held, _ = self.held()
        said = {host: lease.told for host, lease in held.items() if host in hosts}
        first = self.before(session)
        if first is not None:
            why = f"{first.session}{first.machine.place} goes first (priority {first.priority})"
            said = dict.fromkeys(hosts, why) | said
        return said

    def _must_not_be_kept(self, held: Lease, pid: int) -> None:
        """Raises `UsageError` where a process keeps it that is not `pid` here: accounts may be
        shared."""
        if held.pid == 0 or (held.pid == pid and held.machine.is_here):
            return
        remedy = f"A command that runs keeps it (pid {held.pid}{held.machine.place}): end that "
        remedy += "with ctrl+c"
        if not held.machine.is_here:
            remedy += f"; {_gone_for_good(held.machine, self._hold(held.host))}"
        raise UsageError(f"is {held.told}", where=held.host, remedy=remedy)

    def _run(self, session: str) -> Path:
        return self.root / f"run-{session}.json"

    def _hold(self, host: str) -> Path:
        return self.root / f"hold-{host}.json"

    def _read(self, path: Path, kind: type[T]) -> T | None:
        try:
            return codec.from_plain(codec.loads(path.read_bytes()), kind)
        except (OSError, WorkbenchError):
            return None

    def _write(self, path: Path, what: object) -> None:
        files.write_own(path, codec.dumps(codec.to_plain(what)))

    def _removed(self, path: Path, what: Lease | Contender) -> bool:
        """Remove what is over; not where somebody changes leases just now: then whoever looks next
        does. For a campaign's loop, which waits for nobody here."""
        try:
            with self._alone(patience_s=0.0):
                if self._read(path, type(what)) != what:
                    return False
                path.unlink(missing_ok=True)
                return True
        except (OSError, WorkbenchError):
            return False

    @contextmanager
    def _alone(self, patience_s: float | None = None) -> Iterator[None]:
        """Nobody else changes leases meanwhile; the kernel frees that with the process. Raises
        `UsageError` where somebody else takes longer than that."""
        files.make_folder(self.root)
        patience_s = PATIENCE_S if patience_s is None else patience_s
        path, until = self.root / "leases.lock", time.monotonic() + patience_s
        with open(path, "a", opener=files.opener) as file:
            while not _taken(file):
                if time.monotonic() >= until:
                    raise UsageError(
                        f"another process has been changing leases for over {patience_s:g} s",
                        where=str(path),
                        remedy=f"See which with `fuser {path}`: it may be stopped",
                    )
                time.sleep(POLL_S)
            yield


def _taken(file: IO[str]) -> bool:
    """Whether nobody else has that lock, and it is ours from now on."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _gone_for_good(machine: MachineIdentity, path: Path) -> str:
    """What to do where nobody can end that on its machine."""
    return f"where {machine.node} is gone for good, remove {path}"
