"""A host that the hosts file names by an alias, and that itself has its own name at 127.0.1.1, as
Debian writes `/etc/hosts`: a network namespace with a real sshd."""

from __future__ import annotations

import asyncio
import getpass
import json
import re
import secrets
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from driving import LOCK_VARIABLE, MEASURING_LOCK, Workbench
from network_cuts import NFT
from test_fleet_whole_way import CAMPAIGN, SAMPLES

from workbench.domain import codec
from workbench.domain.fleets import LabHost
from workbench.fleet import scheduler_route
from workbench.fleet.fleet_standing import FleetError
from workbench.fleet.scheduler_route import must_be_reached, own_address
from workbench.fleet.security import Secrets, made
from workbench.fleet.tasks import Posting

LONGEST_S = 60.0
NAME = "lab-a.example"
HOST = """
set -eu
mount --bind "$1/hosts" /etc/hosts
ip link set lo up
read -r _
exec "$2" -D -q -f "$1/sshd_config"
"""


@dataclass(frozen=True)
class FarHost:
    """One that is reached at `far`; this one is `near` to it."""

    near: str
    far: str
    enter: str
    """Before a command that is to run there, by its network."""


def made_key(path: Path) -> str:
    """The public one, as `known_hosts` has it."""
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(words, check=True)
    return " ".join(path.with_suffix(".pub").read_text().split()[:2])


