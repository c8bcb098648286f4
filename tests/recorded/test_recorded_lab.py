"""The recorded lab: exactly what was stored, else an answer that says what it rests on."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from session_making import WLS, campaign, closed_session, created, facts, make_session, measurement

from workbench import plugins
from workbench.domain.errors import LabError, SessionError, UsageError
from workbench.domain.events import LogWritten
from workbench.domain.logs import ComponentLog, WrittenLine
from workbench.domain.parameters import Configuration, LoadModel, OperatingPoint
from workbench.domain.samples import Estimate, Measurement
from workbench.labs.base import LabSettings, RecallingLab
from workbench.labs.recorded import RecordedLab
from workbench.labs.recorded.recall import RecordedMeasurements
from workbench.labs.recorded_options import RecordedOptions

SMALL = campaign().configurations(campaign().targets[0])[0]
STORED = [measured for _, measured in facts() if measured is not None]


@pytest.fixture(params=["session", "bundle"])
async def recording(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    session = await make_session(tmp_path / "demo-1.duckdb")
    await session.write_tables(tmp_path / "demo-1.bundle")
    await session.close()
    return tmp_path / ("demo-1.duckdb" if request.param == "session" else "demo-1.bundle")


def lab(path: Path | str, options: str = "") -> RecordedLab:
    return RecordedLab(campaign(), LabSettings(session="t", argument=f"{path}{options}"))


def memory(*measurements: Measurement) -> RecordedMeasurements:
    return RecordedMeasurements.of(measurements, "open-constant", interpolates=True)


def at(wl: float, repetition: int = 0, configuration: Configuration = SMALL) -> OperatingPoint:
    return OperatingPoint("haproxy", configuration, wl, repetition)


async def test_it_is_registered_as_a_lab_that_recalls(recording: Path) -> None:
    assert plugins.load("labs", "recorded") is RecordedLab
    recorded = lab(recording)
    assert isinstance(recorded, RecallingLab)
    assert await recorded.examine() == ()
    assert await recorded.reap(frozenset()) == ()


async def test_every_stored_point_is_answered_with_the_stored_measurement(
    recording: Path,
) -> None:
    recorded = lab(recording)
    host = await recorded.open()
    assert replace(host, details={}) == replace(created().host, details={})
    assert host.details["recording"] == str(recording)
    for stored in STORED:
        assert await recorded.recall(stored.sample.point) == stored
        nearly = replace(stored.sample.point, wl=stored.sample.point.wl * (1 + 1e-12))
        assert await recorded.recall(nearly) == stored
    await recorded.close()


async def test_the_clock_charges_what_the_visits_cost(recording: Path) -> None:
    recorded = lab(recording)
    # 12 visits of 8.5 s, three deployments and 6 s beyond them; a drive of 1 + 3 + 0.5 s is the
    # engine's own estimate of a visit at 100/s and more.
    assert recorded.costs.deploy_s == pytest.approx(2.0)
    assert recorded.costs.allocate_s == 0
    assert recorded.costs.drive_overhead_s == pytest.approx(4.0)
    assert (await recorded.open()).lab == "sim"
    assert recorded.clock() == 0
    target = campaign().targets[0].target
    deployment = await recorded.deploy(target, SMALL)
    assert deployment.path == "recorded: answers 10000 bytes"
    assert deployment.generator == "simulated 1"
    await recorded.allocate(SMALL)
    await recorded.recall(at(100.0))
    assert recorded.clock() == pytest.approx(2.0 + 8.5)
    await recorded.recall(at(150.0))
    assert recorded.clock() == pytest.approx(2.0 + 8.5), "what was not measured cost nothing"
    await recorded.undeploy()
    await recorded.close()
    await recorded.close()


@pytest.mark.parametrize("kept_as", ["logs.duckdb", "logs.bundle"])
async def test_what_was_written_is_told_once_and_with_its_sample(
    tmp_path: Path, kept_as: str
) -> None:
    stored = STORED[0].sample
    up, during, other = (
        ComponentLog.of("haproxy", [WrittenLine(text)])
        for text in ("up", "\x1b]0;during\x07\x00\ufffd\u202e\r", "other")
    )
    session = await make_session(tmp_path / "logs.duckdb", until=3)
    await session.append(LogWritten("haproxy", up), at=3.0)
    for fact, taken in facts()[3:6]:
        await session.append(fact, at=4.0, measurement=taken)
    await session.append(LogWritten("haproxy", during, stored.id), at=5.0)
    await session.append(LogWritten("haproxy", other), at=6.0)  # by a later deployment
    await session.write_tables(tmp_path / "logs.bundle")
    await session.close()
    recorded = lab(tmp_path / kept_as)
    await recorded.deploy(campaign().targets[0].target, SMALL)
    assert await recorded.written() == (up,)
    assert await recorded.written() == ()
    await recorded.recall(stored.point)
    assert await recorded.written() == (during,)
    await recorded.recall(at(150.0))
    assert await recorded.written() == (), "nobody wrote anything between two points"


async def test_it_offers_the_loads_that_it_has_within_the_range(recording: Path) -> None:
    recorded = lab(recording)
    await recorded.open()
    offered = recorded.loads("haproxy")
    assert set(offered) == set(campaign().configurations(campaign().targets[0]))
    assert offered[SMALL] == WLS
    assert recorded.repetitions == 1
    trial = replace(STORED[0].sample, point=at(123.0), purpose="canary")
    again = RecordedMeasurements.of([*STORED, replace(STORED[0], sample=trial)], "open-constant")
    assert again.loads("haproxy", SMALL) == WLS, "a trial lies wherever somebody asked for it"


async def test_what_was_not_recorded_is_not_measured(recording: Path) -> None:
    recorded = lab(recording)
    await recorded.open()
    for point, says in (
        (at(300.0), "holds no load of 300, but 100, 200, 400, 800"),
        (at(50.0), "no load of 50"),
        (at(WLS[1], repetition=2), "no repetition 2 of a load that was measured 1 times"),
    ):
        sample = (await recorded.recall(point)).sample
        assert (sample.valid, sample.reason, sample.kpis) == (False, "not_measured", {})
        assert says in sample.findings[0].evidence


async def test_between_two_points_it_interpolates_where_that_is_asked_for(
    recording: Path,
) -> None:
    recorded = lab(recording, ",interpolate=1")
    await recorded.open()
    answer = await recorded.recall(at(300.0))
    sample = answer.sample
    # The recorded p95 is a power of wl, which log-log interpolation meets exactly.
    expected = measurement("haproxy", SMALL, 300.0).sample
    assert sample.kpis.keys() == expected.kpis.keys()
    for name, estimate in expected.kpis.items():
        assert vars(sample.kpis[name]) == pytest.approx(vars(estimate)), name
    assert sample.point == at(300.0)
    low, high = (m.sample for m in STORED[1:3])
    assert sample.labels[-4:] == (
        "interpolated",
        f"from:{low.id}",
        f"from:{high.id}",
        "without_windows",
    )
    assert (sample.valid, sample.reason) == (False, "not_measured"), "nothing may rest on it"
    assert sample.id not in {m.sample.id for m in STORED}
    assert (answer.windows, answer.series, sample.windows, sample.completed) == ((), (), 0, 0)
    share = sample.usage["haproxy"].cpu_share
    assert low.usage["haproxy"].cpu_share < share < high.usage["haproxy"].cpu_share


async def test_beyond_the_ends_and_in_other_repetitions_the_nearest_answers(
    recording: Path,
) -> None:
    recorded = lab(recording, ",interpolate=1")
    await recorded.open()
    for point, stored in (
        (at(50.0), STORED[0]),
        (at(1000.0), STORED[3]),
        (at(WLS[1], repetition=2), STORED[1]),
    ):
        sample = (await recorded.recall(point)).sample
        assert sample.point == point
        assert sample.kpis == stored.sample.kpis
        assert sample.labels[-3:] == ("nearest", f"from:{stored.sample.id}", "without_windows")


def test_repetitions_are_kept_apart() -> None:
    again = [measurement("haproxy", SMALL, wl, repetition=1) for wl in WLS]
    known = memory(*again, *STORED)
    assert known.recall(at(200.0, 1)) == again[1]
    assert known.recall(at(200.0, 0)) == STORED[1]
    assert again[1].sample.id in str(known.recall(at(300.0, 1)).sample.labels)
    assert STORED[1].sample.id in str(known.recall(at(300.0, 0)).sample.labels)


def test_a_figure_that_only_one_neighbour_states_is_not_stated() -> None:
    other = replace(STORED[2], sample=replace(STORED[2].sample, kpis={}, usage={}, p_sla=None))
    sample = memory(STORED[1], other).recall(at(300.0)).sample
    assert (sample.kpis, sample.usage, sample.p_sla) == ({}, {}, None)


def test_probabilities_go_by_their_logit_and_zeros_linearly() -> None:
    low, high = (
        replace(
            m,
            sample=replace(
                m.sample, p_sla=Estimate(p, p, p), kpis={"loss_pct": Estimate(*[x] * 3)}
            ),
        )
        for m, p, x in ((STORED[1], 0.99, 0.0), (STORED[2], 0.01, 10.0))
    )
    sample = memory(low, high).recall(at(math.sqrt(200.0 * 400.0))).sample
    assert sample.p_sla is not None
    assert sample.p_sla.value == pytest.approx(0.5)
    assert sample.kpis["loss_pct"].value == pytest.approx(5.0)


def test_figures_of_two_definitions_never_meet() -> None:
    other = replace(STORED[2], sample=replace(STORED[2].sample, kpi_definition="request"))
    sample = memory(STORED[1], other).recall(at(300.0)).sample
    assert "nearest" in sample.labels
    assert sample.kpi_definition == STORED[1].sample.kpi_definition


async def test_a_configuration_that_was_not_recorded_is_not_guessed(recording: Path) -> None:
    recorded = lab(recording)
    await recorded.open()
    other = Configuration({"haproxy.vcpu": 0.2}, SMALL.workload)
    sample = (await recorded.recall(at(200.0, configuration=other))).sample
    assert (sample.valid, sample.reason, sample.kpis) == (False, "not_measured", {})
    assert "haproxy.vcpu=0.2" in sample.findings[0].evidence


async def test_another_load_model_is_refused_with_what_there_is(recording: Path) -> None:
    closed = replace(campaign(), load=LoadModel("closed"))
    recorded = RecordedLab(closed, LabSettings(session="t", argument=str(recording)))
    with pytest.raises(LabError) as refused:
        await recorded.open()
    assert "load model closed" in str(refused.value)
    assert "haproxy at haproxy.vcpu=0.125,filesize_bytes=10000" in str(refused.value)
    assert "(open-constant)" in str(refused.value)


async def test_a_part_of_the_campaign_is_named_as_missing(tmp_path: Path) -> None:
    until = next(n for n, (_, m) in enumerate(facts()) if m == STORED[0]) + 1
    await closed_session(tmp_path / "part.duckdb", until=until)
    host = await lab(tmp_path / "part.duckdb").open()
    assert "haproxy.vcpu=0.25" in host.details["not_recorded"]
    assert "haproxy.vcpu=0.125" not in host.details["not_recorded"]


@pytest.mark.parametrize("option", ["interpolate=2", "spread=0", "spread=x", "colour=1"])
def test_options_that_are_none_are_named(option: str) -> None:
    with pytest.raises(UsageError, match=f"'{option}' is no option.*interpolate=1"):
        RecordedOptions.parse(f"mine.csv,{option}")


def test_options_follow_a_name_that_may_hold_anything() -> None:
    options = RecordedOptions.parse("a=b, c.csv,interpolate=1,spread=0.1")
    assert options == RecordedOptions("a=b, c.csv", True, 0.1)
    assert RecordedOptions.parse(options.text) == options


async def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="--lab recorded:NAME"):
        lab("")
    with pytest.raises(SessionError, match="is not there"):
        await lab(tmp_path / "none.duckdb").open()
    empty = await make_session(tmp_path / "empty.duckdb", until=1)
    await empty.close()
    with pytest.raises(LabError, match="it has no samples"):
        await lab(tmp_path / "empty.duckdb").open()
