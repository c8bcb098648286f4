"""One function of the VM lab: a guest of QEMU in the namespaces and the group of its component."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from workbench.domain.errors import LabError
from workbench.domain.topology import VnfTemplate
from workbench.labs.components.component import Component, Limits, Outcome
from workbench.labs.components.environment import SYSCTLS
from workbench.labs.netns.namespaces import set_links
from workbench.labs.netns.processes import ProcessComponent, ProcessMaker
from workbench.labs.vm import qemu_command
from workbench.labs.vm.guest_agent import GuestAgent, GuestSilent
from workbench.labs.vm.guest_files import GuestFiles
from workbench.labs.vm.qemu_monitor import QemuMonitor
from workbench.labs.vm.vm_options import VmOptions

LAST_WORDS_S = 1.0
PREFIX = 24
"""Bits of an address that name the network, as bridges of the namespace lab give them."""


@dataclass
class GuestProgram:
    """A program that runs in a guest."""

    begun: asyncio.Task[Outcome]
    guest_pid: int
    """QEMU's; processes of a guest have no number on the host."""

    async def pid(self) -> int:
        return self.guest_pid

    async def finish(self) -> Outcome:
        return await self.begun


@dataclass
class GuestComponent(ProcessComponent):
    """A component that is a guest: its quota, counters and threads are QEMU's on this host."""

    options: VmOptions = field(kw_only=True)
    guest_cores: int = field(kw_only=True)
    agent: GuestAgent | None = None
    monitor: QemuMonitor | None = None

    @property
    def place(self) -> str:
        return f"guest {self.name}"

    async def boot(self, files: GuestFiles) -> None:
        """Start QEMU and wait until the guest's agent answers, for `options.boot_s` at most.

        Raises `LabError` with what the console said last.
        """
        await set_links(
            self.namespace.network,
            "addr flush dev eth0",
            "link add bridge0 type bridge",
            f"tuntap add dev {qemu_command.TAP} mode tap",
            "link set eth0 master bridge0",
            f"link set {qemu_command.TAP} master bridge0",
            f"link set {qemu_command.TAP} up",
            "link set bridge0 up",
        )
        self.mac = qemu_command.mac_of(self.address)
        with ExitStack() as ours:
            agent, monitor = await self._start_qemu(files, ours)
            self.agent = await GuestAgent.over(agent)
            ours.pop_all()  # each belongs to whoever speaks over it
            with self._guest_sentences():
                try:
                    self.monitor = await QemuMonitor.over(monitor)
                    await self._booted(self.agent)
                except LabError as error:
                    await self._hear_the_end()
                    error.what += f"; {await self.last_words()}"
                    raise

    async def _start_qemu(
        self, files: GuestFiles, ours: ExitStack
    ) -> tuple[socket.socket, socket.socket]:
        """Our ends of agent and monitor; QEMU's ends and files are closed here."""
        with ExitStack() as theirs:
            pairs = []
            for _ in ("agent", "monitor"):
                our, their = socket.socketpair()
                pairs.append((ours.enter_context(our), theirs.enter_context(their)))
            numbers = []
            for path in (files.kernel, files.initramfs):
                numbers.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
                theirs.callback(os.close, numbers[-1])
            given = qemu_command.Descriptors(*numbers, *(their.fileno() for _, their in pairs))
            argv = qemu_command.command(self.options, self.guest_cores, self.mac, given)
            self.serving = await self._spawn(argv, inherited=given.all)
        self._read_log(self.serving)
        (agent, _), (monitor, _) = pairs
        return agent, monitor

    async def _booted(self, agent: GuestAgent) -> None:
        try:
            await agent.ready(self.options.boot_s)
        except GuestSilent as error:
            raise LabError(
                f"it has not booted in {self.options.boot_s} s: {error.what}",
                remedy="Give it longer (--lab vm:boot=SECONDS), or leave kvm for tcg",
            ) from error
        for argv in (
            ("sysctl", "-w", *(f"{key}={value}" for key, value in SYSCTLS.items())),
            ("ip", "addr", "add", f"{self.address}/{PREFIX}", "dev", "eth0"),
            ("ip", "link", "set", "eth0", "up"),
        ):
            outcome = await agent.run(argv)
            if outcome.exit_code != 0:
                raise LabError(
                    f"{' '.join(argv)} failed in it: {outcome.said}",
                    remedy="Choose another nic (--lab vm:nic=virtio)",
                )

    async def _hear_the_end(self) -> None:
        """What QEMU wrote last, where it has just ended, is heard a little later."""
        if self._reading is not None:
            await asyncio.wait((self._reading,), timeout=LAST_WORDS_S)

    @contextmanager
    def _guest_sentences(self) -> Iterator[None]:
        """Says of what goes wrong which guest it was."""
        try:
            yield
        except LabError as error:
            error.where = error.where or f"{self.place} ({self.template.name})"
            raise

    @property
    def _speaker(self) -> GuestAgent:
        if self.agent is None:
            raise LabError("it was not booted", where=self.place)
        return self.agent

    async def begin(self, argv: Sequence[str]) -> GuestProgram:
        return GuestProgram(asyncio.create_task(self._run(argv)), self.pid)

    async def _run(self, argv: Sequence[str]) -> Outcome:
        with self._guest_sentences():
            return await self._speaker.run(argv)

    async def write(self, path: str, content: str | bytes, mode: str) -> None:
        data = content.encode() if isinstance(content, str) else content
        with self._guest_sentences():
            await self._speaker.put(path, data, mode)

    async def get(self, path: str) -> bytes:
        """As text of at most 64 KiB."""
        outcome = await self._run(("cat", path))
        if outcome.exit_code != 0:
            raise LabError(f"{path} cannot be read: {outcome.said}", where=self.place)
        return outcome.stdout.encode()

    async def start(self, *, again: bool = False) -> None:
        """The function alone starts anew; the guest stays as it is."""
        del again  # a function that runs gives way
        given = (f"{key}={value}" for key, value in self.environment.items())
        with self._guest_sentences():
            await self._speaker.serve(("env", *given, *self.template.command))

    async def limit_memory(self, memory_bytes: int) -> None:
        del memory_bytes
        raise LabError(
            f"a guest's memory is fixed while it runs, at {self.options.memory_mib} MiB",
            where=self.place,
            remedy="Leave `memory` out of its resource parameters",
        )

    async def death(self) -> LabError | None:
        where = f"{self.place} ({self.template.name})"
        if not self.namespace.alive:
            return LabError("somebody ended its namespace", where=where)
        what = await self._trouble()
        if not what:
            return None
        return LabError(
            f"{what}; {await self.last_words()}",
            where=where,
            remedy="Try its configuration by hand, or lower the load",
        )

    async def _trouble(self) -> str:
        if self.serving is not None and self.serving.returncode is not None:
            return f"QEMU ended with exit code {self.serving.returncode}"
        if self.monitor is not None and (what := await self.monitor.trouble()):
            return what
        try:
            code = await self._speaker.served()
        except LabError as error:
            return error.what
        return "" if code is None else f"its function ended with exit code {code}"

    async def remove(self) -> None:
        if self.monitor is not None:
            await self.monitor.end()
        if self.agent is not None:
            self.agent.close()
        await super().remove()


