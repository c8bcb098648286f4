"""Who does not get in, what is not given, and what the audit log says about it: real OpenSSH."""

from __future__ import annotations

import json
import socket
import stat

import pytest
from ssh_door import Door, until

pytestmark = pytest.mark.needs("ssh", "sftp")
HALF_OPEN = 500


def test_a_wrong_key_and_a_password_do_not_get_in(shared_door: Door) -> None:
    refused = shared_door.ssh("eve", "ls")
    assert refused.returncode == 255
    assert "Permission denied (publickey)" in refused.stderr, "and no other way is offered"
    password = ("-o", "PubkeyAuthentication=no", "-o", "PreferredAuthentications=password")
    assert shared_door.ssh("ann", "ls", options=password).returncode == 255
    told = shared_door.until_told("not_logged_in", attempts=1)[0]
    assert told["key"].startswith("SHA256:")
    assert told["address"] == "127.0.0.1"
    shared_door.until_told("not_logged_in", attempts=0)
    assert not shared_door.told("logged_in", who="eve")


def test_nothing_is_forwarded(shared_door: Door) -> None:
    with socket.create_server(("127.0.0.1", 0)) as inside:
        inside.settimeout(0.1)
        target = f"127.0.0.1:{inside.getsockname()[1]}"
        direct = shared_door.ssh("ann", options=("-W", target))
        assert direct.returncode == 255
        back = shared_door.ssh(
            "ann", "ls", options=("-o", "ExitOnForwardFailure=yes", "-R", f"0:{target}")
        )
        assert back.returncode == 255
        with pytest.raises(TimeoutError):
            inside.accept()
    shared_door.until_told("forwarding_refused", who="ann", forwarding="direct-tcpip")
    shared_door.until_told("forwarding_refused", who="ann", forwarding="tcpip-forward")


def test_no_shell_no_other_command_no_option_with_a_path(shared_door: Door) -> None:
    for line in (
        "sh",
        "cat /etc/passwd",
        "ls; id",
        "show $(id)",
        "show /etc/passwd",
        "show ../../x",
        "samples demo-real --output=/tmp/x",
        "--workspace / ls",
        "engine stop",
        "recommend demo-real --cost /etc/passwd",
        "'",
    ):
        done = shared_door.ssh("ann", line)
        assert done.returncode == 2, line
        assert done.stdout == ""
        assert done.stderr.endswith(".\n"), "a sentence"
    shared_door.until_told("command_refused", count=11, who="ann")
    alone = shared_door.ssh("ann", options=("-T",))
    assert (alone.returncode, alone.stdout) == (2, "")
    assert "needs a terminal" in alone.stderr


def test_a_file_that_is_a_path_after_all_is_refused_by_the_engine(shared_door: Door) -> None:
    """`prices.yaml` names a file to the command, and a path to the engine."""
    done = shared_door.ssh(
        "olga", "recommend demo-real --chain tinyproxy-haproxy --cost prices.yaml "
        "--sla 'p95<=200ms @ rate=100/s, filesize=10kB'",
    )  # fmt: skip
    assert done.returncode == 2
    assert "a path is not taken over SSH" in done.stderr
    shared_door.until_told("command", command="Recommend", outcome="refused", who="olga")


def test_garbage_and_half_open_connections_keep_nobody_out(shared_door: Door) -> None:
    address = ("127.0.0.1", shared_door.port)
    for garbage in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00" * 70_000,
        b"SSH-2.0-x\r\n" + b"\xff" * 50_000,
    ):
        with socket.create_connection(address) as stranger:
            stranger.settimeout(60)
            try:
                stranger.sendall(garbage)
                while stranger.recv(65536):
                    pass
            except ConnectionError:
                pass
    waiting = [socket.create_connection(address) for _ in range(HALF_OPEN)]
    try:
        done = shared_door.ssh("ann", "ls", "--json")
        assert done.returncode == 0, done.stderr
        assert "demo-real" in done.stdout
    finally:
        for stranger in waiting:
            stranger.close()
    shared_door.until_told("not_logged_in", why="too many connections without a log-in")
    assert len(shared_door.told("not_logged_in")) < HALF_OPEN / 2, "a flood is counted, not told"


