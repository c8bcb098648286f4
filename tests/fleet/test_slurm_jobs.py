"""Lab hosts as jobs of a Slurm of one machine, which the test starts and ends."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from driving import Workbench
from test_fleet_whole_way import CAMPAIGN, SAMPLES, standing

from workbench.descriptors.lab_hosts import load_fleet
from workbench.domain.errors import DescriptorError
from workbench.domain.fleets import LabHost, SlurmRequest
from workbench.fleet import slurm_jobs
from workbench.fleet.fleet_standing import FleetError, FleetFolder
from workbench.fleet.security import Secrets
from workbench.fleet.slurm_jobs import cancel_left, submitted
from workbench.paths import Workspace

LONGEST_S = 60.0
SETTINGS = """
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
StateSaveLocation={folder}
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=4000 State=UNKNOWN
PartitionName=lab Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


@contextmanager
def running(*words: str, **environment: str) -> Iterator[None]:
    with subprocess.Popen(
        words, env=os.environ | environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        found = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(one.getsockname()[1]) for one in found]


@pytest.fixture
def slurm(workbench: Workbench) -> Iterator[str]:
    """The configuration of a Slurm whose one node is idle."""
    folder = workbench.runtime / "slurm"
    folder.mkdir(mode=0o755)
    key, socket_ = folder / "munge.key", folder / "munge.sock"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    settings = folder / "slurm.conf"
    host = socket.gethostname().partition(".")[0]
    settings.write_text(SETTINGS.format(host=host, ports=free_ports(2), folder=folder))
    own = [f"--{name}={folder}/munge.{name[:4]}" for name in ("pid-file", "log-file", "seed-file")]
    with (
        running(
            "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={socket_}", *own
        ),
        running("slurmctld", "-D", "-i", SLURM_CONF=str(settings)),
        running("slurmd", "-D", SLURM_CONF=str(settings)),
    ):
        deadline, said = time.monotonic() + LONGEST_S, ""
        while "idle" not in said:
            assert time.monotonic() < deadline, (folder / "slurmctld.log").read_text()[-2000:]
            time.sleep(0.5)
            said = asked(str(settings), "sinfo", "--noheader", "--format=%T")
        workbench.variables["SLURM_CONF"] = str(settings)
        yield str(settings)


def asked(settings: str, *words: str) -> str:
    done = subprocess.run(
        words, env=os.environ | {"SLURM_CONF": settings}, capture_output=True, text=True,
        check=False, timeout=30,
    )  # fmt: skip
    return done.stdout