@dataclass(frozen=True)
class GuestMaker:
    """Makes functions as guests, source and sink as processes."""

    processes: ProcessMaker
    options: VmOptions
    files: Mapping[str, GuestFiles]
    """By template."""
    cores_of: Callable[[str], int]
    """What a function's guest sees: as many cores as its largest allotment begins."""
    made: list[ProcessComponent]
    """All that it made or is making, so that whoever deploys can remove what never came up."""

    async def make(
        self,
        name: str,
        template: VnfTemplate,
        networks: Sequence[str],
        limits: Limits,
        environment: Mapping[str, str],
        shared_memory_bytes: int,
    ) -> Component:
        if template.role != "function":
            process = await self.processes.make(
                name, template, networks, limits, environment, shared_memory_bytes
            )
            self.made.append(process)
            return process
        held = await self.processes.hold(name, template, networks, environment, shared_memory_bytes)
        guest = GuestComponent.at(held, options=self.options, guest_cores=self.cores_of(name))
        self.made.append(guest)
        await guest.boot(self.files[template.name])
        # It boots as fast as it can; its quota holds from then on.
        await guest.limit_cpu(limits.cores, limits.pinned)
        for path, content in self.processes.programs.get(template.name, {}).items():
            await guest.write(path, content, "755")
        return guest
