"""Parts of the Docker lab that need no engine."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiodocker
import pytest

from workbench.domain.campaign import Agent, Campaign, Manager, TargetPlan
from workbench.domain.errors import LabError, UsageError
from workbench.domain.parameters import Configuration, LoadModel, Parameter, PrimaryWorkload
from workbench.domain.topology import (
    ConfigurationFile,
    Node,
    Parallel,
    Series,
    Target,
    Vnf,
    VnfTemplate,
)
from workbench.labs.components import allotments, disks, preflight, wiring
from workbench.labs.docker import apt_sources, building, containers, images
from workbench.labs.docker.engine import agent_url
from workbench.labs.docker.strays import (
    MAKING_LABEL,
    OWNER_LABEL,
    SESSION_LABEL,
    Owner,
    _started_ms,
    is_left,
    is_stray,
    remove,
)
from workbench.probes import cgroup
from workbench.traffic.base import PathFacts

TEMPLATE = VnfTemplate(
    "proxy",
    image="proxy:1",
    port=8080,
    files=(ConfigurationFile("/etc/proxy", "$port $threads $upstream_host:$upstream_port $$ $x"),),
    settings={"x": "1"},
)


BALANCER = replace(
    TEMPLATE,
    name="balancer",
    files=(ConfigurationFile("/etc/b", "s$upstream_number $upstream_host:$upstream_port"),),
)
KNOWN = {
    "proxy": TEMPLATE,
    "balancer": BALANCER,
    "router": replace(TEMPLATE, name="router", passage="router"),
}


def split(first: float, *templates: str) -> Parallel:
    branches = tuple(Vnf(f"b-{number}", name) for number, name in enumerate(templates))
    return Parallel(branches, (first, 1 - first))


def behind(template: str, rest: Node) -> Series:
    return Series((Vnf("a", template), rest))


class TestWiring:
    def test_files_are_filled_in(self) -> None:
        assert wiring.render(TEMPLATE, [("10.0.0.3", 80)], 2) == {
            "/etc/proxy": "8080 2 10.0.0.3:80 $ 1"
        }
        assert wiring.uses_threads(TEMPLATE)

    def test_a_placeholder_that_nothing_fills_is_named(self) -> None:
        with pytest.raises(LabError, match="upstream_host") as caught:
            wiring.render(TEMPLATE, [], 1)
        assert caught.value.where == "template proxy, file /etc/proxy"

    @pytest.mark.parametrize(
        ("cores", "threads"), [(0.0, 1), (0.125, 1), (1.0, 1), (1.001, 2), (1.5, 2), (4.0, 4)]
    )
    def test_threads_follow_the_allotment(self, cores: float, threads: int) -> None:
        assert wiring.worker_threads(cores) == threads

    def test_a_function_without_an_allotment_gets_its_default(self) -> None:
        nothing = Configuration({}, {})
        given = Configuration({"proxy.vcpu": 0.25}, {})
        half = replace(TEMPLATE, default_vcpu=0.5)
        assert wiring.vcpu(given, "proxy", half) == 0.25
        assert wiring.vcpu(nothing, "proxy", half) == 0.5
        assert wiring.vcpu(nothing, "source", replace(half, role="source")) == 0.0

    def test_fractions_go_by_quota_and_whole_cores_by_their_cores(self) -> None:
        assert containers.cpu_settings(0.25, (1,)) == {
            "CpuPeriod": 100_000,
            "CpuQuota": 25_000,
            "CpusetCpus": "1",
        }
        assert containers.cpu_settings(2.0, (1, 2))["CpuQuota"] == containers.UNLIMITED
        assert containers.cpu_settings(2.0, ())["CpuQuota"] == 200_000
        assert containers.cpu_settings(0.0, ())["CpuQuota"] == containers.UNLIMITED

    def test_cores_are_disjoint_where_there_are_enough(self) -> None:
        assert wiring.pin(2, {"haproxy": 1}) is None
        assert wiring.pin(3, {"haproxy": 1}) == {"source": (0,), "haproxy": (1,), "sink": (2,)}
        pins = wiring.pin(16, {"haproxy": 4, "tinyproxy": 1})
        assert pins is not None
        assert {name: len(cores) for name, cores in pins.items()} == {
            "source": 2,
            "haproxy": 4,
            "tinyproxy": 1,
            "sink": 2,
        }
        cores = [core for pinned in pins.values() for core in pinned]
        assert len(cores) == len(set(cores))

    def test_cpusets(self) -> None:
        assert Manager("haproxy", "local", "0-2, 5").cores == (0, 1, 2, 5)
        assert Manager("haproxy", "local").cores == ()

    def test_what_a_component_can_use_at_most(self) -> None:
        assert wiring.allotted(0.25, (3,), 8) == 0.25
        assert wiring.allotted(0.0, (3, 4), 8) == 2
        assert wiring.allotted(0.0, (), 8) == 8

    def test_a_line_that_counts_upstreams_is_there_for_each(self) -> None:
        text = "port $port\nserver s$upstream_number $upstream_host:$upstream_port\nend"
        balancer = replace(TEMPLATE, files=(ConfigurationFile("/etc/proxy", text),))
        assert wiring.can_balance(balancer)
        assert not wiring.can_balance(TEMPLATE)
        assert wiring.render(balancer, [("10.0.0.3", 80), ("10.0.0.4", 81)], 1) == {
            "/etc/proxy": "port 8080\nserver s1 10.0.0.3:80\nserver s2 10.0.0.4:81\nend"
        }

    def test_instances_stand_side_by_side_behind_their_balancer(self) -> None:
        one, two = Vnf("b-1", "proxy"), Vnf("b-2", "proxy")
        target = Target("t", Series((Vnf("a", "balancer"), Parallel((one, two), (0.5, 0.5)))))
        assert wiring.stages(target, KNOWN) == ((Vnf("a", "balancer"),), (one, two))
        assert wiring.segments(wiring.stages(target, KNOWN), KNOWN) == ((0,), (0,), (0,), (0,))

    def test_unlike_branches_and_where_they_merge(self) -> None:
        first, one, two, three, last = (
            Vnf(name, template)
            for name, template in (
                *(("a", "weighing"), ("b", "proxy"), ("c", "proxy"), ("d", "balancer")),
                ("e", "proxy"),
            )
        )
        graph = Series((first, Parallel((one, Series((two, three))), (0.7, 0.3)), last))
        text = "s$upstream_number $upstream_host:$upstream_port $upstream_weight\n"
        weighing = replace(KNOWN["balancer"], files=(ConfigurationFile("/etc/b", text),))
        target = Target("t", graph)
        known = {**KNOWN, "weighing": replace(weighing, name="weighing")}
        assert wiring.stages(target, known) == ((first,), (two,), (one, three), (last,))
        assert target.onward["a"] == (("b", 0.7), ("c", 0.3))
        assert target.onward["b"] == target.onward["d"] == (("e", 1.0),)
        assert target.splits == ({"b": 0.7, "c": 0.3},)
        endpoints = [("10.0.0.3", 80), ("10.0.0.4", 81)]
        assert wiring.render(weighing, endpoints, 1, shares=(0.7, 0.3)) == {
            "/etc/b": "s1 10.0.0.3:80 70\ns2 10.0.0.4:81 30\n"
        }

    @pytest.mark.parametrize(
        ("graph", "sentence"),
        [
            (split(0.5, "proxy", "proxy"), "begins with 2 instances of proxy"),
            (behind("proxy", split(0.5, "proxy", "proxy")), "behind proxy, which cannot balance"),
            (behind("proxy", split(0.5, "proxy", "balancer")), "branches b-0, b-1 behind proxy"),
            (behind("balancer", split(0.7, "proxy", "proxy")), "not at unequal shares"),
            (behind("balancer", split(0.5, "router", "router")), "no balancer .* passes packets"),
        ],
    )
    def test_other_splits_are_refused(self, graph: Node, sentence: str) -> None:
        with pytest.raises(UsageError, match=sentence):
            wiring.stages(Target("split", graph), KNOWN)


class TestPreflight:
    def test_reports_of_two_requests(self) -> None:
        facts = preflight.parse_report("200 10000 1  \n200 10000 0  \n")
        assert facts == PathFacts(200, 10_000, True, redirects=False, compresses=False)
        assert preflight.describe(facts) == (
            "answers 200 with 10000 bytes, keeps the connection open"
        )

    def test_a_path_that_closes_redirects_and_compresses(self) -> None:
        facts = preflight.parse_report("301 0 1 gzip http://x/ y\n301 0 1 gzip http://x/ y\n")
        assert facts == PathFacts(301, 0, False, redirects=True, compresses=True)
        assert preflight.describe(facts) == (
            "answers 301 with 0 bytes, closes the connection, redirects, compresses"
        )

    @pytest.mark.parametrize("report", ["", "200 10000 1  \n", "curl: (7)\nFailed\n"])
    def test_no_two_answers(self, report: str) -> None:
        with pytest.raises(ValueError):
            preflight.parse_report(report)


class TestAptSources:
    ONE_LINE = (
        "# deb http://a.example/debian old main\n"
        "deb [arch=amd64 signed-by=/k.gpg] http://a.example/debian bookworm main contrib # x\n"
        "deb http://a.example/debian-security bookworm-security main\n"
        "deb-src http://a.example/debian bookworm main\n"
    )
    DEB822 = (
        "Types: deb deb-src\n# a comment\nURIs: http://b.example/debian\n"
        "Suites: bookworm\n bookworm-updates\nComponents: main\nSigned-By:\n -----BEGIN\n .\n\n"
        "Enabled: no\nTypes: deb\nURIs: http://c.example/debian\nSuites: sid\nComponents: main\n\n"
        "Types: deb\nURIs: http://b.example/security\nSuites: bookworm-security\nComponents: main\n"
    )

    def test_both_formats(self, tmp_path: Path) -> None:
        (tmp_path / "sources.list").write_text(self.ONE_LINE)
        folder = tmp_path / "sources.list.d"
        folder.mkdir()
        (folder / "debian.sources").write_text(self.DEB822)
        (folder / "other.list.disabled").write_text("deb http://d.example/ bookworm main\n")
        found = apt_sources.read_sources(tmp_path)
        assert [(s.uri, s.suites) for s in found] == [
            ("http://a.example/debian", ("bookworm",)),
            ("http://a.example/debian-security", ("bookworm-security",)),
            ("http://b.example/debian", ("bookworm", "bookworm-updates")),
            ("http://b.example/security", ("bookworm-security",)),
        ]
        assert apt_sources.render(apt_sources.debian_sources(found[2:], "bookworm")) == (
            "deb http://b.example/debian bookworm main\n"
            "deb http://b.example/debian bookworm-updates main\n"
            "deb http://b.example/security bookworm-security main\n"
        )

    def test_keys_go_along_for_the_hosts_own_apt(self) -> None:
        found = tuple(apt_sources.parse_one_line(self.ONE_LINE))
        assert apt_sources.render(found[:1], trust=True) == (
            "deb [signed-by=/k.gpg] http://a.example/debian bookworm main contrib\n"
        )
        stanza = "Types: deb\nURIs: http://b.example/\nSuites: bookworm\n"
        trusted = tuple(apt_sources.parse_deb822(f"{stanza}Trusted: yes\n"))
        assert apt_sources.render(trusted, trust=True).startswith("deb [trusted=yes] ")
        inline = tuple(apt_sources.parse_deb822(f"{stanza}Signed-By:\n -----BEGIN\n"))
        assert apt_sources.render(inline, trust=True).startswith("deb http://b.example/ ")

    def test_another_release_names_the_mirror_too(self) -> None:
        newer = (apt_sources.AptSource("https://m.example/debian/", ("trixie",), ("main",)),)
        assert apt_sources.render(apt_sources.debian_sources(newer, "bookworm")) == (
            "deb https://m.example/debian/ bookworm main\n"
        )

    def test_a_host_that_is_not_debian(self) -> None:
        ubuntu = (apt_sources.AptSource("http://u.example/ubuntu", ("noble",), ("main",)),)
        assert apt_sources.debian_sources(ubuntu, "bookworm") == ()


class TestImages:
    def test_a_context_is_its_files_without_the_descriptor(self, tmp_path: Path) -> None:
        (tmp_path / "Dockerfile").write_text("FROM x\n")
        (tmp_path / "vnf.yaml").write_text("kind: vnf\n")
        (tmp_path / "conf").mkdir()
        (tmp_path / "conf" / "a").write_text("a")
        context = images.read_context(tmp_path)
        assert sorted(context) == ["Dockerfile", "conf/a"]
        same = building.digest(context)
        (tmp_path / "vnf.yaml").write_text("kind: other\n")
        assert building.digest(images.read_context(tmp_path)) == same
        assert building.digest({**context, "conf/a": b"b"}) != same
        assert building.digest({**context, "conf/b": b""}) != same
        with tarfile.open(fileobj=io.BytesIO(building.pack(context).read())) as tar:
            assert tar.getnames() == ["Dockerfile", "conf/a"]
            assert all(member.mode & 0o111 for member in tar.getmembers())

    def test_a_folder_without_a_dockerfile(self, tmp_path: Path) -> None:
        with pytest.raises(LabError, match="no Dockerfile"):
            images.read_context(tmp_path)

    def test_proxies_of_the_host_go_along(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in building.PROXY_VARIABLES:
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.upper(), raising=False)
        monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
        assert building.proxies() == {"https_proxy": "http://proxy.example:3128"}


class TestStrays:
    def test_only_what_is_ours_and_dead(self) -> None:
        here = Owner.this_process()
        dead = replace(here, pid=2**22 + 1)
        ours = {SESSION_LABEL: "s", OWNER_LABEL: str(dead)}
        assert is_stray(ours, frozenset())
        assert not is_stray(ours, frozenset({"s"}))
        assert not is_stray({"com.example": "s"}, frozenset())
        assert is_stray({SESSION_LABEL: "s"}, frozenset()), "nobody says that it lives"

    def test_what_is_made_goes_with_whoever_made_it(self) -> None:
        here = Owner.this_process()
        assert not is_left({MAKING_LABEL: str(here)}), "it is being made now"
        assert is_left({MAKING_LABEL: str(replace(here, pid=2**22 + 1))})

    def test_a_process_that_lives_keeps_its_own(self) -> None:
        parent = os.getppid()
        alive = replace(Owner.this_process(), pid=parent, started_ms=_started_ms(parent))
        assert not is_stray({SESSION_LABEL: "s", OWNER_LABEL: str(alive)}, frozenset())
        reused = replace(alive, started_ms=alive.started_ms - 5000)
        assert is_stray({SESSION_LABEL: "s", OWNER_LABEL: str(reused)}, frozenset())

    def test_this_process_knows_its_sessions(self) -> None:
        mine = {SESSION_LABEL: "s", OWNER_LABEL: str(Owner.this_process())}
        assert is_stray(mine, frozenset()), "closed, but its removal failed"
        assert not is_stray(mine, frozenset({"s"}))

    def test_other_hosts_and_other_boots(self) -> None:
        here = Owner.this_process()
        assert replace(here, host="elsewhere", pid=1).may_live()
        assert not replace(here, boot="before").may_live()
        assert Owner.parse(str(here)) == here
        assert Owner.parse("nonsense") is None


def test_an_agents_url_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = Campaign(
        "c", (), (), (), LoadModel("closed"), agents=(Agent("lab", "docker", "${LAB_ENGINE}"),)
    )
    monkeypatch.setenv("LAB_ENGINE", "tcp://10.0.0.9:2376")
    assert agent_url(campaign) == "tcp://10.0.0.9:2376"
    monkeypatch.delenv("LAB_ENGINE")
    with pytest.raises(LabError, match="has no LAB_ENGINE") as caught:
        agent_url(campaign)
    assert caught.value.where == "agent lab"
    assert agent_url(replace(campaign, agents=())) is None


class TestAllotments:
    """Memory and bandwidth are refused before anything is deployed (docs/docker-lab.md)."""

    HOST = allotments.HostMemory(2 << 30, containers.LEAST_MEMORY, limitable=True)

    @staticmethod
    def campaign(**resources: float) -> Campaign:
        parameters = tuple(Parameter(f"proxy.{key}", (value,)) for key, value in resources.items())
        plan = TargetPlan(
            Target("proxy", Vnf("proxy", "proxy")), parameters, PrimaryWorkload("rate", 1, 2)
        )
        return Campaign("c", (plan,), (TEMPLATE,), (), LoadModel("open"))

    async def test_what_fits(self) -> None:
        await allotments.check(self.campaign(vcpu=1.0), replace(self.HOST, total=1), local=False)
        await allotments.check(self.campaign(memory_bytes=64 << 20), self.HOST, local=False)

    @pytest.mark.parametrize(
        ("memory_bytes", "sentence"),
        [
            (5 << 20, "allots 5 MiB of memory, and none is given less than 6 MiB"),
            (3 << 30, "allotted up to 3 GiB of memory together, and the host has 2"),
        ],
    )
    async def test_memory_that_cannot_be(self, memory_bytes: int, sentence: str) -> None:
        with pytest.raises(UsageError, match=sentence):
            await allotments.check(self.campaign(memory_bytes=memory_bytes), self.HOST, local=True)

    async def test_flavors_are_counted(self) -> None:
        flavors = {"huge": {"memory_bytes": float(4 << 30)}}
        campaign = self.campaign()
        plan = replace(
            campaign.targets[0], resources=(Parameter("proxy.flavor", ("huge",), "", flavors),)
        )
        with pytest.raises(UsageError, match="up to 4 GiB of memory together"):
            await allotments.check(replace(campaign, targets=(plan,)), self.HOST, local=True)

    async def test_a_kernel_without_memory_limits(self) -> None:
        with pytest.raises(LabError, match="cannot limit memory"):
            await allotments.check(
                self.campaign(memory_bytes=64 << 20), replace(self.HOST, limitable=False), True
            )

    async def test_bandwidth_on_another_host(self) -> None:
        with pytest.raises(LabError, match="the engine is on another host") as caught:
            await allotments.check(self.campaign(bandwidth_mbps=10.0), self.HOST, local=False)
        assert "bandwidth cannot be allotted here" in str(caught.value)

    async def test_bandwidth_without_the_programs_or_the_kernel(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        assert "this host has no tc" in str(await allotments.unshapeable(local=True))
        for program in allotments.PROGRAMS:
            path = tmp_path / program
            path.write_text("#!/bin/sh\necho Error: Specified qdisc kind is unknown.\nexit 2\n")
            path.chmod(0o755)
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        assert await allotments.unshapeable(local=True) == (
            "the kernel shapes no link with a token bucket "
            "(Error: Specified qdisc kind is unknown.)"
        )
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        assert "only root" in str(await allotments.unshapeable(local=True))

    def test_a_bucket_holds_what_a_slow_clock_needs(self) -> None:
        assert allotments.bucket("eth0", 20.0)[5:] == (
            *("root", "tbf", "rate", "20000000bit", "burst", "32000b", "latency", "50ms"),
        )
        assert "500000b" in allotments.bucket("eth0", 1000.0)


class TestDisk:
    """Disk is held by the kernel on block devices, and refused where it cannot be."""

    async def test_where_it_cannot_be(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert "the engine is on another host" in str(disks.unlimitable(tmp_path, local=False))
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        assert "only root" in str(disks.unlimitable(tmp_path, local=True))
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        missing = tmp_path / "missing"
        assert "cannot be looked at" in str(disks.unlimitable(missing, local=True))
        assert "on no block device" in str(disks.unlimitable(Path("/proc"), local=True))
        host = replace(TestAllotments.HOST, no_disk="its components write in memory alone")
        campaign = TestAllotments.campaign(disk_mbps=10.0)
        with pytest.raises(LabError, match="disk cannot be allotted here: its components write"):
            await allotments.check(campaign, host, local=True)
        with pytest.raises(LabError, match="disk cannot be allotted here"):
            allotments.refuse_disk(campaign, "a guest has its files in memory")
        await allotments.check(TestAllotments.campaign(vcpu=1.0), host, local=True)

    def test_a_rate_is_of_the_whole_disk(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        disk = tmp_path / "devices" / "sda"
        (disk / "sda1").mkdir(parents=True)
        (disk / "dev").write_text("8:0\n")
        (disk / "sda1" / "dev").write_text("8:1\n")
        (disk / "sda1" / "partition").write_text("1\n")
        block = tmp_path / "block"
        block.mkdir()
        (block / "8:0").symlink_to(disk)
        (block / "8:1").symlink_to(disk / "sda1")
        monkeypatch.setattr(disks, "BLOCK", block)
        assert disks.whole(os.makedev(8, 1)) == disks.whole(os.makedev(8, 0)) == "8:0"
        assert disks.whole(os.makedev(0, 30)) is None

    @pytest.mark.parametrize("version", ["v1", "v2"])
    def test_what_is_written_into_its_group(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: cgroup.CgroupVersion
    ) -> None:
        monkeypatch.setattr(disks, "devices", lambda pid: ("8:0",))
        files = {"v1": [f"blkio.throttle.{w}_bps_device" for w in ("read", "write")]}
        for name in files.get(version, ["io.max"]):
            (tmp_path / name).touch()
        folders = cgroup.CgroupFolders(version, tmp_path, tmp_path, tmp_path, tmp_path)
        component = SimpleNamespace(
            disk_mbps=2.5, pid=1, probe=SimpleNamespace(folders=folders), place="container c"
        )
        disks.hold(component)  # type: ignore[arg-type]
        held = {path.name: path.read_text() for path in tmp_path.iterdir()}
        assert set(held.values()) == (
            {"8:0 2500000"} if version == "v1" else {"8:0 rbps=2500000 wbps=2500000"}
        )
        component.disk_mbps = 0.0
        disks.hold(component)  # type: ignore[arg-type]
        held = {path.name: path.read_text() for path in tmp_path.iterdir()}
        assert set(held.values()) == ({"8:0 0"} if version == "v1" else {"8:0 rbps=max wbps=max"})
        monkeypatch.setattr(disks, "devices", lambda pid: ())
        component.disk_mbps = 1.0
        with pytest.raises(LabError, match="nothing of it lies on a disk"):
            disks.hold(component)  # type: ignore[arg-type]


async def test_a_network_whose_containers_just_go_is_removed_once_they_are_gone() -> None:
    """Another process reaps the same: for the engine its containers are not gone yet."""
    asked: list[str] = []

    @asynccontextmanager
    async def query(path: str, method: str) -> AsyncIterator[None]:
        asked.append(f"{method} {path}")
        if len(asked) < 3:
            raise aiodocker.DockerError(403, "network n has active endpoints")
        yield

    engine: Any = SimpleNamespace(_query=query)
    network = {"Id": "n1", "Name": "vnf-n1"}
    assert await remove(engine, [], [network]) == ("vnf-n1",)
    assert asked == ["DELETE networks/n1"] * 3
