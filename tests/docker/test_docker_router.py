"""A router between source and sink: packets through the kernel's forwarding and NAT."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from docker_targets import container, docker, ignore, left_of, spoilt_by_host, until_valid

from workbench.descriptors.loading import load_campaign
from workbench.domain.errors import TrafficError
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Sample
from workbench.labs.base import LabSettings
from workbench.labs.components import packets
from workbench.labs.docker import DockerLab
from workbench.measuring.judging import Terms, judge
from workbench.paths import Workspace

pytestmark = [pytest.mark.docker, pytest.mark.unhurried]

FLOOD_PPS = 2_000_000.0
"""More than iperf3 sends on any host; some carry 200,000/s and lose none."""
LOSSY_PPS = 100_000.0
"""More than a sink with a twentieth of a core takes; where a source cannot send that, half of what
it can is still more."""


async def test_packets_pass_the_router_and_are_counted_lost_when_they_are_too_many(
    tmp_path: Path, session: str
) -> None:
    campaign = load_campaign("udp-loss", workspace=Workspace(tmp_path)).campaign
    target = campaign.targets[0].target
    chosen = Configuration({"router.vcpu": 0.25}, {"packetsize_bytes": 512.0})
    lab = DockerLab(campaign, LabSettings(session))

    async def measured(rate_pps: float, seconds: float) -> Sample:
        at = OperatingPoint(target.name, chosen, rate_pps)
        driven = await lab.drive(at, seconds, ignore)
        terms = Terms(load=campaign.load, windows=campaign.windows, sla=None, kpi=campaign.kpi)
        judgement = judge([driven], at, terms, started_at=0.0, lab_s=seconds)
        return judgement.measurement.sample

    try:
        await lab.open()
        deployment = await lab.deploy(target, chosen)
        legs = docker("exec", container(session, "router"), "cat", "/proc/net/dev")
        assert {"eth0", "eth1"} <= {line.split(":")[0].strip() for line in legs.splitlines()}
        sees = deployment.path.split("the sink sees ")[1].split(",")[0]
        assert sees in addresses(session, "router"), "translated: the sink knows the router alone"
        assert addresses(session, "source").isdisjoint(addresses(session, "sink"))

        assert lab._deployed is not None
        for asked, sentence in (
            (
                replace(campaign, generator="oha"),
                "oha sends requests, and target router is measured",
            ),
            (replace(campaign, kpi="p95_ms"), "iperf3 measures no delay"),
        ):
            with pytest.raises(TrafficError, match=sentence):
                await packets.prepare(replace(lab._deployed, campaign=asked), chosen)

        calm, widened = await until_valid(lambda: measured(2_000.0, 5.0))
        assert calm.kpis["loss_pct"].value < 0.5 + 100.0 * widened
        assert calm.kpi("throughput_pps") == pytest.approx(2_000.0, rel=0.02 + widened)
        if not deployment.warnings or "quota of router" not in deployment.warnings[-1]:
            assert calm.usage["router"].cpu_cores > 0.002, "its group pays for what it forwards"

        flooded = await measured(FLOOD_PPS, 3.0)
        assert not flooded.valid
        # Which end of the lab gives up first hangs on the host.
        assert flooded.reason in ("source_saturated", "sink_saturated"), flooded.findings
        carried = flooded.kpi("throughput_pps")
        assert carried is not None
        assert carried < 0.9995 * FLOOD_PPS

        # Which rate a router loses at hangs on the host; a sink that cannot follow always loses.
        chosen = Configuration({**chosen.resources, "sink.vcpu": 0.05}, chosen.workload)
        await lab.allocate(chosen)
        sent = flooded.completed + flooded.unfinished
        rate = min(LOSSY_PPS, 0.5 * FLOOD_PPS * sent / flooded.planned)
        lossy = await measured(rate, 3.0)
        assert lossy.kpis["loss_pct"].low > 1.0
        assert "sink_saturated" in {found.reason for found in lossy.findings}, lossy.findings
        sent = lossy.completed + lossy.unfinished
        assert sent < 1.05 * lossy.planned or spoilt_by_host(lossy), "no more than asked"
        assert sent > 0.95 * lossy.planned or spoilt_by_host(lossy), "others left it the CPU for it"
        assert await lab.drive_bypass(OperatingPoint("", chosen, 1.0), 1.0, ignore) is None
    finally:
        await lab.close()
    assert left_of(session) == ([], [])


def addresses(session: str, component: str) -> set[str]:
    form = "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}"
    found = docker("inspect", "--format", form, container(session, component))
    return set(found.split())
