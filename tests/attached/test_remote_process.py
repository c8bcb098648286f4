"""A process on a host that is reached by a real sshd: measured, and left as it was."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from driving import Workbench
from killing import killed_and_put_back
from remote_system import RemoteSystem, a_remote_system, at_home, key
from running_system import Attach

from workbench.domain.attaching import Attached, SshAddress
from workbench.domain.errors import LabError, LabGone, LabStopped
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Usage
from workbench.domain.topology import VnfTemplate
from workbench.labs.attached import AttachedLab, remote_journal
from workbench.labs.attached.remote_finding import RemoteFunctionFound
from workbench.labs.attached.remote_function import RemoteFunction
from workbench.labs.attached.remote_journal import RemoteJournal
from workbench.paths import attached_folder
from workbench.probes import remote_shell
from workbench.probes.cgroup import CgroupFolders, Mount
from workbench.probes.process import read_start_s
from workbench.probes.remote_shell import RemoteShell

pytestmark = pytest.mark.needs("sshd", "ssh-keygen", "nsenter", "ip")

SMALL = Configuration({"web.vcpu": 0.35, "web.memory_bytes": 64 * 2**20}, {})
POINT = OperatingPoint("web", SMALL, 50)


def note(usage: Mapping[str, Usage]) -> None:
    """What is used meanwhile is of no interest here."""


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteSystem]:
    with a_remote_system(tmp_path) as system:
        at_home(system, monkeypatch)
        yield system


async def standing(lab: AttachedLab) -> AttachedLab:
    await lab.open()
    await lab.deploy(lab._campaign.targets[0].target, SMALL)
    return lab


async def test_it_is_counted_and_limited_over_ssh_while_it_is_loaded(
    remote: RemoteSystem, attach: Attach, tmp_path: Path
) -> None:
    system = remote.running
    before, seen = system.settings(), list[dict[str, bytes]]()
    lab = attach(system.campaign(tmp_path, guard="p95<=2s"))
    facts = await lab.open()
    assert f"host root@{remote.address}" in facts.details
    assert "agrees with this host's" in facts.details[f"host root@{remote.address}"]
    deployed = await lab.deploy(lab._campaign.targets[0].target, SMALL)
    assert any("are on different hosts" in warning for warning in deployed.warnings)
    assert system.settings() == before
    drive = await lab.drive(POINT, 2.0, lambda usage: seen.append(system.settings()))
    assert system.settings() == before
    changed = {
        Path(path).name: held.strip() for path, held in seen[0].items() if held != before[path]
    }
    assert changed.pop(system.quota.name) in (b"17500", b"17500 50000")
    assert set(changed.values()) == {str(64 * 2**20).encode()}
    assert np.count_nonzero(drive.records.succeeded) > 20
    assert drive.allotted_cores["web"] == 0.35
    first, *_, last = drive.counters
    assert last.components["web"].cpu_s > first.components["web"].cpu_s
    assert last.components["web"].periods > first.components["web"].periods
    assert last.components["web"].memory_bytes > 1e6
    assert last.observed["web", "page_faults", ""] >= first.observed["web", "page_faults", ""] > 0
    assert "its host's network" in drive.absent["web", "tx_packets"]
    assert "over SSH" in drive.absent["web", "cpu_wait_s"]
    if system.quota.name != "cpu.max":
        assert "version 1" in drive.absent["web", "pressure_cpu_s"]
    assert any("cores of root@" in said for said in drive.notes)
    await lab.close()
    assert system.settings() == before
    assert not list(attached_folder().glob("*"))


async def test_a_group_is_found_by_its_path_and_what_it_cannot_be_found_by(
    remote: RemoteSystem, attach: Attach, tmp_path: Path
) -> None:
    system = remote.running
    lab = await standing(attach(system.campaign(tmp_path, f"cgroup: {system.path}")))
    assert lab._standing is not None
    assert lab._standing.entry.pid == system.pid
    assert lab._standing.entry.allotted(1) == 0.8
    await lab.undeploy()
    for found, said in (
        ("cgroup: /nowhere-at-all", "there is no such control group"),
        ("pid: 2", "no control group of its own"),
        (f"pid: {system.pid}\n    program: nginx", "is called 'python"),
    ):
        with pytest.raises(LabError, match=said):
            await attach(system.campaign(tmp_path, found)).open()


async def test_a_limit_that_somebody_else_sets_meanwhile_stays(
    remote: RemoteSystem, attach: Attach, tmp_path: Path
) -> None:
    system = remote.running
    before = system.settings()
    lab = await standing(attach(system.campaign(tmp_path)))
    other = "30000 50000" if system.quota.name == "cpu.max" else "30000"

    def interfere(usage: Mapping[str, Usage]) -> None:
        system.quota.write_text(other)

    with pytest.raises(LabStopped, match=rf"somebody set {system.quota.name} from 17500"):
        await lab.drive(POINT, 30.0, interfere)
    after = system.settings()
    assert after.pop(str(system.quota)).decode().strip() == other
    before.pop(str(system.quota))
    assert after == before


async def test_a_host_that_is_gone_is_put_back_once_it_answers(
    remote: RemoteSystem, attach: Attach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_shell, "ANSWER_S", 1.0)
    monkeypatch.setattr(remote_shell, "CONNECT_S", 1.0)
    monkeypatch.setattr(remote_journal, "REAP_S", 1.0)
    system = remote.running
    before = system.settings()
    lab = await standing(attach(system.campaign(tmp_path)))
    with pytest.raises(LabStopped, match=r"is left changed, it was \d+") as caught:
        await lab.drive(POINT, 60.0, lambda usage: remote.cable("down"))
    assert "workbench reap" in (caught.value.remedy or "")
    assert caught.value.where == f"host root@{remote.address}"
    await lab.close()
    limited = system.settings()
    assert limited != before
    (said,) = await RemoteJournal.reap()
    assert said.startswith("not put back: ")
    assert "is left changed" in said
    assert system.settings() == limited
    remote.cable("up")
    said = " ".join(await RemoteJournal.reap())
    assert f"{system.quota.name} is 40000" in said
    assert system.settings() == before
    assert not list(attached_folder().glob("*"))


async def test_a_run_waits_for_a_host_where_it_is_told_to(
    remote: RemoteSystem, attach: Attach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_shell, "ANSWER_S", 1.0)
    monkeypatch.setattr(remote_shell, "CONNECT_S", 1.0)
    monkeypatch.setattr(remote_shell, "QUIET_S", 0.0)
    system = remote.running
    before = system.settings()
    lab = await standing(attach(system.campaign(tmp_path, when_wrong="wait")))
    with pytest.raises(LabGone, match="is left changed"):
        await lab.drive(POINT, 60.0, lambda usage: remote.cable("down"))
    with pytest.raises(LabGone, match="is left changed"):
        await lab.undeploy()
    remote.cable("up")
    await lab.undeploy()
    assert system.settings() == before


async def test_limits_that_may_not_be_written_and_a_clock_that_is_off_are_sentences(
    tmp_path: Path, attach: Attach, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_remote_system(tmp_path, read_only=True, behind_s=3600) as remote:
        at_home(remote, monkeypatch)
        before = remote.running.settings()
        lab = attach(remote.running.campaign(tmp_path))
        facts = await lab.open()
        assert re.search(r"its clock is (59\.\d|60\.0) min behind", str(facts.details))
        deployed = await lab.deploy(lab._campaign.targets[0].target, SMALL)
        assert any("nothing is moved by that" in said for said in deployed.warnings)
        with pytest.raises(LabError, match=r"cannot be changed: Read-only file system"):
            await lab.drive(POINT, 1.0, note)
        assert remote.running.settings() == before
        assert not list(attached_folder().glob("*"))
        await lab.close()


async def test_another_or_an_unknown_host_key_is_not_spoken_to(
    remote: RemoteSystem, attach: Attach, tmp_path: Path
) -> None:
    campaign = remote.running.campaign(tmp_path)
    known = remote.known_hosts.read_text()
    remote.known_hosts.write_text(f"{remote.address} {key(tmp_path / 'other')}\n")
    with pytest.raises(LabError, match="host key is not the one in known_hosts") as caught:
        await attach(campaign).open()
    assert f"ssh-keygen -R {remote.address}" in (caught.value.remedy or "")
    remote.known_hosts.unlink()
    with pytest.raises(LabError, match="its host key is not known here") as caught:
        await attach(campaign).open()
    assert f"`ssh root@{remote.address}`" in (caught.value.remedy or "")
    remote.known_hosts.write_text(known)
    (remote.home / ".ssh" / "id_ed25519").unlink()
    with pytest.raises(LabError, match="takes no key of yours"):
        await attach(campaign).open()


async def test_the_script_does_what_it_is_asked_and_nothing_else(
    remote: RemoteSystem, tmp_path: Path
) -> None:
    shell = RemoteShell(SshAddress.parse(f"root@{remote.address}"))
    odd, none = tmp_path / "a $(touch x) 'b' \"c\": d", tmp_path / "none"
    odd.write_text("one\n\ntwo: three")
    (tmp_path / "empty").touch()
    seen = await shell.read([odd, tmp_path / "empty", none])
    assert seen.text(odd) == "one\n\ntwo: three"
    assert seen.text(tmp_path / "empty") == ""
    with pytest.raises(FileNotFoundError):
        seen.text(none)
    with pytest.raises(PermissionError):  # no limit of a control group
        await shell.write(odd, "changed")
    with pytest.raises(FileNotFoundError):
        await shell.write(tmp_path / "cpu.max", "1")
    assert not (tmp_path / "cpu.max").exists()
    with pytest.raises(LabError, match="line break"):
        await shell.read([Path("/proc/self/stat\nend\n1\n1")])
    # Who is cancelled leaves no order under way, and the next one gets its own answer.
    asked = asyncio.ensure_future(shell.read([odd]))
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert (await shell.read([odd])).text(odd) == "one\n\ntwo: three"
    # A shell that was lost is ended before the host is told anything else.
    lost = shell.marked
    os.kill(int(lost.split()[0]), signal.SIGSTOP)  # as on a host that hangs: it reads no end
    shell._drop(None)
    await shell.read([odd])
    assert shell.marked != lost
    assert not re.search(r"sh\0-c", _command(int(lost.split()[0])))
    await shell.close()


def of_version_2(
    remote: RemoteSystem, group: Path, monkeypatch: pytest.MonkeyPatch
) -> RemoteFunction:
    """Files that are made in `group` stand in for a control group of version 2."""
    group.mkdir()
    stalled = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n"
    for name, text in {
        "cpu.max": "max 50000\n",
        "memory.max": "max\n",
        "cpu.stat": "usage_usec 2500000\nnr_periods 10\nnr_throttled 4\nthrottled_usec 250000\n",
        "memory.current": "3000000\n",
        "memory.stat": "inactive_file 1000000\npgfault 70\npgmajfault 7\n",
        "memory.events": "low 0\nmax 5\noom_kill 1\n",
        **{f"{name}.pressure": stalled for name in ("cpu", "memory", "io")},
    }.items():
        (group / name).write_text(text)

    async def mounts_of(shell: RemoteShell) -> dict[str, Mount]:
        return {"": Mount("/", group)}

    monkeypatch.setattr(remote_journal, "mounts_of", mounts_of)
    host = f"root@{remote.address}"
    folders = CgroupFolders("v2", group, group, group)
    held = {group / "cpu.max": "max 50000", group / "memory.max": "max"}
    mine, number = os.getpid(), group.stat().st_ino
    found = RemoteFunctionFound(
        "it", mine, read_start_s(mine), folders, {}, number, own_network=False, held=held
    )
    return RemoteFunction(
        "web",
        VnfTemplate("web", summary="", default_vcpu=0.0),
        attached=Attached("web", "pid", str(mine), host=host),
        found=found,
        shell=RemoteShell(SshAddress.parse(host)),
        journal=RemoteJournal.new("s", host),
        host_cores=2,
    )


async def test_no_less_memory_is_given_than_it_holds_there(
    remote: RemoteSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel would take such a limit of version 2, and end somebody else's process for it."""
    group = tmp_path / "group"
    function = of_version_2(remote, group, monkeypatch)
    (group / "memory.current").write_text(f"{(200 << 20) + 1_000_000}\n")
    with pytest.raises(LabError, match=r"given 64 MiB of memory: it holds 200 MiB") as caught:
        await function.allocate(Configuration({"web.memory_bytes": 64 << 20}, {}))
    assert "Raise the smallest `memory`" in (caught.value.remedy or "")
    assert (group / "memory.max").read_text() == "max\n"
    assert not list(attached_folder().glob("*"))
    await function.allocate(Configuration({"web.memory_bytes": 256 << 20}, {}))
    assert (group / "memory.max").read_text() == str(256 << 20)
    await function.journal.restore(function.shell)
    await function.shell.close()


