"""Version 2 counters of a live group, on hosts whose kernel has that hierarchy."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench.probes import cgroup

pytestmark = [pytest.mark.docker, pytest.mark.unhurried]  # a lab host, with the rights of one

BURN_S = 0.3
BURN = f"import time\nwhile time.process_time() < {BURN_S}: pass"


@pytest.fixture
def hierarchy(tmp_path: Path) -> Iterator[Path]:
    """Where version 2 is mounted; on hosts with version 1 it is mounted for this test."""
    mounts = cgroup.parse_mounts(Path("/proc/self/mountinfo").read_text())
    if cgroup.UNIFIED in mounts:
        yield mounts[cgroup.UNIFIED].point
        return
    point = tmp_path / "unified"
    point.mkdir()
    subprocess.run(["mount", "-t", "cgroup2", "none", str(point)], check=True)
    yield point
    subprocess.run(["umount", str(point)], check=True)


def test_what_a_process_burned_is_counted_for_its_group(hierarchy: Path) -> None:
    group = hierarchy / "vnf-workbench-test"
    group.mkdir()
    try:
        folders = cgroup.CgroupFolders("v2", group, group, group)
        assert cgroup.read(folders).cpu_s == 0.0
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        waiting = "import sys; sys.stdin.readline()\n" + BURN
        with subprocess.Popen(
            [sys.executable, "-c", waiting], stdin=subprocess.PIPE, text=True
        ) as process:
            (group / "cgroup.procs").write_text(str(process.pid))
            membership = cgroup.parse_membership(Path(f"/proc/{process.pid}/cgroup").read_text())
            assert membership[cgroup.UNIFIED].endswith("/vnf-workbench-test")
            assert process.pid in cgroup.threads(folders)
            process.communicate("go\n")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        counted = cgroup.read(folders).cpu_s
        # What the interpreter burned before it joined the group is not in it.
        assert 0.5 * BURN_S < counted <= used + 0.01
        assert cgroup.threads(folders) == ()
    finally:
        group.rmdir()
