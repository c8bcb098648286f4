"""Who holds a lab host for himself, and which campaign goes before which.

A lease ends by its time, or with the process that keeps it: whoever reads leases looks whether that
is still there, so that none outlives its owner.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from workbench import files
from workbench.domain import codec
from workbench.domain.errors import UsageError, WorkbenchError
from workbench.engine.sessions.fleet_sessions import started

T = TypeVar("T")

LONGEST_S = 30 * 86400.0


@dataclass(frozen=True)
class Lease:
    """A host that a person holds; the fleet gives it nothing meanwhile.

    Attributes
    ----------
    by, why : who holds it, and what for.
    since, until : seconds since the epoch; `until` None: as long as process `pid` is there.
    pid, began : that process and when it started; 0 and None where a time ends the lease.
    """

    host: str
    by: str
    since: float
    why: str = ""
    until: float | None = None
    pid: int = 0
    began: float | None = None

    def ended(self, now: float) -> str:
        """Why it holds no more, as a sentence without its full stop; empty: it does."""
        if self.until is not None:
            return f"the time of {self.by} is over" if now >= self.until else ""
        if self.began is None or started(self.pid) != self.began:
            return f"the process by which {self.by} held it (pid {self.pid}) is gone"
        return ""

    @property
    def told(self) -> str:
        """Who holds it and until when."""
        left = "it is given back"
        if self.until is not None:
            left = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.until))
        return f"held by {self.by} until {left}" + (f": {self.why}" if self.why else "")


@dataclass(frozen=True)
class Contender:
    """A campaign that a process measures with the fleet."""

    session: str
    priority: int
    pid: int
    began: float | None


@dataclass(frozen=True)
class Leases:
    """Those of one fleet, as files in its folder."""

    root: Path

    def take(self, lease: Lease) -> None:
        """Raises `UsageError` where another person holds the host, or another process keeps it."""
        with self._alone():
            held = self._read(self._hold(lease.host), Lease)
            if held is not None and not held.ended(time.time()):
                if held.by != lease.by:
                    raise UsageError(
                        f"is {held.told}",
                        where=lease.host,
                        remedy="Ask for it, or wait until it is free",
                    )
                _must_not_be_kept(held, lease.pid)
            self._write(self._hold(lease.host), lease)

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
                _must_not_be_kept(held, pid)
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
            with self._alone():
                if self._read(path, Lease) == lease:
                    path.unlink(missing_ok=True)
                    over.append(f"{lease.host} is held no more: {why}")
        return found, tuple(over)

    @contextmanager
    def contending(self, session: str, priority: int = 0) -> Iterator[None]:
        """A campaign is measured while the body runs."""
        path = self._run(session)
        own = Contender(session, priority, os.getpid(), started(os.getpid()))
        with self._alone():
            self._write(path, own)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def prefer(self, session: str, priority: int) -> None:
        """Say what goes before what. Raises `UsageError` where that is not measured now."""
        with self._alone():
            own = self._read(self._run(session), Contender)
            if own is None or own.began is None or started(own.pid) != own.began:
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
            if other.began is None or started(other.pid) != other.began:
                path.unlink(missing_ok=True)
            elif other.priority > (found.priority if found else priority):
                found = other
        return found

    def refused(self, session: str, hosts: tuple[str, ...]) -> Mapping[str, str]:
        """Hosts that a campaign is to give nothing now, with the reason."""
        held, _ = self.held()
        said = {host: lease.told for host, lease in held.items() if host in hosts}
        first = self.before(session)
        if first is not None:
            why = f"{first.session} goes first (priority {first.priority})"
            said = dict.fromkeys(hosts, why) | said
        return said

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

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else changes leases meanwhile; the kernel frees that with the process."""
        files.make_folder(self.root)
        with open(self.root / "leases.lock", "a", opener=files.opener) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _must_not_be_kept(held: Lease, pid: int) -> None:
    """Raises `UsageError` where a process keeps it that is not `pid`: accounts may be shared."""
    if held.pid not in (0, pid):
        raise UsageError(
            f"is {held.told}",
            where=held.host,
            remedy=f"A command that runs keeps it (pid {held.pid}): end that with ctrl+c",
        )
