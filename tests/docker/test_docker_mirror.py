"""Copies for a passive function: what was mirrored, what arrived and what it processed, counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from docker_targets import left_of
from exact_packets import driven, reached

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign
from workbench.domain.parameters import OperatingPoint
from workbench.measuring import copies
from workbench.paths import Workspace

pytestmark = [pytest.mark.docker, pytest.mark.unhurried]

RATE, SECONDS = 4_000.0, 2.0


async def test_a_copy_is_exact_and_what_a_capture_misses_is_counted(
    tmp_path: Path, session: str, full_length: bool
) -> None:
    campaign = load_campaign("mirror", workspace=Workspace(tmp_path)).campaign
    tapped = next(plan for plan in campaign.targets if plan.target.copies)
    campaign = replace(campaign, targets=(tapped,))
    configurations = campaign.configurations(tapped)
    # With whole packets, a small buffer and a fraction of its CPU a capture must miss some.
    starved = replace(
        configurations[0],
        resources={**configurations[0].resources, "tcpdump.vcpu": 0.01},
        workload={**configurations[0].workload, "tcpdump.buffer_kib": 64.0},
    )
    rate, seconds, runs = (20_000.0, 5.0, 20) if full_length else (RATE, SECONDS, 1)
    points = [OperatingPoint("tapped-firewall", configurations[1], rate, 0)] * runs
    points.append(OperatingPoint("tapped-firewall", starved, rate * 2, 0))
    *fed, hungry = await driven(campaign, session, points, seconds)
    for drive in fed:
        (seen,) = drive.copies.values()
        assert drive.packets is not None
        assert drive.packets.exact is not None
        assert drive.packets.exact[0] == rate * seconds
        assert drive.packets.unaccounted == 0, drive.packets.dropped_at
        came = reached(drive, "firewall")
        assert came <= seen.mirrored <= came + 20, "the firewall also asks for addresses"
        assert (seen.arrived, seen.captured) == (seen.mirrored, seen.mirrored)
    (missed,) = hungry.copies.values()
    assert missed.arrived == missed.mirrored
    assert missed.captured is not None
    assert missed.captured < missed.mirrored
    kpi = copies.state([hungry])[copies.CAPTURE_LOSS]
    assert 0 < kpi.low < kpi.value <= kpi.high
    assert hungry.packets is not None
    assert not any(place.startswith("tcpdump") for place in hungry.packets.dropped_at)
    assert left_of(session) == ([], [])


def campaign_of(folder: Path, chain: str, passive: str) -> Campaign:
    """The firewall with this function on a copy of its traffic."""
    written = folder / f"{chain}-copied.yaml"
    written.write_text(
        "kind: campaign\n"
        "targets:\n"
        f"  - chain: {chain}\n"
        "    resource_parameters:\n"
        "      - {vnf: firewall, name: vcpu, values: [50%]}\n"
        f"      - {{vnf: {passive}, name: vcpu, values: [50%]}}\n"
        "workload_parameters:\n"
        "  - {name: packetsize, values: [512 B]}\n"
        "  - {name: flows, values: [100]}\n"
        "primary_workload_parameter: {name: packet_rate, range: [1000/s, 40000/s]}\n"
        "kpi: loss\n"
        "kpi_max: 90%\n",
        encoding="utf-8",
    )
    return load_campaign(str(written), workspace=Workspace(folder)).campaign


@pytest.mark.long  # tcpdump stands for all passive functions in the gate
@pytest.mark.parametrize(
    ("chain", "passive", "buffer_kib", "share", "least_missed"),
    [
        ("sniffed-firewall", "netsniff-ng", 256.0, 0.05, 0),
        ("accounted-firewall", "softflowd", 512.0, 0.01, 1),
    ],
)
async def test_what_a_passive_function_misses_of_its_copy_is_counted(
    tmp_path: Path,
    session: str,
    chain: str,
    passive: str,
    buffer_kib: float,
    share: float,
    least_missed: int,
) -> None:
    """Starved by `share` of a core and a small buffer; netsniff-ng needs so little for a packet
    that it misses none on a quiet host, and with less it does not end in time."""
    campaign = campaign_of(tmp_path, chain, passive)
    (plan,) = campaign.targets
    (fed,) = campaign.configurations(plan)
    starved = replace(
        fed,
        resources={**fed.resources, f"{passive}.vcpu": share},
        workload={**fed.workload, f"{passive}.buffer_kib": buffer_kib, "flows": 10_000.0},
    )
    runs = 20
    points = [OperatingPoint(plan.target.name, fed, RATE)] * runs
    points.append(OperatingPoint(plan.target.name, starved, 40_000.0))
    *calm, hungry = await driven(campaign, session, points, SECONDS)
    for drive in calm:
        (seen,) = drive.copies.values()
        came = reached(drive, "firewall")
        assert came <= seen.mirrored <= came + 20
        assert (seen.arrived, seen.captured) == (seen.mirrored, seen.mirrored)
    (missed,) = hungry.copies.values()
    assert missed.arrived == missed.mirrored
    assert missed.captured is not None
    assert 0 < missed.captured <= missed.mirrored - least_missed, "the kernel's buffer is full"
    assert left_of(session) == ([], [])


@pytest.mark.long
async def test_ndpi_counts_what_it_has_processed_of_its_copy(tmp_path: Path, session: str) -> None:
    campaign = campaign_of(tmp_path, "classified-firewall", "ndpi")
    (plan,) = campaign.targets
    (fed,) = campaign.configurations(plan)
    # It takes a close look at each new flow, and next to none at those that it has given up.
    starved = replace(
        fed,
        resources={**fed.resources, "ndpi.vcpu": 0.1},
        workload={**fed.workload, "flows": 10_000.0},
    )
    runs = 20
    points = [OperatingPoint(plan.target.name, fed, 2_000.0)] * runs
    points.append(OperatingPoint(plan.target.name, starved, 40_000.0))
    *calm, hungry = await driven(campaign, session, points, SECONDS)
    for drive in calm:
        (seen,) = drive.copies.values()
        came = reached(drive, "firewall")
        assert came <= seen.mirrored <= came + 20
        assert (seen.arrived, seen.captured) == (seen.mirrored, seen.mirrored)
    (missed,) = hungry.copies.values()
    assert missed.arrived == missed.mirrored
    assert missed.captured is not None
    assert 0 < missed.captured < missed.mirrored, "the kernel's buffer is full"
    assert left_of(session) == ([], [])
