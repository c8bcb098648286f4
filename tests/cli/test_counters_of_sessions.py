"""`workbench counters --session`: windows of stored samples are rows, functions teach others."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from documented import described
from published_counters import LineModel
from session_making import EPOCH, created, measurement

from workbench.cli.context import settings
from workbench.cli.counter_words import text_of
from workbench.cli.counters import CountersOfSession, CountersReading, MoreOfCounters, counters
from workbench.domain.campaign import TargetPlan
from workbench.domain.errors import DataError
from workbench.domain.events import (
    CampaignPlanned,
    ConfigurationStarted,
    RunStarted,
    SampleTaken,
    TargetDeployed,
)
from workbench.domain.observations import Observation
from workbench.domain.parameters import Configuration, Parameter, PrimaryWorkload
from workbench.domain.samples import Measurement, Window
from workbench.domain.sessions import Plan, PlannedConfiguration
from workbench.domain.topology import Target, Vnf
from workbench.measuring.histograms import build
from workbench.store.session_file import SessionFile

FUNCTIONS = ("haproxy", "nginx", "tinyproxy")
VCPU = (0.25, 0.5, 0.75, 1.0)
NOTHING = build(np.zeros(0), np.zeros(0))


def taken(function: str, configuration: Configuration, wl: float) -> Measurement:
    """One window of two seconds, with packets that count its throughput; nginx waits more."""
    made = measurement(function, configuration, wl)
    off = 1.0 + 0.01 * ((wl % 7.0) / 7.0 - 0.5)
    wait = (1e-3 if function == "nginx" else 1e-4) * wl
    observed = (
        Observation(0, function, "rx_packets", 20.0 * wl * off),
        Observation(0, function, "cpu_wait_s", 2.0 * wait * off),
    )
    window = Window(1.0, 2.0, round(2.1 * wl), round(2.0 * wl), 0, 0, NOTHING, NOTHING)
    return replace(made, windows=(window,), series=(), observations=observed)


async def stored(path: Path) -> None:
    """Each function alone, at four sizes and three loads."""
    begun = created()
    assert begun.campaign is not None
    assert begun.host is not None
    wl = PrimaryWorkload("rate_rps", 100.0, 800.0, "log", "requests/s")
    plans = tuple(
        TargetPlan(
            Target(name, Vnf(name, "haproxy")), (Parameter(f"{name}.vcpu", VCPU, "cores"),), wl
        )
        for name in FUNCTIONS
    )
    campaign = replace(begun.campaign, targets=plans)
    blocks = [(p.target.name, c) for p in plans for c in campaign.configurations(p)]
    planned = tuple(PlannedConfiguration(0, name, c, 3, 34.0) for name, c in blocks)
    host = replace(begun.host, lab="docker")  # the simulated lab counts nothing of a function
    began = replace(begun, campaign=campaign, host=host)
    file = await SessionFile.create(path, began, at=EPOCH)
    try:
        await file.append(CampaignPlanned(Plan("small", "sim", planned, 36, 102.0)), at=EPOCH)
        await file.append(RunStarted(False, None), at=EPOCH)
        for number, (name, configuration) in enumerate(blocks):
            await file.append(TargetDeployed(name, "simulated 1", True, "answers"), at=EPOCH)
            await file.append(ConfigurationStarted(name, configuration), at=EPOCH)
            for load in (100.0, 250.0, 600.0):
                one = taken(name, configuration, load + 10.0 * number)
                await file.append(SampleTaken(one.sample), at=EPOCH, measurement=one)
    finally:
        await file.close()


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(settings, "workspace", tmp_path)
    for room in ("counter_scores", "counter_watch"):
        monkeypatch.setattr(f"workbench.models.{room}.OwnCounterModel", LineModel)
    (tmp_path / "sessions").mkdir()
    asyncio.run(stored(tmp_path / "sessions" / "three.duckdb"))
    return "three"


@pytest.mark.slow
def test_a_function_is_told_by_its_own_windows_and_by_those_of_others(
    session: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = CountersOfSession(session)
    counters(of=asked, more=MoreOfCounters(unseen="tinyproxy"), json=True)
    said = capsys.readouterr()
    assert "tinyproxy: 12 windows of 2 s (median) in 12 of 12 samples" in said.err
    printed = json.loads(said.out)
    described(printed, "`counters`")
    assert (printed["layout"], printed["kpi"]) == ("session", "throughput_rps")
    assert (printed["rows"], printed["experiments"]) == (12, 4)
    found = printed["transfer"]
    assert found["learned_from"] == ["haproxy", "nginx"]
    assert set(found["features"]) == {"rx_packets", "cpu_wait_s"}
    assert found["rows"] == 12
    assert "tinyproxy, not trained on: throughput_rps by 2 counters of haproxy, nginx" in text_of(
        printed
    )


def test_counters_of_what_was_not_measured_are_a_sentence(session: str) -> None:
    with pytest.raises(DataError, match="none of 12 samples has p95_ms and counters of nginx"):
        counters(of=CountersOfSession(session, "nginx"), reading=CountersReading(kpi="p95"))
