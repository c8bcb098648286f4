"""One campaign measures on a host at a time, whoever's it is."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from driving import LOCK_VARIABLE
from host_needs import missing

from workbench import paths
from workbench.domain.errors import UsageError
from workbench.domain.lab import Check
from workbench.engine.runs import doctor
from workbench.locks import UNKNOWN, FileLock, Holder, HostLock
from workbench.paths import MEASURING_LOCK, measuring_lock

OWN = Holder(7, "/home/ann/lab", "demo")
NOBODY = 65534
ANOTHER = {"user": NOBODY} if os.geteuid() == 0 else {}
"""Who is not root has no other user at hand: there the file's mode alone says what others may."""
PARTS = (
    "import json, os, sys; from pathlib import Path\n"
    "from workbench import paths; from workbench.locks import Holder, HostLock\n"
)
NO_ROOT = f"if os.geteuid() == 0: os.setgid({NOBODY}); os.setuid({NOBODY})\n"
"""Begins what somebody does whom modes of files hold back."""


@pytest.fixture
def everybodys() -> Iterator[Path]:
    """A folder as /run/lock is; those of pytest are closed to other users."""
    with tempfile.TemporaryDirectory(prefix="wb-lock-") as folder:
        Path(folder).chmod(0o1777)
        yield Path(folder)


def test_all_users_and_runtime_folders_of_a_host_have_one_lock(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, everybodys: Path
) -> None:
    monkeypatch.delenv(LOCK_VARIABLE)
    monkeypatch.setattr(paths, "EVERYBODYS", (tmp_path, everybodys))
    found = set()
    for user in ("ann", "bob"):
        runtime = tmp_path / user
        runtime.mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        found.add(measuring_lock())
    assert [path.parent for path in found] == [everybodys]
    monkeypatch.setattr(paths, "EVERYBODYS", (tmp_path, tmp_path / "none"))
    assert measuring_lock().is_relative_to(tmp_path / "bob"), "else each user has one"
    monkeypatch.setenv(LOCK_VARIABLE, "own.lock")
    assert measuring_lock().parent.parent == tmp_path / "bob"
    monkeypatch.setenv(LOCK_VARIABLE, "/srv/shared.lock")
    assert measuring_lock() == Path("/srv/shared.lock")
    monkeypatch.setenv("HOME", str(everybodys))
    monkeypatch.setenv(LOCK_VARIABLE, "~/shared.lock")
    assert measuring_lock() == everybodys / "shared.lock"
    monkeypatch.setenv(LOCK_VARIABLE, "~no-such-user/shared.lock")
    with pytest.raises(UsageError, match="begins with a user that this host does not know"):
        measuring_lock()


def test_a_folder_that_is_missing_is_not_made_for_one_user_alone(everybodys: Path) -> None:
    path = everybodys / "none" / "lock"
    lock = HostLock(path)
    assert lock.holder() is None
    with pytest.raises(UsageError, match=f"Make {path.parent} a folder in which all"):
        lock.take(OWN)
    assert not path.parent.exists()


