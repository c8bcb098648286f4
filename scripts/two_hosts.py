"""Two lab hosts of this one: `sudo .venv/bin/python scripts/two_hosts.py demo`.

Each is a set of namespaces (network, mounts, names, processes) with a name, a machine-id, a /run, a
workspace and a tree of control groups of its own, and with a real sshd whose key is checked. They
hang by veth pairs on a bridge in a network namespace of its own, where the fleet comes up,
measures the campaign with the namespace lab, goes down, and leaves one session in this workspace.

All of it is inside one process namespace that the kernel ends with this process, `kill -9` too;
what then is left are empty control groups, which the next start removes, and a folder in
/tmp. The two hosts share the cores of this one, and so measure in turns: nothing is gained in time,
and what is different between them is noise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path

import structlog

from workbench.descriptors.loading import load_campaign
from workbench.labs.base import LabSettings
from workbench.labs.netns.lab import NetnsLab, lacking
from workbench.labs.once import cache
from workbench.paths import LOCK_VARIABLE, workspace
from workbench.sampling.shards import anchor, split

NAMES = ("alpha", "beta")
BRIDGE = "10.213.0.1"
ADDRESSES = {name: f"10.213.0.{number}" for number, name in enumerate(NAMES, 2)}
PORT = 22
GROUPS = Path("/sys/fs/cgroup")
OWN = "vnf-workbench-two-hosts"
"""Top of our control groups; below it one folder for each start, named by its process."""
COMMAND = str(Path(sys.executable).parent / "workbench")
ANSWER_S = 20.0
ENTER = ("setpriv", "--pdeathsig", "KILL", "--", "unshare", "--kill-child", "--fork", "--net",
         "--mount", "--uts", "--pid", "--mount-proc", "--propagation", "private")  # fmt: skip
HOST = """
set -eu
hostname "$1"
mount --bind "$2/machine-id" /etc/machine-id
mount -t tmpfs -o mode=755 run /run
mkdir -p -m 755 /run/sshd
while read -r own over; do mount --bind "$own" "$over"; done <"$2/groups"
ip link set lo up
exec "$3" -D -e -q -f "$2/sshd_config"
"""


# ---------------------------------------------------------------------- outside


def controllers() -> list[Path]:
    """Where the hierarchies of control groups are: one of version 2, several of version 1."""
    if (GROUPS / "cgroup.controllers").exists():
        return [GROUPS]
    return [path for path in sorted(GROUPS.glob("*/")) if (path / "cgroup.procs").exists()]


def make_groups(start: str) -> None:
    """A folder for each host in each hierarchy, with the cores and controllers of what is above."""
    for top in controllers():
        for name in NAMES:
            folder = top
            for part in (OWN, start, name):
                if (folder / "cgroup.subtree_control").exists():
                    there = (folder / "cgroup.controllers").read_text().split()
                    wanted = " ".join(f"+{c}" for c in ("cpu", "memory", "cpuset") if c in there)
                    (folder / "cgroup.subtree_control").write_text(wanted)
                above, folder = folder, folder / part
                folder.mkdir(exist_ok=True)
                for file in ("cpuset.cpus", "cpuset.mems"):
                    if folder.joinpath(file).exists() and top != GROUPS:
                        (folder / file).write_text((above / file).read_text())


def sweep() -> None:
    """Remove the control groups of starts whose process is gone; those in use cannot be."""
    for top in controllers():
        for start in sorted((top / OWN).glob("*/")):
            if start.name != str(os.getpid()) and Path(f"/proc/{start.name}").exists():
                continue
            for folder in sorted(start.rglob("*/"), reverse=True):
                with suppress(OSError):
                    folder.rmdir()
            with suppress(OSError):
                start.rmdir()
        with suppress(OSError):
            (top / OWN).rmdir()


def outside(words: list[str], campaign: str) -> int:
    """Fetch what the hosts need while there is a network, then go on in namespaces."""

    async def fetch() -> None:
        loaded = await asyncio.to_thread(load_campaign, campaign, workspace=workspace())
        whole, settings = loaded.campaign, LabSettings(session="two-hosts")
        first = anchor(whole, host=NAMES[0], run="two-hosts", lab="netns", seed=1)
        shards = split(whole, len(NAMES), run="two-hosts", lab="netns", seed=1)
        for shard in (first, *shards):  # what is fetched is kept by what a shard needs
            lab = NetnsLab(shard.campaign, settings)
            await lab.open()
            await lab.close()

    sweep()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    asyncio.run(fetch())
    folder = Path(tempfile.mkdtemp(prefix="two-hosts-"))
    make_groups(str(os.getpid()))
    inner = [sys.executable, __file__, "--inside", str(folder), "--start", str(os.getpid()), *words]
    process = subprocess.Popen([*ENTER, *inner], start_new_session=True)
    try:
        return process.wait()
    finally:
        process.kill()
        process.wait()
        until = time.monotonic() + ANSWER_S
        while time.monotonic() < until and any((top / OWN).exists() for top in controllers()):
            sweep()  # the kernel rings no bell once the last process of a namespace has ended
            time.sleep(0.2)
        shutil.rmtree(folder, ignore_errors=True)


# ---------------------------------------------------------------------- inside


def run(*argv: str) -> None:
    subprocess.run(argv, check=True)


def keys(folder: Path) -> Path:
    """A home with the key of who commands and the keys of both hosts; and what sshd is told."""
    home = folder / "home"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    user = home / ".ssh" / "id_ed25519"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(user))
    known = []
    for name in NAMES:
        own = folder / name
        own.mkdir()
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(own / "host_key"))
        kind, key, *_ = (own / "host_key.pub").read_text().split()
        known.append(f"{ADDRESSES[name]} {kind} {key}\n")
        (own / "runtime").mkdir(mode=0o700)
        (own / "machine-id").write_text(uuid.uuid4().hex + "\n")
        (own / "sshd_config").write_text(
            f"Port {PORT}\nListenAddress {ADDRESSES[name]}\nHostKey {own}/host_key\nPidFile none\n"
            f"AuthorizedKeysFile {user}.pub\nPasswordAuthentication no\nStrictModes no\nUsePAM no\n"
            "PermitRootLogin prohibit-password\n"
            f"SetEnv XDG_RUNTIME_DIR={own}/runtime XDG_STATE_HOME={own}/state "
            f"XDG_CACHE_HOME={cache().parent} "
            # Cores that are shared are measured on in turns.
            f"{LOCK_VARIABLE}={folder}/measuring.lock\n"
        )
    (home / ".ssh" / "known_hosts").write_text("".join(known))
    return home


def host(name: str, folder: Path, start: str) -> subprocess.Popen[bytes]:
    """The namespaces of one host with its sshd, connected to the bridge; waits until it answers."""
    own = folder / name
    groups = [f"{top / OWN / start / name} {top}\n" for top in controllers()]
    (own / "groups").write_text("".join(groups))
    program = shutil.which("sshd") or "/usr/sbin/sshd"
    # Its address comes a moment later: it waits for a line.
    process = subprocess.Popen(
        [*ENTER, "sh", "-c", "read -r _; " + HOST, "host", name, str(own), program],
        stdin=subprocess.PIPE,
    )
    pid = first_inside(process.pid)
    near = ("nsenter", "--target", str(pid), "--net", "ip")
    run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    run("ip", "link", "set", name, "master", "hosts", "up")
    run(*near, "address", "add", f"{ADDRESSES[name]}/24", "dev", "eth0")
    run(*near, "link", "set", "eth0", "up")
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.close()
    until = time.monotonic() + ANSWER_S
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), socket.create_connection((ADDRESSES[name], PORT), 1.0):
            return process
        time.sleep(0.05)
    raise SystemExit(f"two_hosts: the sshd of {name} does not answer at {ADDRESSES[name]}")


def first_inside(pid: int) -> int:
    """The child of `unshare`, which is the first process of the namespaces."""
    until = time.monotonic() + ANSWER_S
    while time.monotonic() < until:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        # Its parent has set up all of it once it is another program.
        if children and Path(f"/proc/{children[0]}/comm").read_text().strip() == "sh":
            return int(children[0])
        time.sleep(0.02)
    raise SystemExit("two_hosts: the kernel makes no namespaces here")


def inside(given: argparse.Namespace, options: list[str]) -> int:
    """Both hosts, their hosts file, and the campaign over them; who called removes all of it."""
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "hosts", "type", "bridge")
    run("ip", "address", "add", f"{BRIDGE}/24", "dev", "hosts")
    run("ip", "link", "set", "hosts", "up")
    home = keys(given.inside)
    for name in NAMES:
        host(name, given.inside, given.start)
    kept = workspace().state / "two-hosts"  # stays when the hosts end
    hosts = {
        name: {"address": ADDRESSES[name], "port": PORT, "user": "root", "lab": "netns",
               "python": sys.executable, "folder": str(kept / name)}
        for name in NAMES
    }  # fmt: skip
    path = given.inside / "two-hosts.yaml"
    path.write_text(json.dumps({"kind": "hosts", "listen": BRIDGE, "hosts": hosts}))
    print(
        f"two_hosts: {' and '.join(NAMES)} have an sshd each. They share the {os.cpu_count()} "
        "cores of this host, so they measure in turns: one at a time",
        flush=True,
    )
    runtime = given.inside / "runtime"
    runtime.mkdir(mode=0o700)
    environment = os.environ | {"HOME": str(home), "XDG_RUNTIME_DIR": str(runtime)}
    up = subprocess.run([COMMAND, "fleet", "up", str(path)], env=environment, check=False)
    if up.returncode:
        return up.returncode
    words = [COMMAND, "run", given.campaign, "--fleet", str(path), *options]
    code = subprocess.run(words, env=environment, check=False).returncode
    subprocess.run([COMMAND, "fleet", "down", str(path)], env=environment, check=False)
    subprocess.run([COMMAND, "engine", "stop"], env=environment, check=False, capture_output=True)
    return code


def main() -> None:
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="What else is given goes to `workbench run`, such as --session NAME.",
    )  # fmt: skip
    asked.add_argument("campaign", nargs="?", default="demo")
    asked.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    asked.add_argument("--start", help=argparse.SUPPRESS)
    given, options = asked.parse_known_args()
    if given.inside:
        sys.exit(inside(given, options))
    if short := lacking():
        sys.exit(f"two_hosts: {short[0]}. {short[1]}.")
    for program in ("sshd", "ssh-keygen"):
        if shutil.which(program) is None and not Path("/usr/sbin", program).exists():
            sys.exit(f"two_hosts: this host has no {program}. Install openssh-server.")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    try:
        sys.exit(outside([given.campaign, *options], given.campaign))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