@pytest.fixture
def far_host(workbench: Workbench) -> Iterator[FarHost]:
    folder = workbench.runtime / "far"
    ssh = folder / "home" / ".ssh"
    ssh.mkdir(parents=True)
    made_key(ssh / "id_ed25519")
    net = f"10.{secrets.randbelow(50) + 200}.{secrets.randbelow(250)}"
    near, far = f"{net}.1", f"{net}.2"
    (ssh / "known_hosts").write_text(f"{far} {made_key(folder / 'host_key')}\n")
    (ssh / "config").write_text(f"Host {NAME}\n  HostName {far}\n")
    (folder / "hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {NAME} lab-a\n")
    (folder / "sshd_config").write_text(
        f"Port 22\nListenAddress {far}\nHostKey {folder}/host_key\nPidFile none\n"
        f"AuthorizedKeysFile {ssh}/id_ed25519.pub\nPasswordAuthentication no\nStrictModes no\n"
        f"UsePAM no\nPermitRootLogin prohibit-password\nSetEnv XDG_RUNTIME_DIR={folder} "
        f"{LOCK_VARIABLE}={MEASURING_LOCK}\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    program = shutil.which("sshd") or "/usr/sbin/sshd"
    sshd = subprocess.Popen(
        ["unshare", "--net", "--mount", "--propagation", "private",
         "sh", "-c", HOST, "host", str(folder), program],
        stdin=subprocess.PIPE,
    )  # fmt: skip
    host = FarHost(near, far, f"nsenter --target {sshd.pid} --net ")
    with ExitStack() as ending:
        ending.callback(sshd.wait)
        ending.callback(sshd.kill)
        connect(sshd, host)
        workbench.variables["HOME"] = str(folder / "home")
        yield host


def connect(sshd: subprocess.Popen[bytes], host: FarHost) -> None:
    """A cable between both, which goes with the namespace; waits until its sshd answers."""
    here, there = (Path(f"/proc/{each}/ns/net") for each in ("self", sshd.pid))
    until = time.monotonic() + LONGEST_S
    while there.readlink() == here.readlink():
        assert time.monotonic() < until, "the kernel makes no namespaces here"
        time.sleep(0.01)
    name = f"wb{secrets.token_hex(4)}"
    for words in (
        f"ip link add {name} type veth peer name eth0 netns {sshd.pid}",
        f"ip address add {host.near}/30 dev {name}",
        f"ip link set {name} up",
        f"{host.enter}ip address add {host.far}/30 dev eth0",
        f"{host.enter}ip link set eth0 up",
    ):
        subprocess.run(words.split(), check=True)
    assert sshd.stdin is not None
    sshd.stdin.write(b"\n")
    sshd.stdin.close()
    while time.monotonic() < until:
        with socket.socket() as tried:
            tried.settimeout(1.0)
            if tried.connect_ex((host.far, 22)) == 0:
                return
        time.sleep(0.02)
    pytest.fail(f"no sshd answers at {host.far}")


def write_hosts(workbench: Workbench, far_host: FarHost) -> None:
    """A hosts file with that one, which knows itself by another name."""
    lab = {
        "address": NAME, "user": getpass.getuser(), "lab": "sim", "python": sys.executable,
        "folder": str(workbench.runtime / "there"),
    }  # fmt: skip
    hosts = {"kind": "hosts", "listen": far_host.near, "hosts": {"lab-a": lab}}
    (workbench.root / "hosts.yaml").write_text(json.dumps(hosts))


@pytest.mark.slow
@pytest.mark.needs("sshd", "ssh-keygen", "ip", "nsenter", "unshare")
def test_a_host_is_named_by_an_alias_and_knows_its_own_name_at_loopback(
    workbench: Workbench, far_host: FarHost
) -> None:
    write_hosts(workbench, far_host)
    (workbench.root / "small.yaml").write_text(CAMPAIGN)
    workbench.run(*"run ./small.yaml --fleet hosts.yaml --session s --seed 7".split())
    assert len(workbench.samples("s")) == SAMPLES


@pytest.mark.needs("sshd", "ssh-keygen", "ip", "nsenter", "unshare", "nft")
def test_a_host_that_is_not_reached_from_the_scheduler_is_not_up(
    workbench: Workbench, far_host: FarHost
) -> None:
    """Its worker reaches the scheduler and would take work, the results of which nobody fetches."""
    begins = "tcp flags & (syn | ack) == syn"
    for rule in (
        "add table inet closed",
        "add chain inet closed input { type filter hook input priority 0 ; }",
        f"add rule inet closed input {begins} tcp dport != 22 reject with tcp reset",
    ):
        subprocess.run([*far_host.enter.split(), NFT, *rule.split()], check=True)
    write_hosts(workbench, far_host)
    said = workbench.run("fleet", "up", "hosts.yaml", expect=3)
    workbench.run("fleet", "down", "hosts.yaml")
    text = " ".join((said.stdout + said.stderr).split())
    assert "reaches its scheduler, but is not reached from there: Connection refused" in text
    assert f"tls://{far_host.far}:" in text


@asynccontextmanager
async def scheduler(folder: Path, secrets: Secrets, host: str = "127.0.0.1") -> AsyncIterator[str]:
    """The address of what speaks TLS with that certificate."""
    pem = folder / "both.pem"
    pem.write_text(secrets.certificate + secrets.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server = await asyncio.start_server(lambda _, writer: writer.close(), host, 0, ssl=context)
    async with server:
        shown = f"[{host}]" if ":" in host else host
        yield f"tls://{shown}:{server.sockets[0].getsockname()[1]}"


async def test_the_way_to_the_scheduler_says_which_address_is_this_host_s(tmp_path: Path) -> None:
    own = made()
    ahead = made(datetime.now(UTC) + timedelta(hours=14))  # than this host's clock
    async with scheduler(tmp_path, ahead) as address:
        assert await own_address(address, ahead) == "127.0.0.1"
    async with scheduler(tmp_path, own) as address:
        assert await own_address(address, own) == "127.0.0.1"
        assert await own_address(address.replace("127.0.0.1", "localhost"), own) == "127.0.0.1"
    if Path("/proc/net/if_inet6").exists():
        async with scheduler(tmp_path, own, "::1") as address:
            assert await own_address(address, own) == "[::1]"


async def test_why_a_scheduler_cannot_be_used_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def why(address: str, secrets: Secrets) -> str:
        with pytest.raises(FleetError) as raised:
            await own_address(address, secrets)
        return str(raised.value)

    own, late = made(), made(datetime.now(UTC) + timedelta(days=9))
    async with scheduler(tmp_path, late) as address:
        behind = await why(address, late)
        assert behind.startswith(f"{address}: its certificate is not valid yet by the clock of")
        assert re.search(r"which says \d{4}-\d\d-\d\d \d\d:\d\d UTC", behind)
    async with scheduler(tmp_path, own) as address:
        assert "its certificate is not that of the fleet" in await why(address, made())
    refused = await why(address, own)
    assert refused.startswith(f"{address}: is not reached from there: ")
    assert "Connection refused" in refused
    assert "`listen`" in refused
    assert "is not reached from there" in await why("tls://no.such.host.invalid:1", own)

    monkeypatch.setattr(scheduler_route, "REACHING_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # as behind a firewall that drops
        dropped = await why(f"tls://127.0.0.1:{silent.getsockname()[1]}", own)
    assert "it did not answer within 0.05 s" in dropped


async def test_whether_a_worker_is_reached_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = made()
    async with scheduler(tmp_path, own) as address:  # which answers as a worker does
        await must_be_reached(address, own)
    with pytest.raises(FleetError, match=r"not reached from there: Connection refused\. Open"):
        await must_be_reached(address, own)
    monkeypatch.setattr(scheduler_route, "REACHING_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dropped = f"tls://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(FleetError, match=r"it did not answer within 0\.05 s"):
            await must_be_reached(dropped, own)


async def said_by_worker(workbench: Workbench, posting: Posting) -> str:
    """Its first line, where it ends after that with a failure."""
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "workbench.fleet.lab_worker", env=workbench.environment,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(codec.dumps(codec.to_plain(posting)) + b"\n")
    said = (await worker.stdout.readline()).decode()
    assert await worker.wait() == 1
    worker.stdin.close()
    return said


@pytest.mark.slow
async def test_a_worker_that_does_not_reach_its_scheduler_says_why_and_ends(
    workbench: Workbench,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"tls://127.0.0.1:{taken.getsockname()[1]}"
    host = LabHost("lab-a", "ssh", address=NAME)
    posting = Posting(host, str(workbench.runtime / "there"), address, "", made())
    said = await said_by_worker(workbench, posting)
    assert said.startswith(f"down {address}: is not reached from there: Connection refused. See")
    # What nobody thought of is told as well.
    said = await said_by_worker(workbench, replace(posting, listen="127.0.0.1:x"))
    assert said.startswith("down ValueError: ")