async def test_files_of_version_2_are_counted_written_and_put_back(
    remote: RemoteSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = tmp_path / "group"
    function = of_version_2(remote, group, monkeypatch)
    shell, journal, found = function.shell, function.journal, function.found
    assert function.allotted(1) == 2
    counted = await function.counters()
    assert (counted.cpu_s, counted.periods, counted.throttled_periods) == (2.5, 10, 4)
    assert (counted.throttled_s, counted.memory_bytes) == (0.25, 2e6)
    evidence = function._looks[-1].evidence
    assert evidence["pressure_cpu_s", ""] == evidence["pressure_io_s", ""] == 1.5
    assert [evidence[name, ""] for name in ("page_faults", "limit_hits", "oom_kills")] == [70, 5, 1]
    await function.allocate(Configuration({"web.vcpu": 0.5, "web.memory_bytes": 1 << 26}, {}))
    assert (group / "cpu.max").read_text() == "25000 50000"
    assert (group / "memory.max").read_text() == str(1 << 26)
    assert function.allotted(1) == 0.5
    assert await function.look() is None
    said = await journal.restore(shell)
    assert said == ("it: cpu.max is max 50000 again", "it: memory.max is max again")
    assert (group / "cpu.max").read_text() == "max 50000"
    # Another machine that answers to the name is told nothing, and the journal stays.
    await journal.change(shell, found, group / "cpu.max", "10000 50000")
    journal.machine = "another"
    with pytest.raises(LabError, match="another machine answers to that name now"):
        await journal.restore(shell)
    assert journal.path.exists()
    journal.machine = ""
    await journal.restore(shell)
    assert (group / "cpu.max").read_text() == "max 50000"
    # What a host held before it was started again is nobody's any more.
    await journal.change(shell, found, group / "cpu.max", "10000 50000")
    journal.boot = "another"
    (said_of_host,) = await journal.restore(shell)
    assert "was started again, without limits of this session" in said_of_host
    assert (group / "cpu.max").read_text() == "10000 50000"
    assert not list(attached_folder().glob("*"))
    await shell.close()


def stand_in(remote: RemoteSystem, program: str, script: str) -> Path:
    """A program of that host is one of ours; the file that `script` may look for as `$there`."""
    at, there = remote.folder / "bin" / program, remote.folder / f"{program}-there"
    at.write_text(f'#!/bin/sh\nthere={there}\n{script}\nexec /bin/{program} "$@"\n')
    at.chmod(0o755)
    return there


async def test_a_write_that_the_kernel_has_not_done_is_ended_with_its_shell(
    remote: RemoteSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for `cat` waits, as the kernel does where memory has to be reclaimed."""
    monkeypatch.setattr(remote_shell, "QUIET_S", 0.0)
    there = stand_in(remote, "cat", '[ ! -e "$there" ] || { echo $$ >"$there"; sleep 60; }')
    shell = RemoteShell(SshAddress.parse(f"root@{remote.address}"))
    file = tmp_path / "cpu.max"
    file.write_text("100")
    await shell.read([file])
    there.touch()
    asked = asyncio.ensure_future(shell.write(file, "25"))
    for _ in range(500):
        await asyncio.sleep(0.02)
        if there.read_text().strip():
            break
    writer = int(there.read_text())
    there.unlink()
    shell._drop(None)
    with pytest.raises(LabGone):
        await asked
    assert _command(writer), "it has ended by itself: nothing is shown"
    await shell.read([file])
    assert not _command(writer)
    await shell.close()


async def test_files_that_were_not_read_are_not_taken_for_empty(
    remote: RemoteSystem, tmp_path: Path
) -> None:
    there = stand_in(remote, "grep", '[ ! -e "$there" ] || kill -9 $$')
    shell = RemoteShell(SshAddress.parse(f"root@{remote.address}"))
    file = tmp_path / "held"
    file.write_text("100")
    assert (await shell.read([file])).text(file) == "100"
    there.touch()
    with pytest.raises(LabGone, match=r"reads no files: .*(137|Killed)"):
        await shell.read([file])
    await shell.close()


async def test_the_group_of_the_login_itself_is_not_attached(
    remote: RemoteSystem, attach: Attach, tmp_path: Path
) -> None:
    system = remote.running
    (system.quota.parent / "cgroup.procs").write_text(str(remote.pid))
    with pytest.raises(LabError, match="this login runs in its control group"):
        await attach(system.campaign(tmp_path, f"cgroup: {system.path}")).open()


async def test_what_a_dead_session_left_changed_is_not_measured(
    remote: RemoteSystem, attach: Attach, tmp_path: Path
) -> None:
    lab = await standing(attach(remote.running.campaign(tmp_path)))
    assert lab._standing is not None
    function = lab._standing.entry
    assert isinstance(function, RemoteFunction)
    left = RemoteJournal.new("before", "root@localhost-by-another-name")
    left.machine = function.found.machine
    await left.change(function.shell, function.found, remote.running.quota, "20000")
    with pytest.raises(LabError, match=r"session before changed its .* not put back yet"):
        function.claim()
    await left.restore(function.shell)
    function.claim()
    await lab.close()


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@pytest.mark.slow
def test_it_is_discovered_and_profiled_over_ssh(workbench: Workbench, remote: RemoteSystem) -> None:
    system, host = remote.running, f"root@{remote.address}"
    before = system.settings()
    listed = workbench.json("discover", "--host", host, "--json")
    mine = next(one for one in listed if one["pid"] == system.pid)
    assert mine["why_not"] == ""
    assert mine["ports"] == [system.port]
    assert mine["vcpu"] == 0.8
    assert all(one["host"] == host for one in listed)
    shares = ("--vcpu", "35%")
    workbench.run("discover", "--host", host, "--write", "mine.yaml", str(system.pid), *shares)
    workbench.run("lint", "mine.yaml")
    path = workbench.root / "mine.yaml"
    written = path.read_text()
    assert f"host: {host}" in written
    assert f"url: http://{{address}}:{system.port}/" in written
    path.write_text(written.replace("max_samples: 6", "max_samples: 2").replace("3s,", "1.5s,"))
    # On a busy host none of them may be valid: that is the judge's say, and no matter here.
    done = workbench.run("run", "mine.yaml", "--headless", "--session", "mine", expect=None)
    assert "run done" in done.stdout + done.stderr
    assert len(workbench.samples("mine")) >= 2
    assert system.settings() == before


def test_it_is_put_back_after_kill_9(
    workbench: Workbench, remote: RemoteSystem, full_length: bool
) -> None:
    system = remote.running
    again = f"process {system.pid} on root@{remote.address}: {system.quota.name} is 40000"
    campaign = system.campaign(workbench.root, samples=20)
    killed_and_put_back(workbench, campaign, system.settings, again, 20 if full_length else 2)
