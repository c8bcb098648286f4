"""The authorized-keys file and the list of commands: what they let in, and what not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import asyncssh
import pytest

from workbench.audit import MOST_BYTES, AuditLog
from workbench.domain.errors import UsageError
from workbench.serve.commands import arguments
from workbench.serve.host_key import host_key
from workbench.serve.keys import KeyRing
from workbench.serve.server import authorized_keys


@pytest.fixture(scope="module")
def public() -> str:
    key = asyncssh.generate_private_key("ssh-ed25519", comment="ann@laptop")
    return key.export_public_key().decode().strip()


def ring(tmp_path: Path, *lines: str) -> KeyRing:
    path = tmp_path / "keys"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    keys = KeyRing(path)
    keys.load()
    return keys


@pytest.mark.parametrize(
    ("options", "role", "name"),
    [
        ("", "observer", "ann@laptop"),
        ("observer ", "observer", "ann@laptop"),
        ("operator ", "operator", "ann@laptop"),
        ('name="Ann, lab 2",operator ', "operator", "Ann, lab 2"),
        ('restrict,operator,name="a b" ', "operator", "a b"),
        ('name="\x1b[31mred" ', "observer", "·[31mred"),
    ],
)
def test_roles_and_names(tmp_path: Path, public: str, options: str, role: str, name: str) -> None:
    keys = ring(tmp_path, "# lab keys", "", options + public)
    (grant,) = keys.grants()
    assert (grant.role, grant.name) == (role, name)
    assert keys.grant(asyncssh.import_public_key(public)) == grant


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('command="ls" {}', "the option command is not known here"),
        ("operator,cert-authority {}", "the option cert-authority is not known"),
        ("admin {}", "the option admin is not known here"),
        ('operator="yes" {}', "the option operator is not known here"),
        ('from="somewhere" {}', "does not appear to be an IPv4 or IPv6 network"),
        ("operator ssh-ed25519 AAAA", "is not a public key"),
        ("\x00\xff", "is not a public key"),
    ],
)
def test_what_cannot_be_held_lets_nobody_in(
    tmp_path: Path, public: str, line: str, sentence: str
) -> None:
    keys = ring(tmp_path, line.format(public))
    assert keys.grants() == ()
    assert len(keys.mistakes) == 1
    assert sentence in keys.mistakes[0]
    assert keys.mistakes[0].startswith(f"{keys.path}:1: ")
    with pytest.raises(UsageError, match="opens anything"):
        authorized_keys(keys.path)


def test_where_a_key_may_come_from(tmp_path: Path, public: str) -> None:
    (grant,) = ring(tmp_path, f'from="10.0.0.0/8,!10.0.0.66,::1" {public}').grants()
    assert [grant.holds_from(a) for a in ("10.1.2.3", "10.0.0.66", "::1", "192.168.0.1", "")] == [
        *(True, False, True, False, False)
    ]


def test_a_file_that_others_may_write_is_not_trusted(tmp_path: Path, public: str) -> None:
    keys = ring(tmp_path, public)
    keys.path.chmod(0o664)
    with pytest.raises(UsageError, match="others can write"):
        keys.load()


@pytest.mark.needs("ssh-keygen")
def test_the_host_key_is_made_once_and_kept_private(tmp_path: Path) -> None:
    path = tmp_path / "state" / "key"
    first = host_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert host_key(path).public_data == first.public_data
    assert [p.name for p in path.parent.iterdir()] == ["key"]
    listed = subprocess.run(
        ["ssh-keygen", "-l", "-f", path], capture_output=True, text=True, check=True
    )
    assert first.get_fingerprint() in listed.stdout
    path.chmod(0o640)
    with pytest.raises(UsageError, match="others can read"):
        host_key(path)


@pytest.mark.parametrize(
    "line",
    [
        "ls --json",
        "recommend demo-1 --sla 'p95<=200ms @ rate=300/s' --verify --budget 5m",
        "predict demo-1 --chain a-b --at=rate=300/s --json",
        "samples demo-1 --format csv",
        "why demo-1 --chain a-b --at=rate=20/s --json",
        "why demo-1 --sample tiny-ha/50%/100/0",
        "export demo-1 --as helm --recommendation r1",
        "canary demo-1 --guard p95<=200ms --help",
    ],
)
def test_commands_that_are_run(line: str) -> None:
    assert arguments(line)[0] == line.split()[0]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "bash",
        "run demo",
        "ls --output x",
        "ls --json=yes",
        "export demo-1 --as csv --output x",
        "show .ssh",
        "show a/b",
        "show -x",
        "compare a b --profiles ~root",
        "plan --lab recorded:/x",
        "canary s --why '\x1b[2J'",
        "canary s --why --accept",
        "models 'a\nb'",
        "recommend s --sla",
        "show " + "a" * 5000,
    ],
)
def test_commands_that_are_not(line: str) -> None:
    with pytest.raises(UsageError):
        arguments(line)


def test_the_audit_log_is_bounded_private_and_tells_nothing_raw(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    log.write("x", who="\x1b]0;gone\x07", long="y" * 5000)
    (line,) = log.path.read_text().splitlines()
    assert line.isprintable()
    assert len(line) < 800
    assert log.path.stat().st_mode & 0o777 == 0o600
    for _ in range(7):
        with log.path.open("ab") as file:
            file.truncate(MOST_BYTES)
        log.write("y")
    kept = sorted(p.name for p in tmp_path.iterdir())
    assert kept == ["audit.log", *(f"audit.log.{n}" for n in (1, 2, 3, 4))]
    assert log.path.stat().st_size < 100