def test_sftp_reads_exports_and_nothing_else(shared_door: Door) -> None:
    exports = shared_door.workbench.root / "exports"
    (exports / "s").mkdir(parents=True, exist_ok=True)
    (exports / "s" / "result.csv").write_text("a,b\n" * 50_000, encoding="utf-8")
    secret = shared_door.workbench.root / "secret.txt"
    secret.write_text("secret", encoding="utf-8")
    (exports / "way-out").symlink_to(secret)
    (exports / "up").symlink_to("..")
    done = shared_door.sftp(
        "olga",
        "ls s",
        "get s/result.csv got.csv",
        "get ../secret.txt got-1",
        "get /../../../../../etc/passwd got-2",
        "get way-out got-3",
        "get up/secret.txt got-4",
        f"get {secret} got-5",
        "put authorized_keys planted",
        "put authorized_keys s/result.csv",
        "rm s/result.csv",
        "mkdir planted",
        "rename s t",
        "ln -s /etc/passwd planted",
        "chmod 777 s/result.csv",
    )
    assert done.returncode == 0, done.stderr
    assert "result.csv" in done.stdout
    whole = (exports / "s" / "result.csv").read_text()
    assert (shared_door.keys / "got.csv").read_text() == whole == "a,b\n" * 50_000
    assert not list(shared_door.keys.glob("got-*"))
    assert sorted(p.name for p in exports.iterdir()) == ["s", "up", "way-out"]
    assert stat.S_IMODE((exports / "s" / "result.csv").stat().st_mode) != 0o777
    shared_door.until_told("file_read", who="olga", path="/s/result.csv")
    refused = {line["path"] for line in shared_door.told("file_refused", who="olga")}
    assert {"/../secret.txt", "/way-out", "/up/secret.txt", "/planted"} <= refused


def test_an_observer_changes_nothing_and_an_operator_fetches_what_it_exported(
    shared_door: Door,
) -> None:
    observed = shared_door.ssh("olga", "export demo-real --as csv")
    assert observed.returncode == 2
    assert "observers may watch, not command" in observed.stderr
    for line in (
        "canary demo-real --chain tinyproxy-haproxy --steps 0",
        "models demo-real --rollback 0",
    ):
        assert "observers may watch" in shared_door.ssh("olga", line).stderr
    shared_door.until_told("command", who="olga", outcome="refused", command="RetrainChain")
    exported = shared_door.ssh("ann", "export demo-real --as csv")
    assert exported.returncode == 0, exported.stderr
    line = shared_door.until_told("command", who="ann", command="ExportSession")[0]
    assert (line["outcome"], line["door"], line["role"]) == ("done", "ssh", "operator")
    fetched = shared_door.sftp("olga", "get -r demo-real")
    assert fetched.returncode == 0, fetched.stderr
    assert list((shared_door.keys / "demo-real").glob("*.csv"))


def test_the_keys_of_the_server_and_its_log_are_its_own(shared_door: Door) -> None:
    state = shared_door.workbench.root / ".workbench"
    for name in ("ssh_host_ed25519_key", "audit.log"):
        assert stat.S_IMODE((state / name).stat().st_mode) == 0o600


def test_a_key_that_is_taken_away_opens_nothing_any_more(shared_door: Door) -> None:
    path = shared_door.keys / "authorized_keys"
    before = path.read_text()
    assert shared_door.ssh("bob", "ls").returncode == 0
    path.write_text("".join(line for line in before.splitlines(True) if "bob" not in line))
    assert shared_door.ssh("bob", "ls").returncode == 255
    path.chmod(0o666)  # whoever may write to it could let anybody in
    assert shared_door.ssh("ann", "ls").returncode == 255
    path.chmod(0o600)
    path.write_text(before)
    until(lambda: shared_door.ssh("bob", "ls").returncode == 0, "bob")


def test_an_observer_asks_why_a_chain_is_slow(shared_door: Door) -> None:
    told = shared_door.ssh("olga", "why chain-real --chain tinyproxy-haproxy --json")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["target"] == "tinyproxy-haproxy"
    refused = shared_door.ssh("olga", "why chain-real --output x")
    assert "why over SSH has no option '--output'" in refused.stderr
