"""libvirt, asked by its own program `virsh`: what a domain is, uses and may use.

Every question is one run of the program with arguments, bounded as any command is (`said_by`), and
one connection: of this host, or by SSH (or TLS) to another, with the user's keys and `known_hosts`.
Nothing can be asked back, as there is no terminal.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.domain.attaching import VALUE
from workbench.domain.errors import LabError
from workbench.labs.attached.own_settings import (
    ENVIRONMENT,
    LONGEST_VALUE,
    OwnSetting,
    SettingGone,
    said_by,
)

VIRSH = "virsh"
MOST_SAID = 1 << 18
"""Bytes of an answer that are read: domains of hundreds of vCPUs and disks."""
QUOTA, PERIOD, VCPU_QUOTA = "global_quota", "global_period", "vcpu_quota"
"""`global` bounds vCPUs, emulator and I/O threads together; `vcpu_quota` is of each vCPU alone."""
UNLIMITED_US = 17_592_186_044_415
"""From which on a quota is none: what libvirt reads of control groups of version 2 that have none
(its VIR_CGROUP_CPU_QUOTA_MAX, 2^64 / 2^20)."""
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
STATE = re.compile(r"[a-z ]+ \([^()]*\)")
FIGURE = re.compile(r"\s*([a-z][a-z0-9_.-]*)\s*[:=]\s*(-?[0-9]+)")
STATS = ("--state", "--cpu-total", "--balloon", "--vcpu", "--interface", "--block")
PASSED_ON = ("SSH_AUTH_SOCK", "XDG_RUNTIME_DIR")
"""What virsh is told of this process's environment: the user's SSH agent, and where the sockets of
`qemu:///session` lie."""
REASONS = (
    (
        r"host key verification failed",
        "the key of that host is not known, or another one",
        "Log in there once by hand, and see what `ssh` says",
    ),
    (
        r"permission denied \(|authentication (failed|unavailable)|access denied|permission denied",
        "it lets this user not in",
        "Run as root or as a member of the group libvirt; of another host, see that `ssh` needs no "
        "password",
    ),
    (
        r"connection refused|could not resolve|no route|network is unreachable|timed? ?out",
        "it cannot be reached",
        "See that libvirtd (or virtqemud) runs there and that the name is right",
    ),
    (
        r"failed to connect socket to|no connection driver",
        "no libvirt answers",
        "Start libvirtd (or virtqemud), or name it in `connect`",
    ),
    (
        r"failed to get domain|domain not found|no domain with matching",
        "there is no such domain",
        "See `virsh list --all` there",
    ),
    (
        r"cgroup|session mode|unsupported flags",
        "libvirt can bound no CPU of it",
        "See that libvirtd runs as root and that its host has the cpu controller; or write "
        "`resources: fixed`",
    ),
)
"""By what virsh says: what is wrong, and what to do."""
GONE = "runs no more there (where it was migrated, the quota of this session went with it)"


async def asked(connect: str, *words: str) -> str:
    """What virsh prints. Raises `LabError` with why it does not."""
    if shutil.which(VIRSH, path=ENVIRONMENT["PATH"]) is None:
        raise LabError(
            "this host has no `virsh`, by which domains are found and limited",
            where=f"libvirt {connect}",
            remedy="Install the package libvirt-clients",
        )
    own = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    argv = (VIRSH, "--quiet", "--connect", connect, *words)
    try:
        return await said_by(argv, own, MOST_SAID)
    except LabError as error:
        raise _plain(error, connect) from None


def _plain(error: LabError, connect: str) -> LabError:
    said = error.what.rpartition("exit code 1: ")[2].replace("error: ", "")[:LONGEST_VALUE]
    for pattern, what, remedy in REASONS:
        if re.search(pattern, said, re.IGNORECASE):
            return LabError(f"{what} ({said})", where=f"libvirt {connect}", remedy=remedy)
    return LabError(said, where=f"libvirt {connect}", remedy="Try it by hand with `virsh`")


@dataclass(frozen=True)
class DomainLook:
    """What libvirt told of a domain at one instant."""

    number: str
    """Of this start of it; empty where it does not run."""
    state: str
    """Such as `running (booted)`; empty where it is gone."""
    figures: Mapping[str, int]
    """By libvirt's names, those that it told."""

    @classmethod
    def of(cls, said: str) -> DomainLook:
        """Of what `look_words` print."""
        number, state, figures = "", "", {}
        for line in said.splitlines():
            if line.isdecimal():
                number = line
            elif STATE.fullmatch(line):
                state = line
            elif figure := FIGURE.fullmatch(line):
                figures[figure[1]] = int(figure[2])
        return cls(number, state, figures)

    @property
    def runs(self) -> bool:
        return bool(self.number) and self.state.startswith(("running", "idle", "no state"))

    @property
    def cores(self) -> float:
        """Its quota in cores; 0 without one."""
        quota, period = self.figures.get(QUOTA, -1), self.figures.get(PERIOD, 0)
        return quota / period if 0 < quota < UNLIMITED_US and period > 0 else 0.0

    def total(self, group: str, *of: str) -> int | None:
        """The sum of figures such as `vcpu.0.delay` over all that are numbered; None without."""
        names = [re.compile(rf"{group}\.[0-9]+\.{re.escape(name)}") for name in of]
        found = [n for key, n in self.figures.items() if any(one.fullmatch(key) for one in names)]
        return sum(found) if found else None


def look_words(domain: str) -> tuple[str, ...]:
    """virsh's commands for a `DomainLook` of the domain of that UUID, in one connection.

    The last one tells by its exit code whether the domain is there; one before it may be refused.
    """
    first = f"schedinfo {domain}; domid {domain}; domstate --reason {domain}"
    return (f"{first}; domstats --raw {' '.join(STATS)} {domain}",)


@dataclass(frozen=True)
class DomainQuota(OwnSetting):
    """The CPU quota of a whole domain, for as long as this start of it runs."""

    @classmethod
    def new(cls, place: str, connect: str, uuid: str, number: str) -> DomainQuota:
        words = (VIRSH, "--quiet", "--connect", connect)
        given = ("schedinfo", uuid, "--live", "--set", f"{QUOTA}={VALUE}")
        read = (*words, *look_words(uuid))
        return cls(place, QUOTA, "libvirt", (*words, *given), read, number)

    async def held(self) -> str:
        look = DomainLook.of(await self._run(self.read_by))
        if not look.number:
            await self._refuse_gone()
            raise LabError("libvirt does not tell which start of it runs", where=self.whose)
        if look.number != self.identity:
            raise SettingGone("was started again, without limits of this session")
        if QUOTA not in look.figures:
            raise LabError("libvirt does not tell its quota", where=self.whose)
        return str(look.figures[QUOTA])

    async def _run(self, argv: Sequence[str]) -> str:
        try:
            return await asked(argv[3], *argv[4:])
        except LabError as error:
            if "no such domain" in error.what:
                await self._refuse_gone()
            raise LabError(error.what, where=self.whose, remedy=error.remedy) from None

    async def _refuse_gone(self) -> None:
        """Raise `SettingGone` where libvirt answers and the domain is not among those that run.

        virsh says that it "failed to get domain" for a lost connection, too.
        """
        _, _, _, connect, _, uuid, *_ = self.set_by
        try:
            running = await asked(connect, "list", "--uuid")
        except LabError as error:
            raise LabError(error.what, where=self.whose, remedy=error.remedy) from None
        if uuid not in running.split():
            raise SettingGone(GONE, where=self.whose)
