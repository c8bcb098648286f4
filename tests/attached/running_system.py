"""Systems that run already, as tests start them: a web server in a control group of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from workbench.labs.attached import AttachedLab
from workbench.probes import cgroup
from workbench.probes.process import PROC

Attach = Callable[[Path], AttachedLab]
"""Makes a lab of a campaign's file."""

SERVER = """
import asyncio, sys

delay_file = sys.argv[1]
BODY = b"x" * 1000
HEAD = b"HTTP/1.1 200 OK\\r\\nContent-Length: 1000\\r\\nContent-Type: text/plain\\r\\n\\r\\n"

async def serve(reader, writer):
    try:
        while await reader.readuntil(b"\\r\\n\\r\\n"):
            await asyncio.sleep(float(open(delay_file).read() or 0))
            writer.write(HEAD + BODY)
            await writer.drain()
    except (EOFError, OSError):
        pass
    finally:
        writer.close()

async def main():
    server = await asyncio.start_server(serve, sys.argv[3], int(sys.argv[2]), backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""
CAMPAIGN = """\
kind: campaign
attach:
  web:
    {found}
    url: http://127.0.0.1:{port}/
    max_load: 150/s
    guard: {guard}
    when_wrong: {when_wrong}
    resources: {resources}
targets:
  - vnf: web
{allotted}
primary_workload_parameter: {{name: rate, range: [20/s, 100/s]}}
load: {{kind: open, connections: 16}}
sampling: {{max_samples: {samples}}}
windows: {{warmup: 0.3s, window: 1.5s, timeout: 6s, request_timeout: 2s}}
"""
ALLOTTED = """\
    resource_parameters:
      - {name: vcpu, values: [35%]}
      - {name: memory, values: [64 MiB]}
"""


@dataclass
class RunningSystem:
    """A web server that somebody runs, in a group with limits of its own."""

    folders: tuple[Path, ...]
    path: str
    """Of its group, as `/proc/PID/cgroup` names it."""
    delay: Path
    """Holds how long the server takes for an answer, in seconds."""
    server: subprocess.Popen[str] | None = None
    port: int = 0
    pids: list[int] = field(default_factory=list)
    within: tuple[str, ...] = ()
    """Command that it is started by, such as one that enters a namespace."""
    address: str = "127.0.0.1"
    """At which it listens."""
    host: str = ""
    """By which campaigns reach it over SSH."""

    def start(self) -> None:
        """Start the server in the group, at the same port as before."""
        self.server = subprocess.Popen(
            [*self.within, sys.executable, "-c", SERVER, str(self.delay), str(self.port),
             self.address],
            stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(self.server.pid))
        assert self.server.stdout is not None
        self.port = int(self.server.stdout.readline())

    @property
    def pid(self) -> int:
        assert self.server is not None
        return self.server.pid

    def kill(self) -> None:
        assert self.server is not None
        self.server.kill()
        self.server.communicate()

    def settings(self) -> dict[str, bytes]:
        """Everything that limits the group, to the byte."""
        return settings_of(self.folders)

    @property
    def quota(self) -> Path:
        found = (f / n for f in self.folders for n in ("cpu.cfs_quota_us", "cpu.max"))
        return next(file for file in found if file.exists())

    def campaign(
        self,
        folder: Path,
        found: str = "",
        guard: str = "none",
        when_wrong: str = "end",
        resources: str = "cgroup",
        samples: int = 2,
    ) -> Path:
        path = folder / "running.yaml"
        found = found or f"pid: {self.pid}"
        template = CAMPAIGN
        if self.host:
            found += f"\n    host: {self.host}"
            template = CAMPAIGN.replace("127.0.0.1", "{{address}}")
        path.write_text(
            template.format(
                found=found,
                port=self.port,
                guard=guard,
                when_wrong=when_wrong,
                resources=resources,
                samples=samples,
                allotted=ALLOTTED if resources == "cgroup" else "",
            )
        )
        return path


LIMITS = ("cpu.cfs_*", "cpu.shares", "cpu.max", "cpu.weight", "cpuset.cpus", "cpuset.mems")
LIMITS += ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max", "memory.high")
LIMITS += ("memory.swap.max", "memory.soft_limit_in_bytes", "memory.swappiness", "pids.max")


def settings_of(folders: tuple[Path, ...]) -> dict[str, bytes]:
    return {
        str(file): file.read_bytes()
        for folder in folders
        for pattern in LIMITS
        for file in sorted(folder.glob(pattern))
    }


@contextmanager
def a_running_system(
    folder: Path,
    within: tuple[str, ...] = (),
    address: str = "127.0.0.1",
    host: str = "",
    kind: str = "",
) -> Iterator[RunningSystem]:
    """Ends with its group removed; whatever a test changed of it is gone then. Its group's name
    ends in `kind`."""
    name = f"attach-test-{os.getpid()}-{time.monotonic_ns()}{kind}"
    mounts = cgroup.parse_mounts((PROC / "self" / "mountinfo").read_text())
    controllers = [c for c in ("cpu", "cpuacct", "memory") if c in mounts] or [cgroup.UNIFIED]
    folders = tuple(dict.fromkeys(mounts[c].point / name for c in controllers))
    for each in folders:
        each.mkdir()
    delay = folder / "delay"
    delay.write_text("0")
    system = RunningSystem(folders, f"/{name}", delay, within=within, address=address, host=host)
    if (folders[0] / "cpu.cfs_quota_us").exists():
        (folders[0] / "cpu.cfs_period_us").write_text("50000")
        (folders[0] / "cpu.cfs_quota_us").write_text("40000")
    else:
        (folders[0] / "cpu.max").write_text("40000 50000")
    try:
        system.start()
        yield system
    finally:
        with suppress(AssertionError):
            system.kill()
        for each in folders:
            for pid in (each / "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            _removed(each)


def _removed(folder: Path) -> None:
    for _ in range(500):
        try:
            folder.rmdir()
        except OSError:
            time.sleep(0.01)  # the kernel rings no bell once a process has left its group
        else:
            return