@pytest.mark.long
@pytest.mark.needs("munged", "slurmctld", "slurmd", "sbatch")
@pytest.mark.skipif(os.getuid() != 0, reason="a Slurm of its own is started by root")
def test_jobs_of_slurm_measure_and_end_with_the_fleet(workbench: Workbench, slurm: str) -> None:
    there = workbench.runtime / "nodes"
    node = {
        "kind": "slurm", "count": 2, "lab": "sim", "python": sys.executable, "folder": str(there),
        "job": {"queue": "lab", "cores": 1, "memory": "500MB", "directives": ["--nice=1"]},
    }  # fmt: skip
    (workbench.root / "hosts.yaml").write_text(
        json.dumps({"kind": "hosts", "listen": socket.gethostname(), "hosts": {"node": node}})
    )
    (workbench.root / "small.yaml").write_text(CAMPAIGN)
    up = workbench.run("fleet", "up", "hosts.yaml", expect=None)
    known = r"node-\d +(up +1 +job \d of|queued +1 +its job \d waits in the queue of) Slurm"
    assert re.search(known, up.stdout), up.stdout + up.stderr
    jobs = workbench.root / ".workbench/fleet/hosts/jobs"
    assert {path.stem for path in jobs.glob("*.job")} == {"node-1", "node-2"}
    queued = asked(slurm, "squeue", "--noheader", "--format=%j")
    assert re.search(r"^workbench-hosts-node-1-[0-9a-f]{8}$", queued, re.M), queued

    workbench.run(*"run ./small.yaml --fleet hosts.yaml --session s --seed 7".split())
    assert len(workbench.samples("s")) == SAMPLES
    assert list(there.glob("node-*/exports/s.*.bundle"))
    # A node that is lost is asked for again, with another job.
    first = (jobs / "node-1.job").read_text()
    asked(slurm, "scancel", first)
    deadline = time.monotonic() + LONGEST_S
    while (number := number_of(jobs)) in ("", first) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert int(number) > int(first)

    workbench.run("fleet", "down", "hosts.yaml")
    deadline = time.monotonic() + LONGEST_S
    while asked(slurm, "squeue", "--noheader").strip() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not asked(slurm, "squeue", "--noheader").strip()
    assert not list(jobs.glob("*.job"))
    while (left := workers_in(there)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not left
    assert not (jobs.parent / "tls").exists()
    assert not standing(workbench)["hosts"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
async def test_what_slurm_did_not_take_is_cancelled_and_nobody_else_s_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By programs in place of Slurm's: `sbatch` refuses, what `scancel` is told is kept."""
    told = tmp_path / "told"
    for name, does in {
        "sbatch": "echo 'sbatch: error: no such queue' >&2; exit 1",
        "scancel": f'echo "$@" >> {told}',
        "squeue": "exit 0",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    host = LabHost("node-1", "slurm", job=SlurmRequest())
    for fleet in ("mine", "another, of mine", "mine"):
        folder = FleetFolder.of(Workspace(tmp_path), fleet)
        with pytest.raises(FleetError, match="no such queue"):
            async with submitted(host, "tls://192.0.2.1:1", folder, Secrets("", "")):
                pass
    cancelled = [line.split() for line in told.read_text().splitlines()]
    names = [name.removeprefix("--name=") for _, name in cancelled]
    assert {me for me, _ in cancelled} == {"--me"}
    assert len(set(names)) == 3
    assert [name[:-8] for name in names] == [
        "workbench-mine-node-1-",
        "workbench-another--of-mine-node-1-",
        "workbench-mine-node-1-",
    ]


FAKES = {
    "sbatch": "echo Submitted batch job 7",
    "scancel": "{fails}; echo scancel $@ >> {told}; exec {stands}",
    "squeue": "{fails}; cat {there}",
}
"""In place of Slurm's: what they were told, what is there, whether one stands still."""


@dataclass
class FakeSlurm:
    """A Slurm that took job 7, as its programs are seen from here."""

    folder: Path

    @property
    def told(self) -> list[str]:
        path = self.folder / "told"
        return path.read_text().splitlines() if path.exists() else []

    def does(self, *, stands: str = "true", fails: str = "true", there: str = "") -> None:
        (self.folder / "there").write_text(there)
        for name, does in FAKES.items():
            program = self.folder / name
            words = {"stands": stands, "fails": fails}
            paths = {each: str(self.folder / each) for each in ("told", "there")}
            program.write_text("#!/bin/sh\n" + does.format(**words, **paths) + "\n")
            program.chmod(0o755)


@pytest.fixture
def fake_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    place = tmp_path / "programs"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(slurm_jobs, "ASKING_S", 1.0)
    fake = FakeSlurm(place)
    fake.does()
    return fake


def left_jobs(root: Path, **jobs: str) -> FleetFolder:
    folder = FleetFolder.of(Workspace(root), "hosts")
    (folder.root / "jobs").mkdir(parents=True)
    for host, text in jobs.items():
        (folder.root / "jobs" / f"{host}.job").write_text(text)
    return folder


async def test_jobs_are_cancelled_at_once_and_those_that_slurm_does_not_cancel_are_named(
    tmp_path: Path, fake_slurm: FakeSlurm
) -> None:
    """However many there are, in the time of one."""
    folder = left_jobs(tmp_path, one="5", two="7", three="workbench-hosts-three-ab")
    said = r"cancels 3 jobs of the fleet: 5 of one, workbench-hosts-three-ab of three, 7 of two"
    fake_slurm.does(stands="sleep 60", there="5 RUNNING a\n7 PENDING b\n8 RUNNING c\n"
                    "9 PENDING workbench-hosts-three-ab\n")  # fmt: skip
    with pytest.raises(FleetError, match=said):
        await asyncio.wait_for(cancel_left(folder), LONGEST_S)
    assert sorted(fake_slurm.told) == [
        "scancel --me --name=workbench-hosts-three-ab",
        "scancel 5 7",
    ]
    assert len(list((folder.root / "jobs").glob("*.job"))) == 3, "who comes next tries again"
    fake_slurm.does(stands="false", there="5 COMPLETING a\n7 RUNNING b\n")
    with pytest.raises(FleetError, match=r"cancels 1 job of the fleet: 7 of two"):
        await cancel_left(folder)
    fake_slurm.does()
    await cancel_left(folder)
    assert not list((folder.root / "jobs").glob("*.job"))


async def test_a_slurm_that_is_not_there_has_cancelled_nothing(
    tmp_path: Path, fake_slurm: FakeSlurm
) -> None:
    """Its programs say so by an exit code, as of a job that is over."""
    folder = left_jobs(tmp_path, one="5")
    fake_slurm.does(fails="exit 1")
    with pytest.raises(FleetError, match="5 of one"):
        await cancel_left(folder)
    assert (folder.root / "jobs" / "one.job").read_text() == "5"
    assert await slurm_jobs.SubmittedJob("5").state() is None
    fake_slurm.does(there="5 PENDING a\n")
    assert await slurm_jobs.SubmittedJob("5").state() == "PENDING"
    assert await slurm_jobs.SubmittedJob("6").state() == ""


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
async def test_a_job_is_cancelled_though_its_keeper_ends_while_it_is_submitted(
    tmp_path: Path, fake_slurm: FakeSlurm
) -> None:
    program = fake_slurm.folder / "sbatch"
    program.write_text(
        f"#!/bin/sh\necho $$ > {tmp_path}/pid\ntouch {tmp_path}/asked\nexec sleep 60\n"
    )
    host, folder = LabHost("node-1", "slurm", job=SlurmRequest()), left_jobs(tmp_path)

    async def submit() -> None:
        async with submitted(host, "tls://192.0.2.1:1", folder, Secrets("", "")):
            pass

    submitting = asyncio.create_task(submit())
    while not (tmp_path / "asked").exists():  # noqa: ASYNC110 - a file rings no bell
        await asyncio.sleep(0.01)
    name = (folder.root / "jobs" / "node-1.job").read_text()
    submitting.cancel()
    await asyncio.gather(submitting, return_exceptions=True)
    assert fake_slurm.told == [f"scancel --me --name={name}"]
    assert name.startswith("workbench-hosts-node-1-")
    assert not list((folder.root / "jobs").glob("*.job"))
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists(), "sbatch goes on"


async def test_a_job_that_slurm_has_taken_meanwhile_or_that_cannot_be_read_stays_known(
    tmp_path: Path, fake_slurm: FakeSlurm
) -> None:
    """`scancel --name` succeeds where there is no such job yet."""
    folder = left_jobs(tmp_path, one="workbench-hosts-one-ab", two="7")
    (folder.root / "jobs" / "three.job").mkdir()
    fake_slurm.does(there="8 PENDING workbench-hosts-one-ab\n7 RUNNING two\n")
    said = "2 jobs of the fleet: one that cannot be read of three, workbench-hosts-one-ab of one"
    with pytest.raises(FleetError, match=said):
        await cancel_left(folder)
    assert {path.stem for path in (folder.root / "jobs").glob("*.job")} == {"one", "three"}
    fake_slurm.does(there="8 PREEMPTED workbench-hosts-one-ab\n")
    (folder.root / "jobs" / "three.job").rmdir()
    await cancel_left(folder)
    assert not list((folder.root / "jobs").glob("*.job"))


def workers_in(folder: Path) -> list[str]:
    """Processes whose workspace lies in it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"WORKBENCH_WORKSPACE={folder}/".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
    return found


def number_of(jobs: Path) -> str:
    """Of a job that Slurm has taken."""
    try:
        text = (jobs / "node-1.job").read_text()
    except OSError:
        return ""
    return text if text.isdecimal() else ""


def test_without_slurm_a_host_of_its_kind_is_a_sentence(workbench: Workbench) -> None:
    (workbench.root / "hosts.yaml").write_text("kind: hosts\nhosts: {node: {kind: slurm}}\n")
    located = workbench.run("fleet", "up", "hosts.yaml", expect=2)
    assert "write on top under listen" in " ".join(located.stderr.split())
    (workbench.root / "hosts.yaml").write_text(
        "kind: hosts\nlisten: 0.0.0.0\nhosts: {node: {kind: slurm}}\n"
    )
    workbench.variables["PATH"] = str(workbench.runtime)
    refused = workbench.run("fleet", "up", "hosts.yaml", expect=2)
    assert "sbatch" in refused.stderr or "vnf-workbench[fleet,slurm]" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_what_a_job_asks_for_is_read_and_its_mistakes_are_located(tmp_path: Path) -> None:
    path = tmp_path / "hosts.yaml"
    text = "kind: hosts\nlisten: 192.0.2.1\nhosts:\n  node: {kind: slurm, job: {queue: %s}}\n"
    path.write_text(text % "fast, memory: 4GB, walltime: '2:00:00', directives: [--gres=nic]")
    (host,) = load_fleet(path, workspace=Workspace(tmp_path)).hosts
    assert host.job == SlurmRequest("fast", "4GB", "2:00:00", 2, ("--gres=nic",))
    for wrong in ("a b", "a, memory: much", "a, directives: ['rm -rf']"):
        path.write_text(text % wrong)
        with pytest.raises(DescriptorError, match=r"hosts\.yaml:4:"):
            load_fleet(path, workspace=Workspace(tmp_path))
