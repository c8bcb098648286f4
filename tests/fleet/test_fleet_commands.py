"""`fleet hold`, `release`, `prefer` and `ls --fleet`, as they are typed."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from driving import Workbench

HOSTS = """
kind: hosts
hosts:
  alpha: {kind: simulated}
  beta: {kind: simulated, speed: 0.8}
"""
LONGEST_S = 20.0


@pytest.fixture
def hosts(workbench: Workbench) -> str:
    (workbench.root / "hosts.yaml").write_text(HOSTS)
    return "hosts.yaml"


def lease_of(workbench: Workbench, host: str) -> Path:
    return workbench.root / f".workbench/fleet/hosts/leases/hold-{host}.json"


def test_an_address_of_another_host_is_named_with_its_line_before_anything_is_started(
    workbench: Workbench, hosts: str
) -> None:
    path = workbench.root / hosts
    path.write_text(HOSTS.replace("hosts:\n", "listen: 203.0.113.9\nhosts:\n", 1))
    workbench.run("lint", str(path))  # it may be right on another host
    for words in (f"fleet up {hosts}", f"run demo --fleet {hosts} --session s"):
        said = " ".join(workbench.run(*words.split(), expect=2).stderr.split())
        assert "hosts.yaml:3:" in said
        assert "listen: is '203.0.113.9', must be an address of this host" in said
    assert not (workbench.root / ".workbench" / "fleet").exists()
    assert "was not up" in workbench.run("fleet", "down", hosts).stderr


def test_a_host_is_held_for_a_time_and_given_back(workbench: Workbench, hosts: str) -> None:
    held = workbench.run("fleet", "hold", "alpha", hosts, "--for", "2h", "--why", "new cable")
    assert "alpha is held by" in held.stderr
    assert "new cable" in held.stderr
    again = workbench.run("fleet", "hold", "alpha", hosts, "--for", "1h", "--why", "new power")
    assert ": new cable; that is replaced" in again.stderr
    workbench.run("fleet", "hold", "alpha", hosts, "--for", "2h", "--why", "new cable")
    standing = workbench.run("fleet", "status", hosts, expect=1)
    assert "alpha is held by" in standing.stderr
    assert "is not up" in standing.stderr

    assert "alpha is free" in workbench.run("fleet", "release", "alpha", hosts).stderr
    assert "alpha was not held" in workbench.run("fleet", "release", "alpha", hosts).stderr
    assert not lease_of(workbench, "alpha").exists()


def test_a_host_is_held_until_the_command_ends(workbench: Workbench, hosts: str) -> None:
    holding = workbench.begin("fleet", "hold", "beta", hosts)
    ends = time.monotonic() + LONGEST_S
    while not lease_of(workbench, "beta").exists() and time.monotonic() < ends:
        time.sleep(0.05)
    assert lease_of(workbench, "beta").exists()
    holding.send_signal(signal.SIGINT)
    holding.communicate(timeout=LONGEST_S)
    assert not lease_of(workbench, "beta").exists()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("hold", "alpa"), "Did you mean alpha?"),
        (("hold", "alpha", "--for", "soon"), "--for"),
        (("hold", "alpha", "--for", "900h"), "over 30 days"),
        (("release", "omega"), "Choose one of: alpha, beta"),
        (("prefer", "table2-3"), "not measured by this fleet"),
    ],
)
def test_what_cannot_be_is_a_sentence(
    workbench: Workbench, hosts: str, asked: tuple[str, ...], said: str
) -> None:
    refused = workbench.run("fleet", *asked[:2], hosts, *asked[2:], expect=None)
    assert refused.returncode in (2, 3)
    assert said in " ".join(refused.stderr.split())
    assert "Traceback" not in refused.stderr


def test_what_hosts_cannot_measure_together_is_refused_before_any_is_started(
    workbench: Workbench, hosts: str
) -> None:
    mixed = workbench.root / "mixed.yaml"
    mixed.write_text(HOSTS + "  gamma: {address: 127.0.0.1, lab: netns}\n")
    refused = workbench.run("run", "demo", "--fleet", str(mixed), "--session", "s", expect=2)
    assert "sim of alpha, beta; netns of gamma" in " ".join(refused.stderr.split())
    assert "one kind of lab" in refused.stderr
    assert not (workbench.root / "sessions" / "s.duckdb").exists()
    assert not (workbench.root / ".workbench" / "fleet" / "mixed" / "standing.json").exists()

    alone = workbench.run("run", "demo", "--priority", "3", expect=2)
    assert "Give --fleet" in alone.stderr


def test_sessions_of_hosts_that_are_not_up_are_none(workbench: Workbench, hosts: str) -> None:
    listed = workbench.run("ls", "--fleet", hosts, expect=None)
    assert "Traceback" not in listed.stderr
    assert "alpha" in listed.stdout
    assert "beta" in listed.stdout
