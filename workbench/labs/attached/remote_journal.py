"""What was changed of functions on other hosts, written down here before it is changed there.

As the journal of this host's control groups (`journal`): a file for each lab and host, a line for
every change, on disk before the order is given. No credential is in it: the way back is the host's
name, and the user's own keys.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from workbench.domain.attaching import SshAddress
from workbench.domain.errors import LabError
from workbench.labs.attached.cgroup_limits import limit_files
from workbench.labs.attached.journal import (
    AGAIN,
    PASSES,
    Entry,
    OwnedJournal,
    settled,
)
from workbench.labs.attached.remote_finding import MACHINE, RemoteFunctionFound, mounts_of
from workbench.probes.cgroup import CgroupFolders, Mount
from workbench.probes.process import PROC
from workbench.probes.remote_shell import RemoteShell

REAP_S = 5.0
"""How long the host of a dead session is tried: an engine that starts does not wait."""
BOOT = PROC / "sys" / "kernel" / "random" / "boot_id"
UNREADABLE = (ValueError, IndexError, ArithmeticError)
"""What an answer raises that holds no numbers where there should be some."""


@dataclass
class RemoteJournal(OwnedJournal):
    """Changes of one lab on one host, and the way back."""

    suffix = ".remote"
    headings = ("host", "boot", "machine")
    host: str = ""
    """As `SshAddress` reads it."""
    before: dict[Path, tuple[str, int, str]] = field(default_factory=dict)
    """By file there: what it held at first, the number of its folder, and whose it is."""
    ours: dict[Path, set[str]] = field(default_factory=dict)
    """By file: everything that was written to it."""
    shells: set[str] = field(default_factory=set)
    """Shells there that were told to write, as `RemoteShell.marked`."""
    boot: str = ""
    """Of the host, when the first change was made."""
    machine: str = ""
    """Of the host, as its `/etc/machine-id` has it; empty where it has none."""

    async def change(
        self, shell: RemoteShell, found: RemoteFunctionFound, file: Path, wanted: str
    ) -> None:
        """Write `wanted` into a limit's file there, after noting what it held.

        Raises `LabError` where it may not be changed, or the change cannot be written down.
        """
        seen = await shell.read([file, BOOT])
        try:
            held = seen.text(file).strip()
        except OSError as error:
            raise _refused(found.place, file, error) from error
        if held == wanted:
            return
        self.boot = self.boot or seen.optional(BOOT).strip()
        self.machine = found.machine
        # A controller of version 1 has a folder of its own.
        number = (await shell.numbers([file.parent])).get(file.parent)
        if number is None:
            raise _refused(found.place, file, OSError(errno.EIO, "its folder cannot be looked at"))
        before = self.before.setdefault(file, (held, number, found.place))
        entry = {"whose": found.place, "file": str(file), "inode": before[1]}
        entry |= {"before": before[0], "ours": wanted, "shell": shell.marked}
        self.note(entry)
        self.ours.setdefault(file, set()).add(wanted)
        self.shells.add(shell.marked)
        try:
            await shell.write(file, wanted)
        except OSError as error:
            raise _refused(found.place, file, error) from error

    def take(self, entry: Entry) -> None:
        file = Path(str(entry["file"]))
        seen = (str(entry["before"]), int(entry["inode"]), str(entry["whose"]))
        self.before.setdefault(file, seen)
        self.ours.setdefault(file, set()).add(str(entry["ours"]))
        self.shells.add(str(entry.get("shell", "")))

    @property
    def asks(self) -> str:
        return self.host

    async def undo(self) -> tuple[str, ...]:
        try:
            shell = RemoteShell(SshAddress.parse(self.host), REAP_S)
        except ValueError:
            return ()  # nothing of ours wrote that
        try:
            return await self.restore(shell)
        finally:
            await shell.close()

    async def restore(self, shell: RemoteShell) -> tuple[str, ...]:
        """Put everything back; a sentence about every file that was another.

        What somebody else set meanwhile stays as they set it, and is named. Raises `LabError`
        with what is left changed where the host does not answer or refuses; the journal stays.
        """
        if not self.before:
            return ()
        try:
            said = await self._restored(shell)
        except UNREADABLE as error:
            raise self._left(LabError("it answers what cannot be read")) from error
        except LabError as error:
            raise self._left(error) from error
        self.path.unlink(missing_ok=True)
        self.before, self.ours, self.shells, self.boot = {}, {}, set(), ""
        return said

    def _left(self, error: LabError) -> LabError:
        file, (held, _, whose) = next(iter(self.before.items()))
        return type(error)(
            f"{file.name} of {whose} is left changed, it was {held} before: {error.what}",
            where=f"host {self.host}",
            remedy="`workbench reap` puts it back as soon as that host answers",
        )

    async def _restored(self, shell: RemoteShell) -> tuple[str, ...]:
        seen = await shell.read([BOOT, MACHINE])
        if self.machine and seen.optional(MACHINE).strip() != self.machine:
            raise LabError(f"another machine answers to that name now ({self.path} has the rest)")
        try:
            boot = seen.text(BOOT).strip()
        except OSError as error:
            raise LabError(f"it does not say when it was started: {error.strerror}") from error
        if self.boot and boot != self.boot:
            return (f"host {self.host} was started again, without limits of this session",)
        for marked in sorted(self.shells):
            await shell.end_shell(marked)
        mounts = await mounts_of(shell)
        if not mounts:
            raise LabError("it does not say where its control groups are")
        if not self.path.exists():
            return ()  # somebody else of this host has put it back meanwhile
        said = {file: "" for file in self.before if not _is_limit(file, mounts)}
        why = ""
        for _ in range(PASSES):
            for file, (held, number, whose) in self.before.items():
                if file in said:
                    continue
                try:
                    said[file] = await self._put_back(shell, file, held, number, whose)
                except OSError as error:
                    why = f"{file.name} cannot be set back: {error.strerror}"
            if len(said) == len(self.before):
                return tuple(filter(None, said.values()))
        raise LabError(why)

    async def _put_back(
        self, shell: RemoteShell, file: Path, held: str, number: int, whose: str
    ) -> str:
        """Raises `OSError` where it is not back."""
        there = (await shell.numbers([file.parent])).get(file.parent)
        try:
            now = (await shell.read([file])).text(file)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENODEV):
                raise
            now = None
        if there is None and now is not None:
            raise OSError(errno.EIO, "its folder cannot be looked at")
        ours = self.ours.get(file, set())
        outcome = settled(whose, file, held, now, ours, same=there == number)
        if outcome is not None:
            return outcome
        await shell.write(file, held)
        if (await shell.read([file])).optional(file).strip() != held:
            raise OSError(None, "the kernel keeps another value")
        return f"{whose}: {file.name} is {held}{AGAIN}"


def _refused(whose: str, file: Path, error: OSError) -> LabError:
    return LabError(
        f"{file.name} of its control group cannot be changed: {error.strerror}",
        where=whose,
        remedy="Log in there as root or as whoever owns the group, keep to what its parent group "
        "allows, or write `resources: fixed`",
    )


def _is_limit(file: Path, mounts: dict[str, Mount]) -> bool:
    """Whether it is a file that this workbench would write to."""
    folders = CgroupFolders("v2", file.parent, file.parent, file.parent)
    inside = any(file.is_relative_to(mount.point) for mount in mounts.values())
    return inside and ".." not in file.parts and file in limit_files(folders)


def in_use(host: str, machine: str, file: Path) -> RemoteJournal | None:
    """The journal of another lab that has changed that file there and has not put it back."""
    for journal in RemoteJournal.kept():
        if file not in journal.before:
            continue
        if machine and journal.machine == machine:  # by whatever name it was reached
            return journal
        with suppress(ValueError):
            if SshAddress.parse(journal.host).name == SshAddress.parse(host).name:
                return journal
    return None
