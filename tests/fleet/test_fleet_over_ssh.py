"""A lab host behind a real sshd on loopback: started, measured with, fetched from, ended."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from driving import LOCK_VARIABLE, MEASURING_LOCK, Workbench
from test_fleet_whole_way import CAMPAIGN, SAMPLES, lives, standing
from test_hosts_by_name import scheduler

from workbench import __version__
from workbench.domain.fleets import Fleet, LabHost
from workbench.fleet.fleet_standing import FleetFolder, HostStanding
from workbench.fleet.host_reaping import HostReaping, reaped_here
from workbench.fleet.keeper import LONGEST_LINE, Keeper, WorkerEnd, last_line
from workbench.fleet.security import made

LONGEST_S = 60.0


@dataclass(frozen=True)
class Sshd:
    """One that is there, and the process that listens."""

    port: int
    pid: int

    def hang_up(self) -> None:
        """End all connections as a crash does, without a word; it listens on."""
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError, ProcessLookupError):
                name, _, rest = path.read_text().rpartition(")")
                if int(rest.split()[1]) == self.pid and "(sshd" in name:
                    os.kill(int(path.parent.name), signal.SIGKILL)


@pytest.fixture
def sshd(workbench: Workbench) -> Iterator[Sshd]:
    """It knows one key, which lies in the home folder of the command."""
    folder = workbench.runtime / "ssh"
    home = folder / "home"
    (home / ".ssh").mkdir(parents=True)
    host_key, user_key = folder / "host_key", home / ".ssh" / "id_ed25519"
    for key in (host_key, user_key):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
        subprocess.run(words, check=True)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = int(probe.getsockname()[1])
    public = host_key.with_suffix(".pub").read_text().split()
    (home / ".ssh" / "known_hosts").write_text(f"[127.0.0.1]:{port} {public[0]} {public[1]}\n")
    settings = folder / "sshd_config"
    settings.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {host_key}\nPidFile none\n"
        f"AuthorizedKeysFile {user_key}.pub\nPasswordAuthentication no\nStrictModes no\n"
        f"UsePAM no\nPermitRootLogin prohibit-password\nSetEnv XDG_RUNTIME_DIR={folder} "
        f"{LOCK_VARIABLE}={MEASURING_LOCK}\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    program = shutil.which("sshd") or "/usr/sbin/sshd"
    with subprocess.Popen([program, "-D", "-q", "-f", str(settings)]) as process:
        for _ in range(500):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        workbench.variables["HOME"] = str(home)
        yield Sshd(port, process.pid)
        process.terminate()


def hosts_file(workbench: Workbench, sshd: Sshd) -> Path:
    """One of a host behind that sshd; its folder there."""
    there = workbench.runtime / "there"
    host = {
        "address": "127.0.0.1", "port": sshd.port, "user": getpass.getuser(), "lab": "sim",
        "python": sys.executable, "folder": str(there),
    }  # fmt: skip
    (workbench.root / "hosts.yaml").write_text(
        json.dumps({"kind": "hosts", "hosts": {"lab-a": host}})
    )
    return there


def worker_there(there: Path) -> int:
    return int(json.loads((there / ".workbench" / "engine.lock").read_text())["pid"])


def ends(pid: int) -> bool:
    """Whether a process is gone within a moment: its lock is free a little before."""
    deadline = time.monotonic() + LONGEST_S
    while lives(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not lives(pid)


@pytest.mark.needs("sshd", "ssh-keygen")
def test_a_worker_that_is_stuck_over_ssh_is_ended(workbench: Workbench, sshd: Sshd) -> None:
    """By the next that its fleet starts there, and with the fleet; never by another fleet."""
    there = hosts_file(workbench, sshd)
    workbench.run("fleet", "up", "hosts.yaml")
    first = worker_there(there)
    os.kill(first, signal.SIGSTOP)  # it does not notice that its connection is gone
    os.kill(standing(workbench)["pid"], signal.SIGKILL)
    assert "lab-a  up" in workbench.run("fleet", "up", "hosts.yaml").stdout
    second = worker_there(there)
    assert second != first
    assert ends(first)

    said = asyncio.run(reaped_here(HostReaping(str(there), "of another fleet")))
    assert f"another fleet measures there with the same folder (process {second})" in str(said)
    assert lives(second)

    os.kill(second, signal.SIGSTOP)
    down = workbench.run("fleet", "down", "hosts.yaml")
    assert f"lab-a: its worker (process {second}) did not end and was killed" in down.stderr
    assert ends(second)


@pytest.mark.needs("sshd", "ssh-keygen")
def test_a_host_over_ssh_measures_and_sends_what_it_measured(
    workbench: Workbench, sshd: Sshd
) -> None:
    there = hosts_file(workbench, sshd)
    (workbench.root / "small.yaml").write_text(CAMPAIGN)
    up = workbench.run("fleet", "up", "hosts.yaml")
    assert "lab-a  up" in up.stdout
    workbench.run(*"run ./small.yaml --fleet hosts.yaml --session s --seed 7".split())

    assert len(workbench.samples("s")) == SAMPLES
    assert len(list((there / "exports").glob("s.*.bundle"))) == 2
    known = standing(workbench)
    assert known["hosts"][0]["state"] == "up"
    # No key stands in a command line, and who ends the fleet leaves nothing there.
    worker = worker_there(there)
    command = Path(f"/proc/{worker}/cmdline").read_bytes()
    assert b"lab_worker" in command
    assert b"PRIVATE" not in command
    workbench.run("fleet", "down", "hosts.yaml")
    assert ends(worker)
    assert not lives(known["pid"])


@asynccontextmanager
async def kept(
    workbench: Workbench, sshd: Sshd, worker: str
) -> AsyncIterator[Callable[[Callable[[HostStanding], bool]], Awaitable[HostStanding]]]:
    """A host whose worker is this script, kept up while the body runs: waits until it stands so.

    `AT` in the script is an address at which a worker could be reached.
    """
    program, secrets = workbench.runtime / "worker", made()
    host = LabHost(
        "lab-a", "ssh", address="127.0.0.1", port=sshd.port, user=getpass.getuser(),
        python=str(program),
    )  # fmt: skip
    fleet, folder = Fleet("hosts", (host,)), FleetFolder(workbench.runtime / "fleet")
    keeper = Keeper(fleet, folder, secrets, "tls://127.0.0.1:1", lambda: {host.name})

    async def until(so: Callable[[HostStanding], bool]) -> HostStanding:
        async with asyncio.timeout(LONGEST_S):
            while not so(keeper.standing.hosts[0]):
                assert not keeping.done(), "nobody keeps it any more"
                await asyncio.sleep(0.02)
        return keeper.standing.hosts[0]

    async with scheduler(workbench.runtime, secrets) as reached:  # as the worker would be
        program.write_text(f"#!/bin/sh\nread -r posting\n{worker.replace('AT', reached)}\n")
        program.chmod(0o755)
        keeping = asyncio.create_task(keeper.keep(host))
        try:
            yield until
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)


@pytest.mark.needs("sshd", "ssh-keygen")
async def test_a_host_whose_connection_breaks_is_started_again(
    workbench: Workbench, sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", workbench.variables["HOME"])
    async with kept(workbench, sshd, f"echo up {__version__} AT; exec cat > /dev/null") as until:
        await until(lambda host: (host.state, host.starts) == ("up", 1))
        sshd.hang_up()
        lost = await until(lambda host: host.state == "lost")
        assert "its SSH connection broke" in lost.note
        await until(lambda host: (host.state, host.starts) == ("up", 2))


@pytest.mark.needs("sshd", "ssh-keygen")
@pytest.mark.parametrize(
    ("worker", "said"),
    [
        ("echo 'no such module' >&2; exit 3", "ended with exit code 3: no such module"),
        ("kill -9 $$", "was killed by signal 9"),
        (f"echo up {__version__} AT; echo gone >&2; exit 4", "ended with exit code 4: gone"),
    ],
)
async def test_how_a_worker_ended_is_told(
    worker: str, said: str, workbench: Workbench, sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", workbench.variables["HOME"])
    async with kept(workbench, sshd, worker) as until:
        assert (await until(lambda host: host.state == "lost")).note.startswith(said)


async def test_the_last_line_of_an_error_is_bounded_and_harmless() -> None:
    async def told(*pieces: bytes) -> str:
        left = list(pieces)

        async def read(_: int) -> bytes:
            return left.pop(0) if left else b""

        return await last_line(read)

    assert await told(b"one\ntwo", b" words\n\n") == "two words"
    assert await told(b"a\x1b[2Jb\xff") == "a·[2Jb\ufffd"
    assert await told(*[b"x" * 10_000] * 5) == "x" * LONGEST_LINE
    assert await told() == ""
    assert str(WorkerEnd(None)) == "ended, its host did not say how"
