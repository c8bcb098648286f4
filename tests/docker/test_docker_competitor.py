"""A competitor on the Docker lab: it takes CPU, is counted by its own group, and ends each time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from docker_targets import (
    OpenLab,
    configuration,
    container,
    docker,
    ignore,
    left_of,
    point,
    target,
)

from workbench.domain.parameters import Configuration, LoadModel
from workbench.labs.docker import DockerLab
from workbench.measuring import competition
from workbench.measuring.usage import Meter

pytestmark = [pytest.mark.docker, pytest.mark.unhurried]

HAPROXY = target("haproxy")
QUARTER = configuration(haproxy=0.25)
SECONDS = 3.0


def beside(competitor: str) -> Configuration:
    return replace(QUARTER, workload={**QUARTER.workload, "competitor": competitor})


@pytest.fixture
async def lab(open_lab: OpenLab) -> DockerLab:
    return await open_lab(LoadModel("closed"), HAPROXY, competitors=("none", "cpu:40", "cpu"))


async def test_its_true_intensity_is_counted(lab: DockerLab, session: str) -> None:
    await lab.deploy(HAPROXY, QUARTER)
    alone = await lab.drive(point(HAPROXY, QUARTER, 1), SECONDS, ignore)
    assert alone.competition is None
    assert len(left_of(session)[0]) == 3  # nobody is made who is not needed
    drive = await lab.drive(point(HAPROXY, beside("cpu:40"), 1), SECONDS, ignore)
    assert drive.competition is not None
    assert drive.competition.began_s < drive.begin_s
    assert drive.competition.ended_s > drive.stop_s
    assert competition.examine([drive]) == ()
    used = Meter(drive).usage(drive.begin_s, drive.stop_s)["competitor"]
    # On a host that others use as well it gets less, and never much more than it asks for.
    assert 0.1 < used.cpu_share < 0.5
    counted = [one.observed["competitor", "competitor_cpu_s", "cpu:40"] for one in drive.counters]
    assert counted == sorted(counted)
    assert counted[-1] - counted[0] == pytest.approx(used.cpu_cores * SECONDS, rel=0.2)
    running = docker("top", container(session, "competitor"), "-o", "pid,comm")
    assert "stress-ng" not in running


async def test_each_kind_is_at_work_from_before_the_load_until_after_it(
    open_lab: OpenLab, session: str
) -> None:
    """Half of the cores for what can be told to take less only by a quota."""
    kinds = ("cache", "memory:50", "disk:50")
    lab = await open_lab(LoadModel("closed"), HAPROXY, competitors=("none", *kinds))
    await lab.deploy(HAPROXY, QUARTER)
    for kind in kinds:
        drive = await lab.drive(point(HAPROXY, beside(kind), 1), SECONDS, ignore)
        assert competition.examine([drive]) == (), kind
        assert drive.competition is not None
        assert drive.competition.began_s < drive.begin_s < drive.stop_s < drive.competition.ended_s
        counted = [one.observed["competitor", "competitor_cpu_s", kind] for one in drive.counters]
        assert counted[-1] > counted[0], kind
    assert len(left_of(session)[0]) == 4, "the component stays, and what ran in it has ended"
    running = docker("top", container(session, "competitor"), "-o", "pid,comm")
    assert "stress-ng" not in running


async def test_one_that_dies_in_mid_sample_spoils_it_by_name(lab: DockerLab, session: str) -> None:
    await lab.deploy(HAPROXY, QUARTER)
    begun = asyncio.Event()
    driving = asyncio.create_task(
        lab.drive(point(HAPROXY, beside("cpu"), 1), SECONDS, lambda usage: begun.set())
    )
    await begun.wait()
    await asyncio.to_thread(docker, "kill", container(session, "competitor"))
    (finding,) = competition.examine([await driving])
    assert finding.reason == "competitor_failed"
    assert "137" in finding.evidence
    again = await lab.drive(point(HAPROXY, beside("cpu"), 1), SECONDS, ignore)
    assert competition.examine([again]) == ()
    await lab.close()
    assert left_of(session) == ([], [])
