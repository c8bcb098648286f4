"""Hosts files, shards and the comparison of hosts: what needs no process."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from factors_told import interval_told

from workbench.descriptors.checking import lint
from workbench.descriptors.lab_hosts import load_fleet
from workbench.descriptors.loading import (
    RESOLVED,
    LoadedCampaign,
    load_campaign,
    save_resolved,
)
from workbench.domain.errors import DescriptorError, UsageError
from workbench.domain.fleets import FleetPorts, LabHost, told
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.profiles import Breakpoint
from workbench.domain.samples import Estimate, Sample
from workbench.fleet.fleet_standing import FleetError
from workbench.fleet.folding import lab_kind
from workbench.fleet.host_engine import lab_of
from workbench.models.host_factors import compare_hosts, on_reference
from workbench.paths import Workspace
from workbench.sampling.shard_times import time_left_s
from workbench.sampling.shards import anchor, split

GOOD = """
kind: hosts
listen: 10.0.0.1
hosts:
  small: {kind: simulated, count: 3, speed: 0.5}
  noisy: {kind: simulated, noise: 2}
  lab-a: {address: 10.0.0.7, user: lab, port: 2222, python: /opt/wb/bin/python}
"""


def hosts_file(folder: Path, text: str) -> Path:
    path = folder / "hosts.yaml"
    path.write_text(text)
    return path


def test_a_hosts_file_is_read(tmp_path: Path) -> None:
    fleet = load_fleet(hosts_file(tmp_path, GOOD), workspace=Workspace(tmp_path))

    assert [host.name for host in fleet.hosts] == [
        "small-1",
        "small-2",
        "small-3",
        "noisy",
        "lab-a",
    ]
    assert fleet.listen == "10.0.0.1"
    assert fleet.hosts[0] == LabHost("small-1", "simulated", speed=0.5)
    assert (fleet.hosts[-1].address, fleet.hosts[-1].port) == ("10.0.0.7", 2222)


def test_ports_of_a_fleet_are_any_or_those_of_the_hosts_file(tmp_path: Path) -> None:
    def ports(text: str) -> FleetPorts:
        return load_fleet(hosts_file(tmp_path, GOOD + text), workspace=Workspace(tmp_path)).ports

    assert ports("") == FleetPorts()
    assert ports("").workers == ""
    own = ports("ports: {scheduler: 8786, workers: 9000-9099}\n")
    assert (own.scheduler, own.workers) == (8786, "9000:9099")
    assert ports("ports: {workers: 9000-9003}\n") == FleetPorts(0, 9000, 9003)
    assert FleetPorts(0, 9000, 9000).workers == "9000"


@pytest.mark.parametrize(
    ("text", "line", "field", "said"),
    [
        ("kind: hosts\nhosts: {}\n", 2, "hosts", "is empty"),
        ("kind: hosts\nhosts:\n  a: {kind: simulatd}\n", 3, "hosts.a.kind", "did you mean simul"),
        ("kind: hosts\nhosts:\n  a: {kind: simulated, port: 22}\n", 3, "hosts.a.port", "kind ssh"),
        ("kind: hosts\nhosts:\n  a: {kind: simulated, speed: 0}\n", 3, "hosts.a.speed", "over 0"),
        ("kind: hosts\nhosts:\n  a: {address: lab.example}\n", 3, "hosts.a", "under listen:"),
        ("kind: hosts\nhosts:\n  a: {kind: simulated, lab: docker}\n", 3, "hosts.a.lab", "lab sim"),
        (
            "kind: hosts\nhosts:\n  a: {kind: simulated, count: 2}\n  a-1: {kind: simulated}\n",
            4, "hosts.a-1", "a count makes",
        ),
        ("kind: hosts\nports: {workers: 9000}\nhosts: {a: {kind: simulated}}\n", 2, "ports.workers",
         "must be text"),
        ("kind: hosts\nports: {workers: 9009-9000}\nhosts: {a: {kind: simulated}}\n", 2,
         "ports.workers", "is '9009-9000', must be FIRST-LAST, two ports of 1 to 65535 such as"),
        ("kind: hosts\nports: {workers: 9000-99999}\nhosts: {a: {kind: simulated}}\n", 2,
         "ports.workers", "must be FIRST-LAST"),
        ("kind: hosts\nports: {scheduler: 0}\nhosts: {a: {kind: simulated}}\n", 2,
         "ports.scheduler", "1"),
        ("kind: hosts\nports: {workers: 9000-9001}\nhosts: {a: {kind: simulated, count: 3}}\n", 2,
         "ports.workers", "2 ports, but the 3 simulated hosts of this host listen at one each"),
        (
            "kind: hosts\nscheduler: tls://a:8786\n"
            "certificates: {authority: a, certificate: b, key: c}\n"
            "ports: {scheduler: 8786}\nhosts: {a: {kind: simulated}}\n",
            4, "ports.scheduler", "of the fleet's own scheduler, and this file names one",
        ),
    ],
)  # fmt: skip
def test_mistakes_are_located(tmp_path: Path, text: str, line: int, field: str, said: str) -> None:
    path = hosts_file(tmp_path, text)
    with pytest.raises(DescriptorError) as caught:
        load_fleet(path, workspace=Workspace(tmp_path))

    (mistake,) = caught.value.mistakes
    assert (mistake.line, mistake.field) == (line, field)
    assert said in mistake.message
    assert lint(path, workspace=Workspace(tmp_path)) == caught.value.mistakes


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("hosts: {a: {kind: slurm, python: LONG}}\nlisten: 192.0.2.1", 2, "hosts.a.python"),
        ("hosts: {a: {kind: slurm, folder: LONG}}\nlisten: 192.0.2.1", 2, "hosts.a.folder"),
        (
            "hosts: {a: {kind: simulated}}\n"
            "certificates: {authority: a, certificate: LONG, key: k}",
            3, "certificates.certificate",
        ),
    ],
)  # fmt: skip
def test_no_path_of_a_hosts_file_is_endless(
    tmp_path: Path, text: str, line: int, field: str
) -> None:
    path = hosts_file(tmp_path, f"kind: hosts\n{text}\n".replace("LONG", "x" * 4097))
    with pytest.raises(DescriptorError) as caught:
        load_fleet(path, workspace=Workspace(tmp_path))
    (mistake,) = caught.value.mistakes
    assert (mistake.line, mistake.field) == (line, field)
    assert mistake.message == "is too long, at most 4096 characters are allowed"


def test_shards_hold_every_configuration_once_and_have_the_same_key_everywhere(
    tmp_path: Path,
) -> None:
    campaign = load_campaign("table2", workspace=Workspace(tmp_path)).campaign
    shards = split(campaign, 4, run="r", lab="sim", seed=1)

    planned = [(p.target.name, c.key) for p in campaign.targets for c in campaign.configurations(p)]
    found = [(s.target, key) for s in shards for key in s.configurations]
    assert sorted(found) == sorted(planned)
    assert len(set(found)) == len(found)
    for shard in shards:
        (plan,) = shard.campaign.targets
        own = shard.campaign.configurations(plan)
        assert tuple(c.key for c in own) == tuple(
            c.key for c in campaign.configurations(plan) if c.key in shard.configurations
        )
        assert len({str(sorted(c.workload.items())) for c in own}) == 1
    keys = [shard.key for shard in shards]
    assert len(set(keys)) == len(keys) == len({shard.seed for shard in shards})
    assert keys == [s.key for s in split(campaign, 4, run="r", lab="sim", seed=1)]
    others = [
        split(campaign, 4, run="other", lab="sim", seed=1),
        split(campaign, 4, run="r", lab="docker", seed=1),
        split(campaign, 4, run="r", lab="sim", seed=2),
    ]
    assert all(not {s.key for s in other} & set(keys) for other in others)


def test_anchors_are_the_same_points_on_every_host_under_keys_of_their_own(tmp_path: Path) -> None:
    campaign = load_campaign("demo", workspace=Workspace(tmp_path)).campaign
    one, other = (anchor(campaign, host=h, run="r", lab="sim", seed=1) for h in ("a", "b"))

    assert one.campaign == other.campaign
    assert one.key != other.key
    assert len(one.configurations) == 1


def test_a_resolved_campaign_crosses_as_a_file(tmp_path: Path) -> None:
    loaded = load_campaign("demo", workspace=Workspace(tmp_path))
    shard = split(loaded.campaign, 2, run="r", lab="sim", seed=1)[0]
    path = tmp_path / f"x{RESOLVED}"
    save_resolved(LoadedCampaign(shard.campaign, loaded.descriptors), path)

    again = load_campaign(str(path), workspace=Workspace(tmp_path))
    assert again == LoadedCampaign(shard.campaign, loaded.descriptors)
    assert path.stat().st_mode & 0o077 == 0
    for text in (b"", b"[]", b'{"campaign": 1, "descriptors": []}', b"\xff"):
        path.write_bytes(text)
        with pytest.raises(UsageError, match="no resolved campaign"):
            load_campaign(str(path), workspace=Workspace(tmp_path))


def test_what_a_simulated_host_is_goes_into_its_lab() -> None:
    plain = LabHost("a", "simulated")
    slow = LabHost("b", "simulated", speed=0.5, noise=2.0, clock_s=3600.0)

    assert lab_of(plain, "docker") == "sim"
    assert lab_of(plain, "sim:noise=0") == "sim:noise=0"
    assert lab_of(slow, "sim:host_speed=2").startswith(
        "sim:host_speed=2,host_speed=1,window_sd=0.08"
    )
    assert lab_of(LabHost("c", "ssh", lab="netns"), None) == "netns"
    assert lab_of(LabHost("c", "ssh"), None) is None


def test_shards_of_labs_of_different_kinds_are_not_folded() -> None:
    alike = [("a", "sim", False), ("b", "sim:host_speed=2", False)]
    assert lab_kind(alike, "s") == "sim"
    with pytest.raises(FleetError, match="sim on a, netns on c"):
        lab_kind([*alike, ("c", "netns", False)], "s")
    with pytest.raises(FleetError, match=r"vm \(emulated\) on a, vm on b"):
        lab_kind([("a", "vm", True), ("b", "vm", False)], "s")


def sample(wl: float, block: int, p95_ms: float, rate_rps: float) -> Sample:
    def exact(value: float) -> Estimate:
        return Estimate(value, 0.9 * value, 1.1 * value)

    return Sample(
        f"t/x/{wl:g}/{block}", OperatingPoint("t", Configuration({}, {}), wl, block),
        {"p95_ms": exact(p95_ms), "throughput_rps": exact(rate_rps)}, {}, True, (), (),
        "open", "planned", "made up", 1, 1, 0, 0, 1, 3, 0.0, 0.0, 0.0, 1.0, 1.0, block=block,
    )  # fmt: skip


def anchors(rng: np.random.Generator, speed: float, sd: float) -> list[Sample]:
    """Four deployments of a host of that speed, at both ends of a range, while what it carries has
    drifted by half as much as its deployments scatter."""
    drift = rng.normal(0.0, 0.5 * sd)
    luck = np.exp(rng.normal((0.0, drift), sd, (4, 2)))
    return [
        sample(*ends)
        for block, (one, other) in enumerate(luck)
        for ends in (
            (100.0, block, 5.0 / speed * one, 100.0),
            (2000.0, block, 90.0, 500.0 * speed * other),
        )
    ]


def test_the_interval_of_a_host_factor_covers_the_truth_as_often_as_it_says() -> None:
    """Of what hosts carry with the drift that four starts do not show."""
    rng, runs = np.random.default_rng(24), 400
    inside = Counter[str]()
    for _ in range(runs):
        found = compare_hosts(
            {"a": anchors(rng, 1.0, 0.04), "b": anchors(rng, 0.7, 0.08)}, "p95_ms"
        )
        assert found is not None
        truth = {"throughput_rps": 0.7, "p95_ms": 1.0 / 0.7}
        for factor in found.factors:
            inside[factor.figure] += factor.low <= truth[factor.figure] <= factor.high
    assert 0.93 <= inside["p95_ms"] / runs <= 0.97
    assert 0.91 <= inside["throughput_rps"] / runs <= 0.97


def test_the_factor_of_every_figure_is_told_with_its_interval() -> None:
    """As the acceptance of two real hosts reads it, which no gate runs."""
    rng = np.random.default_rng(5)
    found = compare_hosts({"a": anchors(rng, 1.0, 0.02), "b-1": anchors(rng, 0.7, 0.02)}, "p95_ms")
    assert found is not None
    assert {factor.figure for factor in found.factors} == {"throughput_rps", "p95_ms"}
    for factor in found.factors:
        interval = interval_told(told(found), "b-1", factor.figure)
        assert interval == pytest.approx((factor.low, factor.high), abs=1e-3)
    assert interval_told(told(found), "b", "p95_ms") is None


def test_what_a_host_carries_is_told_of_the_highest_load_where_that_is_the_kpi() -> None:
    """Each host offers the two anchor loads of a start in an order of its own."""
    rng = np.random.default_rng(5)
    own = {"a": anchors(rng, 1.0, 0.01), "b": anchors(rng, 0.7, 0.01)}
    shuffled = {host: [own[host][i] for i in rng.permutation(8)] for host in own}
    found = compare_hosts(shuffled, "throughput_rps")
    assert found is not None
    (factor,) = found.factors
    assert (factor.figure, factor.note) == ("throughput_rps", "")
    assert factor.value == pytest.approx(0.7, rel=0.05)
    assert not found.unsteady
    assert all(scatter.sd < 0.05 for scatter in found.scatter)


def test_a_load_that_nobody_saturates_says_nothing_of_what_a_host_carries() -> None:
    rng = np.random.default_rng(3)
    slow, fast = anchors(rng, 0.5, 0.01), anchors(rng, 8.0, 0.01)
    found = compare_hosts({"a": slow, "b": fast}, "p95_ms")

    assert found is not None
    notes = {factor.figure: factor.note for factor in found.factors}
    assert notes["p95_ms"] == ""
    assert notes["throughput_rps"]
    own = Breakpoint("t", Configuration({}, {}), "capacity", "p95_ms", "found", 9.0, 8.0, 10.0)
    assert on_reference(found, {"b": [own]}).breakpoints == ()


def test_a_host_that_disagrees_with_itself_is_named() -> None:
    rng = np.random.default_rng(1)
    quiet = {name: anchors(rng, 1.0, 0.01) for name in ("a", "b", "c")}
    found = compare_hosts({**quiet, "d": anchors(rng, 1.0, 0.6)}, "p95_ms")

    assert found is not None
    assert set(found.unsteady) == {"d"}
    assert "of the other hosts' by" in found.unsteady["d"]
    assert compare_hosts({"a": quiet["a"]}, "p95_ms") is None


def test_of_two_hosts_the_one_that_disagrees_with_itself_is_named() -> None:
    rng = np.random.default_rng(2)
    quiet, loud = anchors(rng, 1.0, 0.01), anchors(rng, 0.7, 0.6)
    for own in ({"a": quiet, "b": loud}, {"b": loud, "a": quiet}):
        found = compare_hosts(own, "p95_ms")
        assert found is not None
        assert set(found.unsteady) == {"b"}
    alike = compare_hosts({"a": quiet, "b": anchors(rng, 0.7, 0.01)}, "p95_ms")
    assert alike is not None
    assert alike.unsteady == {}


def test_what_is_left_goes_to_whoever_is_free_first() -> None:
    # One of two equal hosts has 10 s to go; 30 points of 1 a second are left for both.
    assert time_left_s([10, 10, 10], {"a": (20, 10.0)}, {"a": 1.0, "b": 1.0}) == pytest.approx(20)
    # A host that has finished nothing is taken for the median; one that is gone takes nothing.
    assert time_left_s([10, 10], {"c": (5, 0)}, {"a": 2.0, "b": None}) == pytest.approx(5)
    assert time_left_s([10], {"a": (10, 99.0)}, {"a": 1.0}) == pytest.approx(10)
    assert time_left_s([], {}, {"a": 1.0}) == 0.0
    assert time_left_s([10], {}, {"a": None}) is None
    assert time_left_s([10], {}, {}) is None
    # One that is held ends what it measures, and is given nothing more.
    rates = {"a": 1.0, "b": 1.0}
    assert time_left_s([10, 10], {"b": (5, 0)}, rates, {"b"}) == pytest.approx(20)
    assert time_left_s([], {"b": (5, 0)}, rates, {"b"}) == pytest.approx(5)
    assert time_left_s([10], {"b": (5, 0)}, rates, {"a", "b"}) is None


def test_who_is_done_first_is_found_without_a_look_at_all_hosts_for_each_shard() -> None:
    looks: list[float] = []

    class Rate(float):
        def __rtruediv__(self, points: float) -> float:
            looks.append(points)
            return points / float(self)

    rates = {f"{n}": Rate(1 + n % 7) for n in range(100)}
    waiting = [10.0] * 1000 + [5.0] * 1000
    found = time_left_s(waiting, {}, rates)
    assert found == pytest.approx(sum(waiting) / sum(rates.values()), rel=0.1)
    assert len(looks) <= 2 * len(rates) + len(waiting)


def test_a_breakpoint_of_another_host_is_carried_over_with_the_variance_of_the_factor() -> None:
    """Of hosts of speeds 0.5 to 2; taken as it is, hardly any would hold the truth."""
    rng, truth, runs = np.random.default_rng(25), 500.0, 400
    inside = naive = 0
    for _ in range(runs):
        speed, sd = float(np.exp(rng.uniform(np.log(0.5), np.log(2.0)))), 0.03
        found = compare_hosts(
            {"a": anchors(rng, 1.0, 0.04), "b": anchors(rng, speed, 0.08)}, "p95_ms"
        )
        assert found is not None
        wl = truth * speed * float(np.exp(rng.normal(0.0, sd)))
        half = float(np.exp(1.96 * sd))
        own = Breakpoint("t", Configuration({}, {}), "capacity", "p95_ms", "found", wl, wl / half,
                         wl * half)  # fmt: skip
        (carried,) = on_reference(found, {"a": [own], "b": [own]}).breakpoints
        assert carried.own == own
        low, high = carried.carried.low, carried.carried.high
        assert low is not None
        assert high is not None
        inside += low <= truth <= high
        naive += wl / half <= truth <= wl * half
    assert 0.92 <= inside / runs <= 0.99
    assert naive / runs < 0.3
