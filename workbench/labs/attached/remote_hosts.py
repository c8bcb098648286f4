"""The other hosts of a campaign of attached functions: spoken to, described, left as they were."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from workbench.domain.attaching import Attached, SshAddress
from workbench.domain.errors import LabError
from workbench.domain.topology import VnfTemplate
from workbench.labs.attached.remote_finding import find_there, mounts_of
from workbench.labs.attached.remote_function import RemoteFunction
from workbench.labs.attached.remote_journal import RemoteJournal
from workbench.probes import host
from workbench.probes.cgroup import CgroupVersion
from workbench.probes.process import PROC
from workbench.probes.remote_shell import RemoteShell

RELEASE = PROC / "sys" / "kernel" / "osrelease"


@dataclass(frozen=True)
class RemoteHostFacts:
    """What a host says of itself."""

    cores: int
    memory_bytes: int
    kernel: str
    cpu_model: str
    cgroup: CgroupVersion
    """As a login there sees it."""


class RemoteHosts:
    """Shells and journals of one lab, one of each for a host.

    Parameters
    ----------
    session : stands in the journals.
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._shells: dict[str, RemoteShell] = {}
        self._journals: dict[str, RemoteJournal] = {}
        self.facts: dict[str, RemoteHostFacts] = {}

    def _shell(self, name: str) -> RemoteShell:
        if name not in self._shells:
            self._shells[name] = RemoteShell(SshAddress.parse(name))
            self._journals[name] = RemoteJournal.new(self._session, name)
        return self._shells[name]

    async def function(self, attached: Attached, template: VnfTemplate) -> RemoteFunction:
        """Find it as it runs now. Raises `LabError` with what is not as the campaign says."""
        shell = self._shell(attached.host)
        found = await find_there(shell, attached)
        if attached.host not in self.facts:
            self.facts[attached.host] = await _facts(shell)
        return RemoteFunction(
            attached.name,
            template,
            address=shell.address.shown,
            pid=found.pid,
            attached=attached,
            found=found,
            shell=shell,
            journal=self._journals[attached.host],
            host_cores=self.facts[attached.host].cores,
        )

    def described(self) -> dict[str, str]:
        """Each host, for a session's facts: what it is, and whether its clock is this host's."""
        return {
            f"host {name}": f"{one.cores} cores, {one.cpu_model or 'CPU unknown'}, "
            f"kernel {one.kernel}, "
            + (self._shells[name].clock or "its clock agrees with this host's to 2 s")
            for name, one in self.facts.items()
        }

    def clocks(self) -> list[str]:
        """A sentence about each clock that is off."""
        return [
            f"{name}: {shell.clock}; nothing is moved by that, since what is counted there has the "
            "time at which this host asked"
            for name, shell in self._shells.items()
            if shell.clock
        ]

    async def put_back(self) -> list[str]:
        """Limits as they were, on every host that can be asked; a sentence about every file that
        was another. Raises `LabError` with what is left changed on the first that cannot."""
        said: list[str] = []
        failed: LabError | None = None
        for name, journal in self._journals.items():
            try:
                said += await journal.restore(self._shells[name])
            except LabError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return said

    async def close(self) -> None:
        for shell in self._shells.values():
            await shell.close()


async def _facts(shell: RemoteShell) -> RemoteHostFacts:
    files = tuple(PROC / name for name in ("stat", "meminfo", "cpuinfo"))
    seen = await shell.read([*files, RELEASE])
    stat, meminfo, cpuinfo = (seen.optional(file) for file in files)
    cores = sum(1 for line in stat.splitlines() if line.startswith("cpu")) - 1
    if cores < 1:
        raise LabError("does not say how many cores it has", where=f"host {shell.address}")
    memory = 0
    with suppress(IndexError, ValueError):
        memory = int(meminfo.partition("MemTotal:")[2].split()[0]) << 10
    version: CgroupVersion = "v1" if "cpu" in await mounts_of(shell) else "v2"
    kernel = seen.optional(Path(RELEASE)).strip()
    return RemoteHostFacts(cores, memory, kernel, host.parse_cpu_model(cpuinfo), version)
