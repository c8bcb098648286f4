"""Movies over RTMP and players over HLS, through the streaming server, for real."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

import pytest
import pytest_asyncio
from docker_targets import container, docker, ignore, left_of

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import WindowPlan
from workbench.domain.errors import TrafficError
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Sample, Usage
from workbench.labs.base import LabSettings, OnUsage
from workbench.labs.docker import DockerLab
from workbench.measuring.judging import Terms, judge
from workbench.measuring.records import Drive
from workbench.paths import Workspace

pytestmark = [
    pytest.mark.docker,
    pytest.mark.unhurried,
    pytest.mark.asyncio(loop_scope="module"),
]

SECONDS = 12.0
PLAN = WindowPlan(warmup_s=6.0, window_s=6.0, timeout_s=SECONDS)
KILL = (
    "for p in /proc/[0-9]*; do "
    '[ "$(cat $p/comm 2> /dev/null)" = ffmpeg ] && kill -9 ${p#/proc/}; done; true'
)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def lab(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DockerLab]:
    """One deployment for all of them, as a campaign drives one point after another."""
    workspace = Workspace(tmp_path_factory.mktemp("workspace"))
    campaign = load_campaign("streaming", workspace=workspace).campaign
    session = f"test-{secrets.token_hex(4)}"
    made = DockerLab(campaign, LabSettings(session))
    try:
        await made.open()
        await made.deploy(campaign.targets[0].target, point(made, 1.0).configuration)
        yield made
    finally:
        await made.close()
    assert left_of(session) == ([], [])


def point(lab: DockerLab, players: float, **resources: float) -> OperatingPoint:
    given = {"streaming.vcpu": 0.5} | {k.replace("__", "."): v for k, v in resources.items()}
    chosen = Configuration(given, {"movies": 2.0, "quality_mbps": 0.5})
    return OperatingPoint(lab._campaign.targets[0].target.name, chosen, players)


async def driven(
    lab: DockerLab, at: OperatingPoint, on_usage: OnUsage = ignore
) -> tuple[Drive, Sample]:
    await lab.allocate(at.configuration)
    seen = await lab.drive(at, SECONDS, on_usage)
    campaign = lab._campaign
    terms = Terms(load=campaign.load, windows=PLAN, sla=None, kpi=campaign.kpi)
    judged = judge([seen], at, terms, started_at=0.0, lab_s=SECONDS)
    return seen, judged.measurement.sample


async def test_movies_are_pushed_and_played(lab: DockerLab) -> None:
    at = point(lab, 6.0)
    seen, sample = await driven(lab, at)
    assert await lab.drive_bypass(at, 1.0, ignore) is None
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


async def test_an_ffmpeg_that_dies_makes_the_sample_invalid_by_name(lab: DockerLab) -> None:
    seconds: list[int] = []

    def kill(usage: Mapping[str, Usage]) -> None:
        seconds.append(len(usage))
        if len(seconds) == 6:
            docker("exec", container(lab._settings.session, "source"), "sh", "-c", KILL)

    seen, sample = await driven(lab, point(lab, 4.0), kill)
    assert len(seconds) >= 6
    assert sample.reason == "stream_failed"
    assert "ffmpeg ended after" in sample.findings[0].evidence
    assert seen.records.playback is not None
    assert len(seen.records.playback.faults) == 2, "both movies"


async def test_a_source_of_few_percent_of_a_core_is_blamed_itself(lab: DockerLab) -> None:
    # Players and ffmpeg take some 0.4 ms of CPU for each player and second.
    at = point(lab, 150.0, source__vcpu=0.02)
    _, sample = await driven(lab, at)
    assert sample.reason == "source_saturated", sample.findings


async def test_a_quality_that_the_image_has_not_is_a_sentence(lab: DockerLab) -> None:
    at = point(lab, 2.0)
    given = {**at.configuration.workload, "quality_mbps": 0.7}
    at = replace(at, configuration=replace(at.configuration, workload=given))
    with pytest.raises(
        TrafficError, match=r"no movie has 700 kbit/s; there are 500, 1000, 2000, 4"
    ):
        await driven(lab, at)
