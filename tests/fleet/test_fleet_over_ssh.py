"""A lab host behind a real sshd on loopback: started, measured with, fetched from, ended."""

from __future__ import annotations

import getpass
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from driving import Workbench
from test_fleet_whole_way import CAMPAIGN, SAMPLES, lives, standing


@pytest.fixture
def port(workbench: Workbench) -> Iterator[int]:
    """Of an sshd that knows one key, which lies in the home folder of the command."""
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
        f"UsePAM no\nPermitRootLogin prohibit-password\nSetEnv XDG_RUNTIME_DIR={folder}\n"
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
        yield port
        process.terminate()


@pytest.mark.needs("sshd", "ssh-keygen")
def test_a_host_over_ssh_measures_and_sends_what_it_measured(
    workbench: Workbench, port: int
) -> None:
    there = workbench.runtime / "there"
    host = {
        "address": "127.0.0.1", "port": port, "user": getpass.getuser(), "lab": "sim",
        "python": sys.executable, "folder": str(there),
    }  # fmt: skip
    (workbench.root / "hosts.yaml").write_text(
        json.dumps({"kind": "hosts", "hosts": {"lab-a": host}})
    )
    (workbench.root / "small.yaml").write_text(CAMPAIGN)
    up = workbench.run("fleet", "up", "hosts.yaml")
    assert "lab-a  up" in up.stdout
    workbench.run(*"run ./small.yaml --fleet hosts.yaml --session s --seed 7".split())

    assert len(workbench.samples("s")) == SAMPLES
    assert len(list((there / "exports").glob("s.*.bundle"))) == 2
    known = standing(workbench)
    assert known["hosts"][0]["state"] == "up"
    # No key stands in a command line, and who ends the fleet leaves nothing there.
    worker = int(json.loads((there / ".workbench" / "engine.lock").read_text())["pid"])
    command = Path(f"/proc/{worker}/cmdline").read_bytes()
    assert b"lab_worker" in command
    assert b"PRIVATE" not in command
    workbench.run("fleet", "down", "hosts.yaml")
    deadline = time.monotonic() + 60
    while lives(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not lives(worker)
    assert not lives(known["pid"])
