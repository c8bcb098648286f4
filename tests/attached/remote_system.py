"""A system on another host, as far as one machine can have one: a network namespace with an
address, a real sshd and a web server in a control group of its own. Processes, cores and clock are
this machine's."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from running_system import RunningSystem, a_running_system

ANSWER_S = 20.0
HOST = """
set -eu
for folder in $2; do mount --bind "$folder" "$folder"; mount -o remount,bind,ro "$folder"; done
ip link set lo up
read -r _
exec "$3" -D -e -f "$1/sshd_config"
"""


@dataclass
class RemoteSystem:
    """A web server on another host, and how that is reached."""

    running: RunningSystem
    pid: int
    """Of its sshd."""
    home: Path
    """Of who may log in there: a key, and the host's in `known_hosts`."""
    address: str
    folder: Path
    """Programs in its `bin` go before those of the host."""

    @property
    def known_hosts(self) -> Path:
        return self.home / ".ssh" / "known_hosts"

    def cable(self, state: str) -> None:
        """Pull the network's cable of that host, `down`, or plug it in, `up`."""
        enter = ["nsenter", "--target", str(self.pid), "--net"]
        subprocess.run([*enter, "ip", "link", "set", "eth0", state], check=True)
        if state == "up":
            _answers(self.address)


def at_home(system: RemoteSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    """As who may log in there; what this host has fetched already is not fetched again."""
    cached = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    monkeypatch.setenv("XDG_CACHE_HOME", cached)
    monkeypatch.setenv("HOME", str(system.home))


def key(path: Path) -> str:
    """Make a key pair; the public one, as known_hosts has it."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return " ".join(path.with_suffix(".pub").read_text().split()[:2])


@contextmanager
def a_remote_system(
    folder: Path, *, read_only: bool = False, behind_s: int = 0
) -> Iterator[RemoteSystem]:
    """Ends with its namespaces; the interface goes with them.

    Parameters
    ----------
    read_only : who logs in there sees control groups that cannot be written to.
    behind_s : what `date` says there is so much behind: a stand-in for a clock that is off.
    """
    home = folder / "home"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    public = key(folder / "host_key")
    key(home / ".ssh" / "id_ed25519")
    net = f"10.{secrets.randbelow(100) + 100}.{secrets.randbelow(250)}"
    near, far, name = f"{net}.1", f"{net}.2", f"wb{secrets.token_hex(4)}"
    (home / ".ssh" / "known_hosts").write_text(f"{far} {public}\n")
    (folder / "sshd_config").write_text(
        f"Port 22\nListenAddress {far}\nHostKey {folder}/host_key\nPidFile none\n"
        f"AuthorizedKeysFile {home}/.ssh/id_ed25519.pub\nPasswordAuthentication no\n"
        "StrictModes no\nUsePAM no\nPermitRootLogin prohibit-password\n"
        f"SetEnv PATH={folder}/bin:/usr/bin:/bin\n"
    )
    (folder / "bin").mkdir()
    if behind_s:
        late = folder / "bin" / "date"
        late.write_text(f'#!/bin/sh\nexec /bin/date -d "-{behind_s} seconds" "$@"\n')
        late.chmod(0o755)
    Path("/run/sshd").mkdir(exist_ok=True)
    v1 = [f"/sys/fs/cgroup/{name}" for name in ("cpu", "cpuacct", "memory")]
    tops = [top for top in v1 if os.path.ismount(top)] or ["/sys/fs/cgroup"]
    locked = " ".join(tops) if read_only else ""
    program = shutil.which("sshd") or "/usr/sbin/sshd"
    sshd = subprocess.Popen(
        ["unshare", "--net", "--mount", "--propagation", "private",
         "sh", "-c", HOST, "host", str(folder), locked, program],
        stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _in_its_own(sshd.pid)
        _connect(sshd.pid, name, near, far)
        assert sshd.stdin is not None
        sshd.stdin.write(b"\n")
        sshd.stdin.close()
        _answers(far)
        within = ("nsenter", "--target", str(sshd.pid), "--net", "--")
        with a_running_system(folder, within, far, f"root@{far}") as running:
            yield RemoteSystem(running, sshd.pid, home, far, folder)
    finally:
        sshd.kill()
        sshd.wait()


def _in_its_own(pid: int) -> None:
    """Wait until it has left this network."""
    here = Path("/proc/self/ns/net").readlink()
    until = time.monotonic() + ANSWER_S
    while Path(f"/proc/{pid}/ns/net").readlink() == here:
        assert time.monotonic() < until, "the kernel makes no namespaces here"
        time.sleep(0.01)


def _connect(pid: int, name: str, near: str, far: str) -> None:
    enter = ("nsenter", "--target", str(pid), "--net")
    for words in (
        ("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(pid)),
        ("ip", "address", "add", f"{near}/30", "dev", name),
        ("ip", "link", "set", name, "up"),
        (*enter, "ip", "address", "add", f"{far}/30", "dev", "eth0"),
        (*enter, "ip", "link", "set", "eth0", "up"),
    ):
        subprocess.run(words, check=True)


def _answers(address: str) -> None:
    """Wait until its sshd does."""
    until = time.monotonic() + ANSWER_S
    while time.monotonic() < until:
        with socket.socket() as tried:
            tried.settimeout(1.0)
            if tried.connect_ex((address, 22)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError(f"no sshd answers at {address}")