@pytest.mark.needs("flock")
def test_another_user_meets_the_lock_and_can_hold_it(everybodys: Path) -> None:
    path = everybodys / "lock"
    lock = HostLock(path)
    umask = os.umask(0o077)
    try:
        assert lock.take(OWN)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    words = ["flock", "-n", "-E", "9", str(path), "true"]
    assert subprocess.run(words, **ANOTHER, check=False).returncode == 9
    lock.free()
    says = 'echo \'{"pid": 8, "workspace": "/home/bob", "session": "his"}\' > $0; echo; read -r _'
    theirs = ["flock", str(path), "sh", "-c", says, str(path)]
    with subprocess.Popen(
        theirs, **ANOTHER, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n", "it holds the lock and has said so"
        assert lock.holder() == Holder(8, "/home/bob", "his")
        assert not lock.take(OWN)
    assert [each.name for each in everybodys.iterdir()] == ["lock"], "nothing half made is left"


@pytest.mark.needs("unshare")
def test_where_nothing_can_be_written_the_lock_that_is_there_is_held_else_one_elsewhere(
    monkeypatch: pytest.MonkeyPatch, everybodys: Path
) -> None:
    monkeypatch.delenv(LOCK_VARIABLE)
    shut, other = everybodys / "shut", everybodys / "other"
    for folder in (shut, other):
        folder.mkdir()
        folder.chmod(0o1777)
    code = (
        "paths.EVERYBODYS = tuple(map(Path, sys.argv[1:]))\n"
        "lock = HostLock(paths.measuring_lock()); print(lock.path, lock.take(Holder(1, '')))"
    )
    python = [sys.executable, "-c", PARTS + code, str(shut), str(other)]
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    namespaces = ["--mount"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--mount"]
    argv = ["unshare", *namespaces, "sh", "-c", mount, str(shut), *python]

    def taken() -> list[str]:
        return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout.split()

    if subprocess.run([*argv[: argv.index("sh")], "true"], check=False).returncode:
        missing("unshare", "a kernel in which users may have mounts of their own")
    assert taken() == [str(other / MEASURING_LOCK), "True"]
    lock = HostLock(shut / MEASURING_LOCK)
    assert lock.take(OWN)
    assert taken() == [str(lock.path), "False"]
    lock.free()
    assert taken() == [str(lock.path), "True"]


def test_a_lock_that_can_only_be_read_is_held_without_a_word(everybodys: Path) -> None:
    path = everybodys / "lock"
    path.touch()
    path.chmod(0o444)
    code = (
        "lock = HostLock(Path(sys.argv[1])); print(lock.take(Holder(1, '')), flush=True)\n"
        "sys.stdin.read(); lock.free()"
    )
    pipe, argv = subprocess.PIPE, [sys.executable, "-c", PARTS + NO_ROOT + code, str(path)]
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        lock = HostLock(path)
        assert not lock.take(OWN)
        assert lock.holder() == UNKNOWN


@pytest.mark.parametrize("kind", [FileLock, HostLock])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (json.dumps({"pid": 8, "workspace": "\x1b[2J/w", "session": "s" * 999}).encode(), "·[2J/w"),
        (json.dumps({"pid": "8", "workspace": "/w"}).encode(), ""),
        (json.dumps({"pid": 8, "workspace": "/w", "session": None}).encode(), ""),
        (b"[" * 4000, ""),
        (b'{"pid": 8, "workspace": "' + b"x" * 9999 + b'"}', ""),
        (b"\xff", ""),
    ],
)
def test_what_the_file_says_is_bounded_and_harmless(
    everybodys: Path, kind: type[FileLock], text: bytes, said: str
) -> None:
    lock, other = kind(everybodys / "lock"), kind(everybodys / "lock")
    assert lock.take(OWN)
    (everybodys / "lock").write_bytes(text)
    holder = other.holder()
    assert holder is not None
    assert (holder.workspace, len(holder.session) <= 200) == (said, True)
    words = "s" * 200 if said else "somebody who does not say who (see `fuser"
    assert other.told().startswith(words)
    lock.free()


def test_what_lies_in_its_place_is_named_and_neither_followed_nor_waited_for(
    monkeypatch: pytest.MonkeyPatch, everybodys: Path
) -> None:
    (everybodys / "victim").write_text("precious")
    for name in ("link", "pipe", "folder"):
        path = everybodys / name
        if name == "link":
            path.symlink_to(everybodys / "victim")
        elif name == "pipe":
            os.mkfifo(path)
        else:
            path.mkdir()
        lock = HostLock(path)
        assert lock.holder() is None
        with pytest.raises(UsageError, match="the lock of this host cannot be taken") as raised:
            lock.take(OWN)
        assert raised.value.where == str(path)
        monkeypatch.setenv(LOCK_VARIABLE, str(path))
        check = doctor._host_lock()
        assert (check.state, check.remedy) == ("missing", raised.value.remedy)
        assert str(path) in check.found
        assert "WORKBENCH_MEASURING_LOCK" in str(raised.value)
    assert (everybodys / "victim").read_text() == "precious"
    monkeypatch.setenv(LOCK_VARIABLE, str(everybodys / "lock"))
    lock = HostLock(everybodys / "lock")
    assert doctor._host_lock() == Check("measuring lock", "ok", f"free; {lock.path}")
    assert lock.take(OWN)
    assert doctor._host_lock().found.startswith("held by demo (/home/ann/lab, process 7); ")
    lock.free()
