"""A fleet keeps to the ports of its hosts file, and says which are taken."""

from __future__ import annotations

import json
import os
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from driving import Workbench
from test_fleet_whole_way import standing

from workbench.domain.fleets import LabHost, SlurmRequest
from workbench.fleet.fleet_standing import FleetFolder
from workbench.fleet.security import made
from workbench.fleet.slurm_jobs import _job

LOOPBACK = "127.0.0.1"


def free_ports() -> tuple[int, int, int]:
    """One, and two that follow each other; other processes that look for such begin elsewhere."""
    for first in range(20000 + os.getpid() % 900 * 10, 30000, 7):
        with ExitStack() as stack:
            try:
                for port in range(first, first + 3):
                    stack.enter_context(socket.create_server((LOOPBACK, port)))
            except OSError:
                continue
            return first, first + 1, first + 2
    pytest.fail("no ports are free")


def hosts_file(workbench: Workbench, scheduler: int, workers: str) -> None:
    ports = {"scheduler": scheduler, "workers": workers}
    hosts = {"kind": "hosts", "ports": ports, "hosts": {"alpha": {"kind": "simulated"}}}
    (workbench.root / "hosts.yaml").write_text(json.dumps(hosts))


def listening(pid: int) -> set[int]:
    """Ports at loopback's address at which a process listens."""
    held = {path.readlink().name for path in Path(f"/proc/{pid}/fd").iterdir() if path.is_symlink()}
    found = set()
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *rest = line.split()
        if state == "0A" and f"socket:[{rest[5]}]" in held:
            found.add(int(local.partition(":")[2], 16))
    return found


def test_a_fleet_listens_at_the_ports_of_its_hosts_file(workbench: Workbench) -> None:
    scheduler, first, last = free_ports()
    hosts_file(workbench, scheduler, f"{first}-{last}")
    with socket.create_server((LOOPBACK, first)):  # the next of the range is taken
        workbench.run("fleet", "up", "hosts.yaml")
    known = standing(workbench)
    assert known["scheduler"] == f"tls://{LOOPBACK}:{scheduler}"
    assert last in listening(known["hosts"][0]["pid"])

    hosts_file(workbench, scheduler, f"{first}-{last + 1}")
    assert "ports changed" in " ".join(
        workbench.run("fleet", "status", "hosts.yaml", expect=None).stderr.split()
    )
    hosts_file(workbench, scheduler, f"{first}-{last}")
    workbench.run("fleet", "down", "hosts.yaml")
    # At once again: what is left of connections of before does not keep a port.
    workbench.run("fleet", "up", "hosts.yaml")
    workbench.run("fleet", "down", "hosts.yaml")


def test_ports_that_are_taken_are_named(workbench: Workbench) -> None:
    scheduler, first, _ = free_ports()
    hosts_file(workbench, scheduler, f"{first}-{first}")
    with socket.create_server((LOOPBACK, scheduler)):
        said = " ".join(workbench.run("fleet", "up", "hosts.yaml", expect=3).stderr.split())
    assert f"nothing can listen at port {scheduler} of {LOOPBACK}: " in said
    assert "Address already in use" in said
    with socket.create_server((LOOPBACK, first)):
        said = " ".join(workbench.run("fleet", "up", "hosts.yaml", expect=3).stderr.split())
    assert "alpha did not come up, and is tried again: " in said
    assert "Address already in use" in said
    workbench.run("fleet", "down", "hosts.yaml")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
async def test_the_worker_of_a_job_keeps_to_them_too(tmp_path: Path) -> None:
    host, folder = LabHost("node", "slurm", job=SlurmRequest()), FleetFolder(tmp_path)

    def script(ports: str) -> str:
        job = _job(host, "tls://192.0.2.1:1", folder, made(), "a-name", ports)
        text: str = job.job_script()
        return text

    assert "--worker-port 9000:9099" in script("9000:9099")
    assert "--worker-port" not in script("")
