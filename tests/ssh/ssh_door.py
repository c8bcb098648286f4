"""The SSH server and the OpenSSH client beside it, in a folder of their own."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh
from driving import Workbench
from forked_commands import Started
from terminal import Terminal

PATIENCE_S = 180.0
"""What a test waits for comes long before; no test asserts a time."""
ROLES = {"ann": "operator", "bob": "operator", "olga": "observer"}


def make_keys(folder: Path) -> Path:
    """Key pairs of ann and bob (operators), olga (observer) and eve; the authorized-keys file."""
    folder.mkdir(parents=True)
    for name in (*ROLES, "eve"):
        key = asyncssh.generate_private_key("ssh-ed25519", comment=name)
        key.write_private_key(folder / name)
        (folder / name).chmod(0o600)
        key.write_public_key(folder / f"{name}.pub")
    lines = [f"{role} {(folder / f'{name}.pub').read_text()}" for name, role in ROLES.items()]
    path = folder / "authorized_keys"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def ssh_options(keys: Path, key: str, port: int, *options: str) -> list[str]:
    """What `ssh` and `sftp` need to ignore the account that the tests run in."""
    chosen = {
        "Port": str(port),
        "IdentityFile": str(keys / key),
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "StrictHostKeyChecking": "accept-new",
        "UserKnownHostsFile": str(keys / "known_hosts"),
        "LogLevel": "ERROR",
        "BatchMode": "yes",
    }
    words = [word for name, value in chosen.items() for word in ("-o", f"{name}={value}")]
    return ["-F", "/dev/null", *options, *words]


def audited(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def until(holds: Callable[[], Any], what: str) -> Any:
    """What `holds` says, as soon as that is something."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := holds()):
        assert time.monotonic() < deadline, f"{what} never came"
        time.sleep(0.05)
    return found


@dataclass
class Door:
    """`workbench serve` on loopback."""

    workbench: Workbench
    keys: Path
    port: int
    process: subprocess.Popen[str] | Started = field(repr=False)

    def ssh(
        self, key: str, *words: str, options: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """A command over SSH to its end."""
        return subprocess.run(
            ["ssh", *ssh_options(self.keys, key, self.port, *options), "--", "127.0.0.1", *words],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL,
            env=self.workbench.environment,
        )

    def sftp(self, key: str, *batch: str) -> subprocess.CompletedProcess[str]:
        """Commands to sftp; each may fail."""
        return subprocess.run(
            ["sftp", "-b", "-", *ssh_options(self.keys, key, self.port), "127.0.0.1"],
            input="".join(f"-{line}\n" for line in batch),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            cwd=self.keys,
            env=self.workbench.environment,
        )

    def screen(self, key: str) -> Terminal:
        """A screen over SSH in a pty of its own."""
        options = ssh_options(self.keys, key, self.port, "-tt")
        return Terminal(self.workbench, *options, "127.0.0.1", command="ssh")

    @property
    def audit_log(self) -> Path:
        return self.workbench.root / ".workbench" / "audit.log"

    def told(self, what: str, **facts: Any) -> list[dict[str, Any]]:
        """Lines of the audit log of that kind with those facts."""
        return [
            line
            for line in audited(self.audit_log)
            if line["what"] == what and all(line.get(k) == v for k, v in facts.items())
        ]

    def until_told(self, what: str, count: int = 1, **facts: Any) -> list[dict[str, Any]]:
        def enough() -> list[dict[str, Any]]:
            found = self.told(what, **facts)
            return found if len(found) >= count else []

        found: list[dict[str, Any]] = until(enough, f"{what} {facts} in the audit log")
        return found


@contextmanager
def open_door(workbench: Workbench) -> Iterator[Door]:
    keys = workbench.root / "keys"
    authorized = make_keys(keys)
    process = workbench.begin("serve", "--port", "0", "--authorized-keys", str(authorized))
    try:
        line = process.stderr.readline()
        found = re.search(r"listening at 127\.0\.0\.1:(\d+)", line)
        assert found, line + process.stderr.read()
        counts, to_type = process.stderr.readline(), process.stderr.readline()
        assert "audit log" in counts
        assert to_type.startswith(f"to see the screens: ssh -p {found[1]} 127.0.0.1")
        yield Door(workbench, keys, int(found[1]), process)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
