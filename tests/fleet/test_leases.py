"""Who holds a host, and which campaign goes first: no lease outlives its owner."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workbench.domain.errors import UsageError
from workbench.fleet.leases import Lease, Leases
from workbench.probes.process import started


def test_a_host_is_held_and_given_back(tmp_path: Path) -> None:
    leases, now = Leases(tmp_path / "leases"), time.time()
    assert leases.take(Lease("a", "ann", now, "old cable", now + 60)) is None
    before = leases.take(Lease("a", "ann", now, "new cable", now + 7200))
    assert before is not None
    assert before.why == "old cable"

    with pytest.raises(UsageError, match=r"held by ann until [-\d]+ [:\d]+ [-+\w]+: new cable"):
        leases.take(Lease("a", "bob", now, until=now + 60))
    with pytest.raises(UsageError, match="held by ann"):
        leases.give_back("a", "bob")
    assert list(leases.held()[0]) == ["a"]
    assert leases.refused("s", ("a", "b")).keys() == {"a"}
    assert leases.give_back("a", "ann") is not None
    assert leases.give_back("a", "ann") is None
    assert leases.held() == ({}, ())


def test_a_lease_ends_with_its_time_or_its_process(tmp_path: Path) -> None:
    leases, now = Leases(tmp_path / "leases"), time.time()
    leases.take(Lease("a", "ann", now, until=now - 1))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        leases.take(Lease("b", "bob", now, pid=process.pid, began=started(process.pid)))
        held, over = leases.held()
        assert list(held) == ["b"]
        assert over == ("a is held no more: the time of ann is over",)
        process.kill()
    held, over = leases.held()
    assert held == {}
    assert f"(pid {process.pid}) is gone" in over[0]
    assert leases.held() == ({}, ())
    leases.take(Lease("b", "ann", now, until=now + 60))


def test_what_a_command_keeps_is_ended_by_that_command_alone(tmp_path: Path) -> None:
    """Two people may have one account."""
    leases, now = Leases(tmp_path / "leases"), time.time()
    own = Lease("a", "lab", now, pid=os.getpid(), began=started(os.getpid()))
    leases.take(own)
    with pytest.raises(UsageError, match=rf"keeps it \(pid {os.getpid()}\)"):
        leases.take(Lease("a", "lab", now, until=now + 60))
    with pytest.raises(UsageError, match="end that with ctrl"):
        leases.give_back("a", "lab")
    assert leases.give_back("a", "lab", os.getpid()) == own
    leases.take(Lease("a", "lab", now, until=now + 60))
    leases.take(Lease("a", "lab", now, until=now + 7200))  # for longer
    assert leases.give_back("a", "lab") is not None


def test_the_number_of_a_process_may_be_another_s_later(tmp_path: Path) -> None:
    leases = Leases(tmp_path / "leases")
    leases.take(Lease("a", "ann", time.time(), pid=os.getpid(), began=1.0))

    assert leases.held()[0] == {}


def test_campaigns_go_by_priority_and_share_where_it_is_the_same(tmp_path: Path) -> None:
    leases = Leases(tmp_path / "leases")
    with leases.contending("one"), leases.contending("two"):
        assert leases.refused("one", ("a",)) == {}
        leases.prefer("two", 5)
        assert leases.refused("two", ("a",)) == {}
        said = leases.refused("one", ("a", "b"))
        assert set(said.values()) == {"two goes first (priority 5)"}
        leases.prefer("one", 5)
        assert leases.refused("one", ("a",)) == {}
        with leases.contending("three", 6):
            assert set(leases.refused("two", ("a",)).values()) == {"three goes first (priority 6)"}
        assert leases.refused("two", ("a",)) == {}
    with pytest.raises(UsageError, match="not measured by this fleet"):
        leases.prefer("two", 1)


def test_nobody_waits_for_ever_for_who_changes_leases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A campaign's loop looks at them five times a second, and waits for nobody at all."""
    monkeypatch.setattr("workbench.fleet.leases.PATIENCE_S", 0.1)
    leases, now = Leases(tmp_path / "leases"), time.time()
    leases.take(Lease("a", "ann", now, until=now - 1))
    with (tmp_path / "leases" / "leases.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert leases.held() == ({}, ())
        with pytest.raises(UsageError, match="another process has been changing leases"):
            leases.take(Lease("b", "ann", now, until=now + 60))
    assert leases.held() == ({}, ("a is held no more: the time of ann is over",))


def test_only_who_measures_a_session_says_that_it_is_measured_no_more(tmp_path: Path) -> None:
    leases = Leases(tmp_path / "leases")
    with leases.contending("one"):
        path = tmp_path / "leases" / "run-one.json"
        other = path.read_text().replace(f'"pid":{os.getpid()}', '"pid":1')
        path.write_text(other)
    assert path.read_text() == other


def test_a_campaign_whose_process_is_gone_goes_before_nobody(tmp_path: Path) -> None:
    leases = Leases(tmp_path / "leases")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        (tmp_path / "leases").mkdir()
        (tmp_path / "leases" / "run-dead.json").write_text(
            f'{{"session": "dead", "priority": 9, "pid": {process.pid}, "began": '
            f"{started(process.pid)}}}"
        )
        assert leases.before("one") is not None
        process.kill()
    assert leases.before("one") is None
