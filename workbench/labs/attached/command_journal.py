"""What programs changed of functions, written down before they are run.

As the journal of control groups (`journal`): a file for each lab that is open, a line for every
change, on disk before the program is started, and one once the value was read back. Whoever finds
the file of a dead process reads the value, and sets it back by the same program.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from workbench.domain.errors import LabError
from workbench.labs.attached.journal import AGAIN, Entry, OwnedJournal
from workbench.labs.attached.own_settings import OwnSetting, SettingGone, same_value
from workbench.labs.attached.virsh import DomainQuota

WRITABLE_BY_OTHERS = 0o022


@dataclass
class CommandJournal(OwnedJournal):
    """Changes of one lab that programs made, and the way back."""

    suffix = ".commands"
    before: dict[OwnSetting, str] = field(default_factory=dict)
    """What each was at first."""
    ours: dict[OwnSetting, list[str]] = field(default_factory=dict)
    """Everything that was asked for."""
    unsure: set[OwnSetting] = field(default_factory=set)
    """Whose program was started, and nobody has seen what came of it: they are set back whatever
    they are."""

    async def change(self, setting: OwnSetting, wanted: str) -> None:
        """Set it, after noting what it was, and read it back.

        Raises `LabError` where that cannot be written down, the program does not do as it is told
        or the value is another one afterwards.
        """
        held = await setting.held()
        if same_value(held, wanted):
            return
        before = self.before.setdefault(setting, held)
        self._note(setting, before, wanted, seen=False)
        self.ours.setdefault(setting, []).append(wanted)
        self.unsure.add(setting)
        await setting.give(wanted)
        now = await setting.held()
        if not same_value(now, wanted):
            raise LabError(
                f"its command was to set {setting.resource} to {wanted} and ended well, and it is "
                f"{now or 'unlimited'} still",
                where=setting.whose,
                remedy="See that `read` prints the value that `set` was given, in the same unit",
            )
        self._note(setting, before, wanted, seen=True)
        self.unsure.discard(setting)

    def _note(self, setting: OwnSetting, before: str, wanted: str, *, seen: bool) -> None:
        entry: Entry = {
            "whose": setting.whose,
            "resource": setting.resource,
            "kind": setting.kind,
            "identity": setting.identity,
            "set": list(setting.set_by),
            "read": list(setting.read_by),
            "before": before,
            "ours": wanted,
            "seen": seen,
        }
        self.note(entry)

    def take(self, entry: Entry) -> None:
        kind = entry["kind"]
        setting = (DomainQuota if kind == "libvirt" else OwnSetting)(
            str(entry["whose"]),
            str(entry["resource"]),
            kind if kind in ("systemd", "libvirt") else "command",
            tuple(map(str, entry["set"])),
            tuple(map(str, entry["read"])),
            str(entry.get("identity", "")),
        )
        before, ours, seen = str(entry["before"]), str(entry["ours"]), bool(entry["seen"])
        if setting.set_by and setting.read_by:
            self.before.setdefault(setting, before)
            self.ours.setdefault(setting, []).append(ours)
            (self.unsure.discard if seen else self.unsure.add)(setting)

    async def undo(self) -> tuple[str, ...]:
        _refuse_what_others_may_write(self.path)
        return await self.restore()

    async def restore(self) -> tuple[str, ...]:
        """Set everything back; a sentence about everything that was another.

        What somebody else set meanwhile stays as they set it, and is named. Raises `LabError`
        with what is left changed; the journal stays then.
        """
        if not self.before:
            return ()
        said: list[str] = []
        failed: LabError | None = None
        for setting, before in list(self.before.items()):
            try:
                said.append(await self._put_back(setting, before))
            except LabError as error:
                failed = LabError(
                    f"its {setting.resource} is left changed, it was {before or 'unlimited'} "
                    f"before: {error.what}",
                    where=setting.whose,
                    remedy="Set it by hand, or let `workbench reap` try again",
                )
            else:
                del self.before[setting]
                self.unsure.discard(setting)
        if failed is not None:
            raise failed
        self.path.unlink(missing_ok=True)
        self.ours = {}
        return tuple(filter(None, said))

    async def _put_back(self, setting: OwnSetting, before: str) -> str:
        try:
            now = await setting.held()
        except SettingGone as gone:
            return f"{setting.whose} {gone.what}; its {setting.resource} was {before}"
        # A set that virsh did not wait for may still come; what is set after it comes after it.
        late = isinstance(setting, DomainQuota) and setting in self.unsure
        if same_value(now, before) and not late:
            return ""
        known = any(same_value(now, one) for one in self.ours.get(setting, ()))
        if not known and setting not in self.unsure:
            return (
                f"{setting.whose}: somebody set its {setting.resource} to {now or 'unlimited'} "
                "meanwhile; that stays"
            )
        await setting.give(before)
        now = await setting.held()
        if not same_value(now, before):
            raise LabError(f"its command ended well, and it is {now or 'unlimited'} still")
        return f"{setting.whose}: its {setting.resource} is {before or 'unlimited'}{AGAIN}"


def _refuse_what_others_may_write(path: Path) -> None:
    """What stands in a journal is run."""
    try:
        found = path.stat()
    except OSError:
        return
    if found.st_uid != os.geteuid() or found.st_mode & WRITABLE_BY_OTHERS:
        raise LabError(
            "others may have written it, so that no command in it is run",
            where=str(path),
            remedy="Look at it, set back by hand what it names, and remove it",
        )


def refuse_another_labs(setting: OwnSetting, journal: CommandJournal, place: str) -> None:
    """Raise `LabError` where another lab has changed it and not put it back."""
    other = changed_by(setting)
    if other is None or other.path == journal.path:
        return
    if not other.owner.may_live():  # what we would note as its own is a dead lab's
        raise LabError(
            f"session {other.session} changed its {setting.resource}, and it is not put back yet",
            where=place,
            remedy="`workbench reap` puts it back, or says why it cannot",
        )
    journal.refuse(other, place)


def changed_by(setting: OwnSetting) -> CommandJournal | None:
    """The journal of a lab that has changed that and not put it back, be it alive or not."""
    return next((j for j in CommandJournal.kept() if setting in j.before), None)
