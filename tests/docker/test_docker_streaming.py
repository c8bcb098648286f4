"""Movies over RTMP and players over HLS, through the streaming server, for real."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from docker_targets import container, docker, ignore, left_of

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign, WindowPlan
from workbench.domain.errors import TrafficError
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Sample, Usage
from workbench.labs.base import LabSettings, OnUsage
from workbench.labs.docker import DockerLab
from workbench.measuring.judging import Terms, judge
from workbench.measuring.records import Drive
from workbench.paths import Workspace

pytestmark = pytest.mark.docker

SECONDS = 12.0
PLAN = WindowPlan(warmup_s=6.0, window_s=6.0, timeout_s=SECONDS)
KILL = (
    "for p in /proc/[0-9]*; do "
    '[ "$(cat $p/comm 2> /dev/null)" = ffmpeg ] && kill -9 ${p#/proc/}; done; true'
)


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return load_campaign("streaming", workspace=Workspace(tmp_path)).campaign


def point(campaign: Campaign, players: float, **resources: float) -> OperatingPoint:
    given = {"streaming.vcpu": 0.5} | {k.replace("__", "."): v for k, v in resources.items()}
    chosen = Configuration(given, {"movies": 2.0, "quality_mbps": 0.5})
    return OperatingPoint(campaign.targets[0].target.name, chosen, players)


async def driven(
    campaign: Campaign, session: str, at: OperatingPoint, on_usage: OnUsage = ignore
) -> tuple[Drive, Sample]:
    lab = DockerLab(campaign, LabSettings(session))
    try:
        await lab.open()
        await lab.deploy(campaign.targets[0].target, at.configuration)
        seen = await lab.drive(at, SECONDS, on_usage)
        assert await lab.drive_bypass(at, 1.0, ignore) is None
    finally:
        await lab.close()
    terms = Terms(load=campaign.load, windows=PLAN, sla=None, kpi=campaign.kpi)
    judged = judge([seen], at, terms, started_at=0.0, lab_s=SECONDS)
    assert left_of(session) == ([], [])
    return seen, judged.measurement.sample


async def test_movies_are_pushed_and_played(campaign: Campaign, session: str) -> None:
    seen, sample = await driven(campaign, session, point(campaign, 6.0))
    playback = seen.records.playback
    assert playback is not None
    assert playback.faults == ()
    assert set(playback.player.tolist()) == set(range(6))
    assert "stream_failed" not in [f.reason for f in sample.findings]
    # Three segments to begin with, and one for each second since; a busy host may be behind.
    assert playback.ready_s.size > 6 * 5
    media_s = playback.media_s.sum() / 6
    assert 4.0 < media_s < SECONDS, "no more than was live"
    assert sample.kpis["goodput_mbps"].value == pytest.approx(6 * 0.5, rel=0.5)
    assert sample.kpis["startup_ms"].value > 0.0


async def test_an_ffmpeg_that_dies_makes_the_sample_invalid_by_name(
    campaign: Campaign, session: str
) -> None:
    seconds: list[int] = []

    def kill(usage: Mapping[str, Usage]) -> None:
        seconds.append(len(usage))
        if len(seconds) == 6:
            docker("exec", container(session, "source"), "sh", "-c", KILL)

    seen, sample = await driven(campaign, session, point(campaign, 4.0), kill)
    assert len(seconds) >= 6
    assert sample.reason == "stream_failed"
    assert "ffmpeg ended after" in sample.findings[0].evidence
    assert seen.records.playback is not None
    assert len(seen.records.playback.faults) == 2, "both movies"


async def test_a_source_of_few_percent_of_a_core_is_blamed_itself(
    campaign: Campaign, session: str
) -> None:
    # Players and ffmpeg take some 0.4 ms of CPU for each player and second.
    at = point(campaign, 150.0, source__vcpu=0.02)
    _, sample = await driven(campaign, session, at)
    assert sample.reason == "source_saturated", sample.findings


async def test_a_quality_that_the_image_has_not_is_a_sentence(
    campaign: Campaign, session: str
) -> None:
    at = point(campaign, 2.0)
    given = {**at.configuration.workload, "quality_mbps": 0.7}
    at = replace(at, configuration=replace(at.configuration, workload=given))
    with pytest.raises(
        TrafficError, match=r"no movie has 700 kbit/s; there are 500, 1000, 2000, 4"
    ):
        await driven(campaign, session, at)
