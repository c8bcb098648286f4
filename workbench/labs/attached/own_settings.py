"""Resources that are set by a program: systemd's, libvirt's, or commands of the user's own.

A program is started with its arguments, never through a shell, with a fixed environment. It has
`COMMAND_S` to end, and is ended with its process group where it does not. It ends with this
process, too; what it started itself does not.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from workbench.domain.attaching import VALUE, Attached
from workbench.domain.errors import LabError
from workbench.labs.netns.namespaces import PATH
from workbench.probes.child_ending import signal_child

COMMAND_S = 10.0
KILLED_S = 1.0
"""How long a killed program's pipes are waited for: what has left its group may hold them open."""
LONGEST = 4096
"""Bytes of what a program says that are read; the rest is dropped."""
LONGEST_VALUE = 200
ENVIRONMENT = {"PATH": PATH, "LC_ALL": "C"}
RESOURCES = ("vcpu", "memory")
SYSTEMD = {"vcpu": "CPUQuota", "memory": "MemoryMax"}
SHOWN = {"vcpu": "CPUQuotaPerSecUSec", "memory": "MemoryMax"}
"""As `systemctl show` calls them."""
UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]{1,240}\.(service|scope|slice)")
SPAN = re.compile(r"([0-9.]+)(us|ms|s|min|h|d)")
SPAN_US = {"us": 1.0, "ms": 1e3, "s": 1e6, "min": 60e6, "h": 3600e6, "d": 86400e6}
Kind = Literal["command", "systemd", "libvirt"]


class SettingGone(LabError):
    """Whose setting it was runs no more, or was started again with settings of its own."""


@dataclass(frozen=True)
class OwnSetting:
    """How one resource of a function is set and read by a program."""

    whose: str
    """As a sentence names the function."""
    resource: str
    kind: Kind
    set_by: tuple[str, ...]
    read_by: tuple[str, ...]
    identity: str = ""
    """Tells this start of a libvirt domain from later ones; empty of others."""

    async def held(self) -> str:
        """What it is now, as `give` takes it. Raises `LabError` with why that is not told."""
        said = (await self._run(self.read_by)).strip()
        if len(said) > LONGEST_VALUE or "\n" in said or "\0" in said or not said.isprintable():
            raise LabError(
                f"`{shown(self.read_by)}` is to print one value, and prints {said[:40]!r}...",
                where=self.whose,
            )
        if self.kind == "systemd":
            return self._of_systemd(said)
        if not said:
            raise LabError(f"`{shown(self.read_by)}` prints nothing", where=self.whose)
        return said

    async def give(self, value: str) -> None:
        """Set it. Raises `LabError` where the program fails or does not end."""
        await self._run([word.replace(VALUE, value) for word in self.set_by])

    def _of_systemd(self, said: str) -> str:
        if said == "infinity":
            return "" if self.resource == "vcpu" else said
        if self.resource == "memory" and said.isdecimal():
            return said
        spans = [SPAN.fullmatch(word) for word in said.split()]
        if self.resource == "vcpu" and spans and all(spans):
            each_us = sum(float(one[1]) * SPAN_US[one[2]] for one in spans if one)
            return f"{round(each_us / 1e4, 2):g}%"
        raise LabError(f"`{shown(self.read_by)}` says {said!r}", where=self.whose)

    async def _run(self, argv: Sequence[str]) -> str:
        try:
            return await said_by(argv)
        except LabError as error:
            raise LabError(error.what, where=self.whose, remedy=f"Try `{shown(argv)}`") from None


def same_value(one: str, other: str) -> bool:
    """Whether two values are one, as text or as numbers."""
    if one == other:
        return True
    with suppress(ValueError):
        return float(one) == float(other)
    return False


def shown(argv: Sequence[str]) -> str:
    return " ".join(argv)[:LONGEST_VALUE]


def settings_of(attached: Attached, place: str, group: str) -> dict[str, OwnSetting]:
    """By resource, how a function's are set; `group` is the name of its control group.

    Raises `LabError` where systemd is to set them, and it is no unit.
    """
    if attached.resources == "command":
        return {
            one.resource: OwnSetting(place, one.resource, "command", one.set_by, one.read_by)
            for one in attached.commands
        }
    if not UNIT.fullmatch(group):
        raise LabError(
            f"its control group {group} is no unit of systemd",
            where=place,
            remedy="Write `resources: cgroup`, or attach a unit's own group",
        )
    return {
        name: OwnSetting(
            place,
            name,
            "systemd",
            ("systemctl", "set-property", "--runtime", "--", group, f"{SYSTEMD[name]}={VALUE}"),
            ("systemctl", "show", f"--property={SHOWN[name]}", "--value", "--", group),
        )
        for name in RESOURCES
    }


def value_of(attached: Attached, resource: str, amount: float) -> str:
    """An amount, in cores or bytes, as its program takes it."""
    for one in attached.commands:
        if one.resource == resource:
            return one.value(amount)
    return f"{round(amount * 100, 2):g}%" if resource == "vcpu" else str(int(amount))


async def said_by(
    argv: Sequence[str], own: Mapping[str, str] | None = None, longest: int = LONGEST
) -> str:
    """Run a program, with `own` beside the usual environment; what it prints, of which `longest`
    bytes are read.

    Raises `LabError` with what is wrong with it.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *("setpriv", "--pdeathsig", "KILL", "--", *argv),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**ENVIRONMENT, **(own or {})},
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        raise LabError(f"`{shown(argv)}` cannot be started: {error.strerror}") from error
    assert process.stdout is not None
    assert process.stderr is not None
    ended = False
    try:
        async with asyncio.timeout(COMMAND_S):
            out, err = await asyncio.gather(
                _begin_of(process.stdout, longest), _begin_of(process.stderr, LONGEST)
            )
            await process.wait()
            ended = True
    except TimeoutError:
        raise LabError(
            f"`{shown(argv)}` did not end within {COMMAND_S:g} s, and was ended"
        ) from None
    finally:
        if not ended:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(PermissionError):
                signal_child(process)
            with suppress(TimeoutError):  # what left its group may hold the pipes for good
                async with asyncio.timeout(KILLED_S):
                    await process.wait()
            # asyncio has no other way to let such pipes go
            process._transport.close()  # type: ignore[attr-defined]
    if process.returncode:
        why = " ".join((err or out).split())[:LONGEST_VALUE]
        raise LabError(
            f"`{shown(argv)}` ended with exit code {process.returncode}"
            + (f": {why}" if why else "")
        )
    return out


async def _begin_of(stream: asyncio.StreamReader, longest: int) -> str:
    """What is said there until its end; of more than `longest` bytes the beginning."""
    heard = b""
    while chunk := await stream.read(LONGEST):
        heard = (heard + chunk)[:longest]
    return heard.decode(errors="replace")
