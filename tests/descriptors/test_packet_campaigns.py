"""Packets pass routers alone; what fits them not is told in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.descriptors.loading import load_campaign
from workbench.domain.errors import DescriptorError
from workbench.paths import Workspace

ROUTER = "{vnf: router, source: packet-source, sink: packet-sink}"


def written(
    folder: Path, target: str, primary: str, kpi: str = "kpi: loss\nkpi_max: 90%", more: str = ""
) -> Path:
    path = folder / "packets.yaml"
    path.write_text(
        f"kind: campaign\ntargets:\n  - {target}\n"
        f"primary_workload_parameter: {{name: {primary}, range: [1000/s, 9000/s]}}\n{kpi}\n{more}",
        encoding="utf-8",
    )
    return path


def test_a_campaign_of_packets_has_a_load_of_packets(tmp_path: Path) -> None:
    path = written(tmp_path, ROUTER, "packet_rate")
    campaign = load_campaign(str(path), workspace=Workspace(tmp_path)).campaign
    assert (campaign.load.unit, campaign.load.kind) == ("packets", "open")
    assert campaign.load.key == "packets-constant"
    assert campaign.targets[0].primary.unit == "packets/s"
    assert campaign.template("router").passage == "router"


@pytest.mark.parametrize(
    ("target", "primary", "kpi", "sentence"),
    [
        ("{vnf: haproxy}", "packet_rate", "kpi: loss\nkpi_max: 90%", "is no router"),
        (ROUTER, "rate", "", "a router, which is measured with packets"),
        (ROUTER, "packet_rate", "", "which packets have none of"),
        ("{vnf: haproxy}", "rate", "kpi: packet_throughput\nkpi_max: 9000/s", "is of packets"),
    ],
)
def test_what_does_not_fit_is_a_sentence(
    tmp_path: Path, target: str, primary: str, kpi: str, sentence: str
) -> None:
    path = written(tmp_path, target, primary, kpi)
    with pytest.raises(DescriptorError, match=sentence):
        load_campaign(str(path), workspace=Workspace(tmp_path))


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("load: {kind: open, arrivals: poisson}\n", "constant rate"),
        ("windows: {interval: 5%}\n", "until an interval is narrow"),
    ],
)
def test_what_packets_cannot_be_asked_for_is_a_sentence(
    tmp_path: Path, more: str, sentence: str
) -> None:
    path = written(tmp_path, ROUTER, "packet_rate", more=more)
    with pytest.raises(DescriptorError, match=sentence):
        load_campaign(str(path), workspace=Workspace(tmp_path))


def test_the_inspector_has_its_patterns_as_an_axis(tmp_path: Path) -> None:
    campaign = load_campaign("inspect", workspace=Workspace(tmp_path)).campaign
    given = [c.workload for c in campaign.configurations(campaign.targets[0])]
    assert [one["inspect.patterns"] for one in given] == [10.0, 100.0, 1_000.0, 10_000.0]
    assert {one["inspect.depth"] for one in given} == {64.0}, "what is not varied has its default"
    template = campaign.template("inspect")
    assert (template.passage, template.stats) == ("router", ("inspect", "stats"))
    assert {p.change for p in template.function_parameters} == {"reload"}


def test_patterns_beyond_what_it_takes_are_a_sentence(tmp_path: Path) -> None:
    target = (
        "{vnf: inspect, source: packet-source, sink: packet-sink, "
        "function_parameters: [{name: patterns, values: [100, 50000]}]}"
    )
    path = written(tmp_path, target, "packet_rate")
    with pytest.raises(DescriptorError, match=r"patterns.*20000|20000.*patterns"):
        load_campaign(str(path), workspace=Workspace(tmp_path))


def test_ndpi_gets_a_copy_and_nothing_waits_for_it(tmp_path: Path) -> None:
    path = written(tmp_path, "{chain: classified-firewall}", "packet_rate")
    campaign = load_campaign(str(path), workspace=Workspace(tmp_path)).campaign
    ((passive, copied),) = campaign.targets[0].target.copies
    assert (passive.name, copied and copied.name) == ("ndpi", "firewall")
    assert campaign.template("ndpi").stats == ("classify", "stats")
