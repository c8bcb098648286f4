"""What was changed of systems that run already, written down before it is changed.

One file for each lab that is open, in a folder of this host: a line that says who it is, and a line
for every change, on disk before the change is made. Whoever finds the file of a dead process puts
everything back: the next lab, an engine that starts, `workbench reap`.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from workbench import files
from workbench.domain.errors import LabError, LabGone
from workbench.labs.docker.strays import Owner
from workbench.paths import attached_folder
from workbench.probes import cgroup, process

LONGEST = 1 << 20
"""Bytes of a journal that are read: thousands of changes."""
AGAIN = " again"
"""How a sentence ends that says that all is as it was."""
PASSES = 3
"""Limits depend on each other (memory with and without swap), so that one may be refused before
another is back."""


Entry = dict[str, Any]


class Untold:
    """What reaping said in this process and no run has told yet: an engine reaps as it starts."""

    def __init__(self) -> None:
        self._said: list[str] = []

    def add(self, said: Iterable[str]) -> None:
        self._said.extend(said)

    def take(self) -> list[str]:
        """What was put back since this was asked last."""
        said, self._said = self._said, []
        return said


@dataclass
class OwnedJournal(ABC):
    """The file of what one lab changed: a header that says whose it is, an entry for each change.

    A kind of journal has files that end in its `suffix`, attributes that stand in its header
    (`headings`), and knows what an entry of it means.
    """

    suffix: ClassVar[str]
    headings: ClassVar[tuple[str, ...]] = ()
    undone: ClassVar[str] = "not put back"
    """How a sentence begins about what could not be undone."""
    untold: ClassVar[Untold]
    """Of this kind of journal."""
    path: Path
    session: str
    owner: Owner

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.untold = Untold()

    @classmethod
    def new(cls, session: str, *headings: str) -> Self:
        """A journal of this process; its file is made with the first change."""
        path = attached_folder() / f"{os.getpid()}-{secrets.token_hex(4)}{cls.suffix}"
        more = dict(zip(cls.headings, headings, strict=False))
        return cls(path, session, Owner.this_process(), **more)

    @classmethod
    def kept(cls) -> Iterator[Self]:
        """Journals that can be read, of whoever it is.

        A torn last line is of no change: it was not on disk before that.
        """
        for path in sorted(attached_folder().glob(f"*{cls.suffix}")):
            with suppress(OSError):
                header, *entries = _entries(path) or [{}]
                if (owner := Owner.parse(str(header.get("owner", "")))) is None:
                    continue
                more = {name: str(header.get(name, "")) for name in cls.headings}
                journal = cls(path, str(header.get("session", "")), owner, **more)
                for entry in entries:
                    with suppress(KeyError, ValueError, TypeError):
                        journal.take(entry)
                yield journal

    @classmethod
    def of_the_dead(cls, alive: Container[str]) -> Iterator[Self]:
        """Those of labs whose process is dead, or is this one and does not run their session."""
        for journal in cls.kept():
            if journal.owner == Owner.this_process():
                if journal.session not in alive:
                    yield journal
            elif not journal.owner.may_live():
                yield journal

    @classmethod
    def sessions_here(cls) -> frozenset[str]:
        """Sessions that this process has journals of: one of them may be measuring now."""
        here = Owner.this_process()
        return frozenset(journal.session for journal in cls.kept() if journal.owner == here)

    @classmethod
    async def reap(
        cls, alive: frozenset[str] = frozenset(), *, strict: bool = False
    ) -> tuple[str, ...]:
        """Undo what dead labs changed; a sentence about everything that was another, and about
        everything that cannot be undone yet, which is raised (`LabError`) if it is to be `strict`,
        once all else is done."""
        said: list[str] = []
        failed: LabError | None = None
        silent: set[str] = set()
        for journal in cls.of_the_dead(alive):
            if journal.asks in silent:
                continue
            try:
                said += await journal.undo()
            except LabError as error:
                failed = error
                if not strict:
                    said.append(f"{cls.undone}: {error}")
                if isinstance(error, LabGone) and journal.asks:
                    silent.add(journal.asks)  # each would be waited for
        cls.untold.add(said)
        if strict and failed is not None:
            raise failed
        return tuple(said)

    @property
    def asks(self) -> str:
        """Which other host has to answer for it; empty: none."""
        return ""

    @abstractmethod
    async def undo(self) -> Sequence[str]:
        """Undo what it says was changed; a sentence about everything that was another. Raises
        `LabError` where something cannot be undone; the rest is."""

    def refuse(self, other: OwnedJournal | None, place: str) -> None:
        """Raise `LabError` where another lab has what is to be changed at `place`: the journal
        `other` says so."""
        if other is not None and other.path != self.path:
            raise LabError(
                f"session {other.session} (process {other.owner.pid}) measures it now",
                where=place,
                remedy="Let that end first",
            )

    @abstractmethod
    def take(self, entry: Entry) -> None:
        """Take an entry in as it was read; what raises here was written by nothing of ours."""

    def note(self, entry: Entry) -> None:
        """Write a change down, on disk when this returns.

        Raises `LabError` where it cannot be written: the change must not be made then.
        """
        header = {"session": self.session, "owner": str(self.owner)}
        header |= {name: getattr(self, name) for name in self.headings}
        try:
            _append(self.path, header, entry)
        except OSError as error:
            raise LabError(
                f"nothing is changed of it, since that cannot be written down: {error.strerror}",
                where=str(self.path),
                remedy="Make room there, or make the folder writable",
            ) from error


@dataclass
class Journal(OwnedJournal):
    """Changes of one lab to limits of control groups, and the way back."""

    suffix = ".journal"
    before: dict[Path, tuple[str, int, str]] = field(default_factory=dict)
    """By file: what it held at first, the number of its folder, and whose it is."""
    ours: dict[Path, set[str]] = field(default_factory=dict)
    """By file: everything that was written to it."""

    def change(self, whose: str, file: Path, wanted: str) -> None:
        """Write `wanted` into a limit's file, after noting what it held.

        Raises `LabError` where it may not be changed, or the change cannot be written down.
        """
        try:
            held = file.read_text().strip()
            inode = file.parent.stat().st_ino
        except OSError as error:
            raise _refused(whose, file, error) from error
        if held == wanted:
            return
        before = self.before.setdefault(file, (held, inode, whose))
        entry = {"whose": whose, "file": str(file), "inode": inode, "before": before[0]}
        self.note({**entry, "ours": wanted})
        self.ours.setdefault(file, set()).add(wanted)
        try:
            file.write_text(wanted)
        except OSError as error:
            raise _refused(whose, file, error) from error

    def take(self, entry: Entry) -> None:
        file = Path(str(entry["file"]))
        points = (mount.point for mount in self._mounts.values())
        if ".." in file.parts or not any(file.is_relative_to(point) for point in points):
            return  # of no control group: nothing of ours wrote that
        seen = (str(entry["before"]), int(entry["inode"]), str(entry["whose"]))
        self.before.setdefault(file, seen)
        self.ours.setdefault(file, set()).add(str(entry["ours"]))

    @cached_property
    def _mounts(self) -> dict[str, cgroup.Mount]:
        return cgroup.parse_mounts((process.PROC / "self" / "mountinfo").read_text())

    async def undo(self) -> tuple[str, ...]:
        return await asyncio.to_thread(self.restore)

    def restore(self) -> tuple[str, ...]:
        """Put everything back; a sentence about every file that was another.

        What somebody else set meanwhile stays as they set it, and is named. Where the kernel
        refuses, the journal stays. Raises `LabError` then.
        """
        said: dict[Path, str] = {}
        waiting = dict(self.before)
        refused: OSError | None = None
        for _ in range(PASSES):
            for file, (held, inode, whose) in list(waiting.items()):
                try:
                    said[file] = self._put_back(file, held, inode, whose)
                    del waiting[file]
                except OSError as error:
                    refused = error
            if not waiting:
                break
        if waiting:
            file, (held, _, whose) = next(iter(waiting.items()))
            reason = refused.strerror if refused else "the kernel keeps another value"
            raise LabError(
                f"{file.name} cannot be set back to {held}: {reason}",
                where=f"{whose} ({file.parent})",
                remedy="Set it by hand, or let `workbench reap` try again",
            )
        self.path.unlink(missing_ok=True)
        with suppress(OSError):
            files.sync_folder(self.path.parent)
        self.before, self.ours = {}, {}
        return tuple(filter(None, said.values()))

    def _put_back(self, file: Path, held: str, inode: int, whose: str) -> str:
        """Raises `OSError` where it is not back."""
        try:
            there = file.parent.stat().st_ino
            now = file.read_text().strip()
        except FileNotFoundError:
            there, now = 0, None
        ours = self.ours.get(file, set())
        outcome = settled(whose, file, held, now, ours, same=there == inode)
        if outcome is not None:
            return outcome
        file.write_text(held)
        if file.read_text().strip() != held:
            raise OSError(None, "the kernel keeps another value")
        return f"{whose}: {file.name} is {held}{AGAIN}"


def settled(
    whose: str, file: Path, held: str, now: str | None, ours: Container[str], *, same: bool
) -> str | None:
    """What is to be said of a file that need not be set back, empty for nothing; None where it
    must be.

    Parameters
    ----------
    held, now : what it held at first and holds now; None where it is gone.
    same : whether its folder is the one that it was.
    """
    if now is None:
        return f"{whose} is gone, and the limits of this session with it ({file.name})"
    if not same:
        return f"{whose} was started again, without limits of this session ({file.name})"
    if now.strip() == held:
        return ""
    if now.strip() not in ours:
        return f"{whose}: somebody set {file.name} to {now.strip()} meanwhile; that stays"
    return None


def _append(path: Path, header: Mapping[str, str], entry: Mapping[str, Any]) -> None:
    first = not path.exists()
    if first:
        files.make_folder(path.parent)
    with open(path, "a", opener=files.opener, encoding="utf-8") as journal:
        if first:
            journal.write(json.dumps(header) + "\n")
        journal.write(json.dumps(entry) + "\n")
        journal.flush()
        os.fsync(journal.fileno())
    if first:
        files.sync_folder(path.parent)


def _refused(whose: str, file: Path, error: OSError) -> LabError:
    return LabError(
        f"{file.name} of its control group cannot be changed: {error.strerror}",
        where=whose,
        remedy="Run as root, keep to what its parent group allows, or write `resources: fixed`",
    )


def _entries(path: Path) -> list[Entry]:
    """The lines of a journal that can be read, its header first. Raises `OSError`."""
    text = path.read_bytes()[:LONGEST].decode(errors="replace")
    return [entry for line in text.splitlines() if (entry := _entry(line)) is not None]


def _entry(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def in_use(file: Path) -> Journal | None:
    """The journal of another lab that lives and has changed that file."""
    return next((j for j in Journal.kept() if file in j.before and j.owner.may_live()), None)
