"""A function of this host whose resources a program sets: systemd's, or the user's own."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.domain.errors import LabError
from workbench.domain.parameters import Configuration
from workbench.labs.attached.attached_functions import AttachedFunction
from workbench.labs.attached.command_journal import CommandJournal, refuse_another_labs
from workbench.labs.attached.own_settings import OwnSetting, value_of

KERNEL_S = 2.0
"""How long systemd is given until the kernel has what it was asked for."""
LOOK_S = 0.02
CLOSE = 0.01
"""By which share a quota may differ from what was asked for: it is kept in whole µs."""


@dataclass
class CommandedFunction(AttachedFunction):
    """What is done to it goes through programs, and a journal of those."""

    own: Mapping[str, OwnSetting] = field(kw_only=True)
    """By resource."""
    commands: CommandJournal = field(kw_only=True)

    def claim(self) -> None:
        super().claim()
        for setting in self.own.values():
            refuse_another_labs(setting, self.commands, self.place)

    async def allocate(self, configuration: Configuration) -> None:
        # Its own program may have answered before the kernel had it, on the way back as well.
        self._expected = dict(self._now())
        await super().allocate(configuration)

    def allotted(self, host_cores: int) -> float:
        """A command may limit it by something else than its control group."""
        return min(self.cores or super().allotted(host_cores), host_cores)

    async def limit_cpu(self, cores: float, pinned: tuple[int, ...]) -> None:
        del pinned  # which cores it runs on is not ours to say
        await self._set("vcpu", cores)
        if self.own["vcpu"].kind == "systemd":
            await self._until_the_kernel_has(cores)
            self._expected = dict(self._now())

    async def limit_memory(self, memory_bytes: int) -> None:
        await self._set("memory", memory_bytes)

    async def _set(self, resource: str, amount: float) -> None:
        setting = self.own[resource]
        await self.commands.change(setting, value_of(self.attached, resource, amount))
        self._expected = dict(self._now())

    async def _until_the_kernel_has(self, cores: float) -> None:
        """systemd answers before it has written to the group."""
        until = time.monotonic() + KERNEL_S
        while True:
            try:
                has = self.limits.cores()
            except OSError:
                raise self.trouble() or self.as_wanted("its control group is gone") from None
            if math.isclose(has, cores, rel_tol=CLOSE):
                return
            if time.monotonic() > until:
                raise LabError(
                    f"systemd says that it has {cores:g} cores, and its control group has "
                    f"{has or 'no limit'}",
                    where=self.place,
                    remedy="See `systemctl status` of its unit, or write `resources: cgroup`",
                )
            await asyncio.sleep(LOOK_S)
