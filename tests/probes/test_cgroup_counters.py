"""Counters of both cgroup versions, from recorded text and from folders that look like them."""

from pathlib import Path

import pytest

from workbench.probes import cgroup

HYBRID = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 master:2 - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
UNIFIED = """\
29 24 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate
"""
V1_GROUP = "4:memory:/docker/0a1b\n2:cpu,cpuacct:/docker/0a1b\n0::/docker/0a1b\n"
V2_GROUP = "0::/system.slice/docker-0a1b.scope\n"

V1_CPU_STAT = "nr_periods 412\nnr_throttled 97\nthrottled_time 7654321000\n"
V2_CPU_STAT = """\
usage_usec 10250000
user_usec 4000000
system_usec 6250000
core_sched.force_idle_usec 0
nr_periods 412
nr_throttled 97
throttled_usec 7654321
nr_bursts 0
burst_usec 0
"""
V2_MEMORY_STAT = "anon 1048576\nfile 3145728\nkernel 65536\ninactive_file 2097152\nactive_file 0\n"


def test_a_hybrid_host_counts_by_version_1() -> None:
    mounts = cgroup.parse_mounts(HYBRID)
    folders = cgroup.locate(mounts, cgroup.parse_membership(V1_GROUP))
    assert folders == cgroup.CgroupFolders(
        "v1",
        Path("/sys/fs/cgroup/cpu,cpuacct/docker/0a1b"),
        Path("/sys/fs/cgroup/cpu,cpuacct/docker/0a1b"),
        Path("/sys/fs/cgroup/memory/docker/0a1b"),
    )


def test_the_systemd_driver_on_version_2() -> None:
    mounts = cgroup.parse_mounts(UNIFIED)
    folders = cgroup.locate(mounts, cgroup.parse_membership(V2_GROUP))
    folder = Path("/sys/fs/cgroup/system.slice/docker-0a1b.scope")
    assert folders == cgroup.CgroupFolders("v2", folder, folder, folder, folder)


def test_part_of_the_tree_is_mounted_inside_a_container() -> None:
    mounts = {cgroup.UNIFIED: cgroup.Mount("/docker/outer", Path("/sys/fs/cgroup"))}
    folders = cgroup.locate(mounts, {cgroup.UNIFIED: "/docker/outer/docker/inner"})
    assert folders is not None
    assert folders.cpu == Path("/sys/fs/cgroup/docker/inner")


def test_no_hierarchy_that_accounts_for_cpu() -> None:
    assert cgroup.locate(cgroup.parse_mounts(""), cgroup.parse_membership(V2_GROUP)) is None


def test_both_versions_say_the_same_in_their_own_units() -> None:
    v1 = cgroup.counters_v1(
        V1_CPU_STAT, "10250000000\n", "4259840\n", "inactive_file 1\ntotal_inactive_file 2097152\n"
    )
    v2 = cgroup.counters_v2(V2_CPU_STAT, "4259840\n", V2_MEMORY_STAT)
    for counted in (v1, v2):
        assert counted.cpu_s == pytest.approx(10.25)
        assert (counted.periods, counted.throttled_periods) == (412, 97)
        assert counted.throttled_s == pytest.approx(7.654321)
        assert counted.memory_bytes == 4259840 - 2097152


def test_a_group_without_quota_has_no_periods() -> None:
    counted = cgroup.counters_v2("usage_usec 5\nuser_usec 5\nsystem_usec 0\n", "10\n", "")
    assert (counted.periods, counted.throttled_s) == (0, 0.0)
    assert counted.memory_bytes == 10


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_reading_the_files_of_a_group(tmp_path: Path, version: cgroup.CgroupVersion) -> None:
    folders = cgroup.CgroupFolders(version, tmp_path, tmp_path, tmp_path)
    (tmp_path / "cpu.stat").write_text(V1_CPU_STAT if version == "v1" else V2_CPU_STAT)
    (tmp_path / "cpuacct.usage").write_text("10250000000\n")
    (tmp_path / "tasks").write_text("17\n19\n")
    (tmp_path / "cgroup.threads").write_text("17\n19\n")
    counted = cgroup.read(folders)
    assert counted.cpu_s == pytest.approx(10.25)
    assert counted.memory_bytes == 0, "the memory controller may be switched off"
    assert cgroup.threads(folders) == (17, 19)


def test_a_group_that_is_gone_is_an_os_error(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(OSError, match=r"cpu\.stat"):
        cgroup.read(cgroup.CgroupFolders("v2", gone, gone, gone))
