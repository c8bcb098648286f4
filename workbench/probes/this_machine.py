"""Which machine this is: numbers of processes mean nothing on another, which may share files."""

from __future__ import annotations

import platform
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from workbench.probes.process import PROC

ID = Path("/etc/machine-id")
BOOT = PROC / "sys" / "kernel" / "random" / "boot_id"


@dataclass(frozen=True)
class MachineIdentity:
    """A machine, as what it writes into a shared folder names it.

    Attributes
    ----------
    node : its name; empty: not said, by a version that knew one machine only.
    id : as `/etc/machine-id` has it; empty where it has none. Machines of one image may share it.
    boot : of its kernel, which is another after each start.
    """

    node: str = ""
    id: str = ""
    boot: str = ""

    @property
    def is_here(self) -> bool:
        """Whether numbers of its processes are ours: it is this kernel, whatever containers it is
        in and however it was named since, or this machine before it was started again. What does
        not say where it was written counts as written here."""
        own = this_machine()
        if not self.node or (self.boot and self.boot == own.boot):
            return True
        return (self.node, self.id) == (own.node, own.id)

    @property
    def place(self) -> str:
        """` on NODE` of another machine, empty of this one."""
        return "" if self.is_here else f" on {self.node}"


NOT_SAID = MachineIdentity()


@cache
def this_machine() -> MachineIdentity:
    """The one that this process runs on."""
    return MachineIdentity(platform.node() or "localhost", _text(ID), _text(BOOT))


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(errors="replace").strip()
    return ""
