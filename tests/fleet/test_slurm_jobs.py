"""Lab hosts as jobs of a Slurm of one machine, which the test starts and ends."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from driving import Workbench
from test_fleet_whole_way import CAMPAIGN, SAMPLES, standing

from workbench.descriptors.lab_hosts import load_fleet
from workbench.domain.errors import DescriptorError
from workbench.domain.fleets import LabHost, SlurmRequest
from workbench.fleet.fleet_standing import FleetError, FleetFolder
from workbench.fleet.security import Secrets
from workbench.fleet.slurm_jobs import submitted
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
    assert re.search(r"node-\d +up +1 +job \d of Slurm", up.stdout), up.stdout + up.stderr
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


def workers_in(folder: Path) -> list[str]:
    """Processes whose workspace lies in it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"WORKBENCH_WORKSPACE={folder}/".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
    return found


def number_of(jobs: Path) -> str:
    try:
        return (jobs / "node-1.job").read_text()
    except OSError:
        return ""


def test_without_slurm_a_host_of_its_kind_is_a_sentence(workbench: Workbench) -> None:
    (workbench.root / "hosts.yaml").write_text("kind: hosts\nhosts: {node: {kind: slurm}}\n")
    located = workbench.run("fleet", "up", "hosts.yaml", expect=2)
    assert "write on top under listen" in " ".join(located.stderr.split())
    (workbench.root / "hosts.yaml").write_text(
        "kind: hosts\nlisten: 192.0.2.1\nhosts: {node: {kind: slurm}}\n"
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
